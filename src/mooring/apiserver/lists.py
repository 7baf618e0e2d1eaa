"""List responses: selection, pages, and the resourceVersion that a watch may continue from."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Literal

import msgspec

from mooring.apiserver.documents import Document, encode
from mooring.apiserver.options import ListOptions, revision_of
from mooring.apiserver.resources import Resource
from mooring.apiserver.selection_predicate import SelectionPredicate
from mooring.apiserver.status import RESOURCE_EXPIRED, StatusError, bad_request, expired
from mooring.apiserver.storage import Key, Store, StoredObject
from mooring.base.nesting import decode


@dataclass(frozen=True)
class ListPage:
    """The objects of one list request."""

    revision: int
    found: list[StoredObject]
    next: str = ""
    remaining: int | None = None

    def metadata(self) -> Document:
        metadata: Document = {"resourceVersion": str(self.revision)}
        if self.next:
            metadata["continue"] = self.next
        if self.remaining is not None:
            metadata["remainingItemCount"] = self.remaining
        return metadata


def list_page(store: Store, row: Resource, selection: SelectionPredicate, options: ListOptions) -> ListPage:
    if row.computed is not None:
        return ListPage(store.revision, computed(row, selection))
    limit, token, version = options.limit, options.token, options.resource_version
    revision = store.revision
    after: Key | None = None
    if token:
        if version not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        revision, after = _read_token(token)
        if revision < store.collection(row.storage).compacted_revision:
            raise expired(RESOURCE_EXPIRED)
    else:
        _check_revision(store, row, version, options.match)
    if selection.name is not None and (selection.namespace or not row.namespaced):
        one = store.stored(row.storage, selection.namespace, selection.name)
        return ListPage(revision, [one] if one is not None and selection(one.document) else [])
    matching = (
        (key, stored)
        for key, stored in store.scan(row.storage, selection.namespace or None, after)
        if selection(stored.document)
    )
    if limit <= 0:
        return ListPage(revision, [stored for _, stored in matching])
    shown = list(islice(matching, limit))
    left = (1 for _ in matching)
    if not shown or not next(left, 0):
        return ListPage(revision, [stored for _, stored in shown])
    # Upstream does not count the remaining items of a list with selectors.
    remaining = None if selection.has_selectors else 1 + sum(left)
    return ListPage(revision, [stored for _, stored in shown], _token(revision, shown[-1][0]), remaining)


def computed(row: Resource, selection: SelectionPredicate) -> list[StoredObject]:
    """The selected objects of a resource that is not stored, in order."""
    assert row.computed is not None
    found = row.computed(selection.namespace, selection.name or "")
    selected = [StoredObject(document, 0) for document in found if selection(document)]
    return sorted(selected, key=_namespace_and_name)


def _namespace_and_name(stored: StoredObject) -> Key:
    metadata = stored.document["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _check_revision(store: Store, row: Resource, version: str, match: str) -> None:
    requested = revision_of(version)
    if requested is None:
        return
    if requested > store.revision:
        message = f"Too large resource version: {requested}, current: {store.revision}"
        causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
        raise StatusError(504, "Timeout", message, {"causes": causes}, retry_after=1)
    if match == "Exact" and requested < store.collection(row.storage).compacted_revision:
        raise expired("The resourceVersion for the provided list is too old.")


class _Token(msgspec.Struct):
    """Where the next page begins."""

    v: Literal["meta.k8s.io/v1"]
    rv: Annotated[int, msgspec.Meta(ge=1)]
    start: Key


def _token(revision: int, last: Key) -> str:
    return base64.urlsafe_b64encode(encode(_Token("meta.k8s.io/v1", revision, last))).decode()


def _read_token(token: str) -> tuple[int, Key]:
    try:
        read: _Token = decode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)), _Token)
    except (binascii.Error, msgspec.MsgspecError, ValueError):
        raise bad_request("continue key is not valid") from None
    return read.rv, read.start


def list_parts(head: Document, field: str, items: Iterable[bytes]) -> Iterator[bytes]:
    """A list of encoded items as the parts of its body."""
    yield b'%s,"%s":[' % (encode(head)[:-1], field.encode())
    is_first = True
    for item in items:
        if not is_first:
            yield b","
        is_first = False
        yield item
    yield b"]}"


def list_body(row: Resource, page: ListPage) -> Iterator[bytes]:
    """The list in parts, from the objects' own bytes."""
    head = {"kind": row.list_kind, "apiVersion": row.api_version, "metadata": page.metadata()}
    return list_parts(head, "items", (stored.converted(row.to_served)[1] for stored in page.found))
