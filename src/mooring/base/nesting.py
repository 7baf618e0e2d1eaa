"""How deep documents may be nested, and how JSON is read so that deep nesting does no harm.

Parsers recurse. A document of a few kilobytes that consists of brackets exhausts the stack of a parser, or of what
walks the document afterwards. Three ways to read untrusted JSON:

- `Decoder`, for objects of a cluster: what lies deeper than the limit is read as null. No field that a scheduler reads
  lies there, and an object that could not be read at all would block the list or watch that contains it.
- `decode`, for the response of a service: a deeper document is a DecodeError.
- `refuse_deep`, before a document is kept: a deeper one is refused.

YAML has the same limit (`mooring.base.documents`).
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Any, Generic, TypeVar

import msgspec

T = TypeVar("T")

MOST_NESTED = 200
"""Levels of mappings and lists that are read. Kubernetes' own kinds have about 15, definitions of custom resources
about 60; kube-apiserver refuses more than 10,000."""

# Possessive, and the closing quote may be missing: text without an end is passed over once, not once for every quote.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_STRING_OR_BRACKET = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{\]}]', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))
_STEPS = tuple({ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}.get(byte, 0) for byte in range(256))


class TooDeep(msgspec.DecodeError):
    """The document is nested more deeply than documents are read."""

    def __init__(self) -> None:
        super().__init__(f"the document is nested more than {MOST_NESTED} levels deep")


def refuse_deep(document: bytes) -> None:
    """Raise TooDeep for JSON whose brackets are nested too deeply. Other invalid JSON passes."""
    if document.count(b"[") + document.count(b"{") <= MOST_NESTED:
        return
    brackets = _STRING.sub(b"", document).translate(None, _NO_BRACKETS)
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > MOST_NESTED:
        raise TooDeep


def cut_deep(document: bytes) -> bytes:
    """The same JSON with null for everything that lies deeper than the limit."""
    kept: list[bytes] = []
    depth = begin = 0
    for found in _STRING_OR_BRACKET.finditer(document):
        step = _STEPS[document[found.start()]]
        if step > 0 and depth == MOST_NESTED:
            kept += (document[begin : found.start()], b"null")
        depth += step
        if step < 0 and depth == MOST_NESTED:
            begin = found.end()
    if depth <= MOST_NESTED:
        kept.append(document[begin:])
    return b"".join(kept)


class Decoder(Generic[T]):
    """msgspec's decoder for one type. Deep parts are cut; bytes that are not UTF-8 are a DecodeError like any other."""

    __slots__ = ("_decode",)

    def __init__(self, type_: type[T]) -> None:
        self._decode = msgspec.json.Decoder(type_).decode

    def decode(self, document: bytes | msgspec.Raw) -> T:
        try:
            return self._decode(document)
        except RecursionError:
            return self._decode(cut_deep(bytes(document)))
        except UnicodeDecodeError as error:
            raise msgspec.DecodeError(f"the document is not UTF-8: {error}") from error


def decode(document: bytes | str | msgspec.Raw, type_: Any = Any) -> Any:
    """What the document holds, as `type_`. Raises msgspec.DecodeError for whatever cannot be read."""
    try:
        return msgspec.json.decode(document, type=type_)
    except RecursionError:
        raise TooDeep from None
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(f"the document is not UTF-8: {error}") from error
