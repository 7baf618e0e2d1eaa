"""JSON patch (RFC 6902) with kube-apiserver's limits, so that no patch grows an object without bound.

As there, `replace` sets a field that is absent, `test` for null holds for one that is absent, and indices may be
negative.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from mooring.apiserver.documents import Document, copied, decode, encode
from mooring.apiserver.status import StatusError, bad_request, too_large

MOST_OPERATIONS = 10_000
MOST_COPIED_BYTES = 3 * 1024 * 1024
"""Encoded size of everything that the copy operations of one patch copy."""
MOST_MOVED_ITEMS = 50_000_000
"""Items of lists that insertions and removals of one patch move, a tenth of a second's work."""
_INDEX = re.compile(r"-?[0-9]{1,18}")


class _Inapplicable(Exception):
    """Why an operation cannot be applied."""


class _Operation(msgspec.Struct):
    op: str = ""
    path: str | None = None
    from_: str | None = msgspec.field(default=None, name="from")
    value: Any = None


def json_patch(document: Document, operations: Any) -> Document:
    """A patched copy of the document."""
    if not isinstance(operations, list):
        raise bad_request("a JSON patch is a list of operations")
    if len(operations) > MOST_OPERATIONS:
        raise too_large(f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {len(operations)}")
    patching = _Patching(copied(document))
    for number, written in enumerate(operations):
        try:
            operation = msgspec.convert(written, _Operation)
            patching.apply(operation)
        except msgspec.ValidationError as errors:
            raise bad_request(f"error decoding patch: operation {number}: {errors}") from None
        except _Inapplicable as errors:
            sentence = "the server rejected our request due to an error in our request"
            where = f"{operation.op[:100]} {(operation.path or '')[:1000]}"
            raise StatusError(422, "Invalid", f"{sentence}: operation {number}: {where}: {errors}") from None
    if not isinstance(patching.root, dict):
        raise bad_request("the patch does not leave an object")
    return patching.root


class _Patching:
    """One document while operations change it."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._copied_bytes = self._moved_items = 0

    def apply(self, operation: _Operation) -> None:
        match operation.op:
            case "add":
                self._add(_required(operation.path, "path"), operation.value)
            case "remove":
                self._remove(_required(operation.path, "path"))
            case "replace":
                self._replace(_required(operation.path, "path"), operation.value)
            case "move":
                self._add(_required(operation.path, "path"), self._remove(_required(operation.from_, "from")))
            case "copy":
                self._add(_required(operation.path, "path"), self._copy(_required(operation.from_, "from")))
            case "test":
                self._test(_required(operation.path, "path"), operation.value)
            case unknown:
                raise _Inapplicable(f"Unknown operation '{unknown[:100]}'")

    def _parent(self, path: str) -> tuple[Any, str]:
        """The container that a path leads into, and the last part of the path."""
        _, *parts = path.split("/")
        if path[:1] != "/":
            raise _Inapplicable("the path leads nowhere")
        here = self.root
        for part in parts[:-1]:
            here = _get(here, _unescaped(part))
            if not isinstance(here, dict | list):
                raise _Inapplicable("the path leads nowhere")
        return here, _unescaped(parts[-1])

    def _add(self, path: str, value: Any) -> None:
        container, key = self._parent(path)
        if isinstance(container, dict):
            container[key] = value
        elif key == "-":
            container.append(value)
        else:
            place = _index(key, len(container) + 1)
            self._charge_move(len(container))
            container.insert(place, value)

    def _remove(self, path: str) -> Any:
        container, key = self._parent(path)
        if isinstance(container, list):
            place = _index(key, len(container))
            self._charge_move(len(container))
            return container.pop(place)
        if key not in container:
            raise _Inapplicable(f"can't remove a non-existent object '{key[:100]}'")
        return container.pop(key)

    def _replace(self, path: str, value: Any) -> None:
        if not path:
            if not isinstance(value, dict | list):
                raise _Inapplicable("the root of a document must be an object or a list")
            self.root = value
            return
        container, key = self._parent(path)
        if isinstance(container, list):
            container[_index(key, len(container))] = value
        else:
            container[key] = value

    def _copy(self, path: str) -> Any:
        container, key = self._parent(path)
        found = _get(container, key)
        encoded = encode(found)
        self._copied_bytes += len(encoded)
        if self._copied_bytes > MOST_COPIED_BYTES:
            raise _Inapplicable(
                f"the accumulated size of copied values is {self._copied_bytes}; the limit is {MOST_COPIED_BYTES}"
            )
        return decode(encoded)

    def _test(self, path: str, value: Any) -> None:
        found = self.root
        if path:
            container, key = self._parent(path)
            found = _get(container, key)
        if not _same(found, value):
            raise _Inapplicable("the value there is another")

    def _charge_move(self, items: int) -> None:
        self._moved_items += items
        if self._moved_items > MOST_MOVED_ITEMS:
            raise _Inapplicable("the patch moves too many items of lists")


def _required(text: str | None, field: str) -> str:
    if text is None:
        raise _Inapplicable(f"the operation has no '{field}'")
    return text


def _unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~") if "~" in part else part


def _get(container: Any, key: str) -> Any:
    if isinstance(container, dict):
        return container.get(key)
    return container[_index(key, len(container))]


def _index(key: str, length: int) -> int:
    """An index below a length; negative ones count from the end."""
    if not _INDEX.fullmatch(key) or not -length <= (place := int(key)) < length:
        raise _Inapplicable("the path leads nowhere")
    return place if place >= 0 else place + length


def _same(left: Any, right: Any) -> bool:
    """Equality of JSON values: true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(item, right[key]) for key, item in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)
