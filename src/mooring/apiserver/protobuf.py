"""Kubernetes protobuf request bodies as documents: kubectl's typed commands send no other format.

Decoding only: every such client also accepts JSON responses. Field numbers come from the generated type table. Protobuf
encodes zero values that JSON omits; they are dropped, except where Go has a pointer and the zero is explicit.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from typing import Any

from mooring.apiserver.documents import Document, decode
from mooring.apiserver.schema import (
    MAX_STRUCTS,
    ApiType,
    BooleanType,
    BytesType,
    IntegerType,
    IntOrStringType,
    ListType,
    MapType,
    MicroTimeType,
    QuantityType,
    StructType,
    TextType,
    TimeType,
    schema_of,
    schema_table,
)
from mooring.base.clock import micro_timestamp, timestamp
from mooring.base.nesting import refuse_deep

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
# What decoding raises for lengths, numbers, texts, times and types that do not match the type table.
_UNREADABLE = (IndexError, struct.error, ValueError, OverflowError, OSError, AttributeError, TypeError, RecursionError)


class BadProtobuf(ValueError):
    """The body is not a Kubernetes object in protobuf."""


def read_object(body: bytes) -> Document:
    """The object in a request body, its kind and version included."""
    if not body.startswith(_MAGIC):
        raise BadProtobuf("the body does not begin as a Kubernetes object does")
    try:
        envelope = {number: value for number, _, value in _fields(body[len(_MAGIC) :])}
        header = {number: value.decode() for number, _, value in _fields(envelope.get(1, b""))}
        api_version, kind = header.get(1, ""), header.get(2, "")
        type_name = _type_of(api_version, kind)
        document = _message(envelope.get(2, b""), schema_of(type_name))
    except BadProtobuf:
        raise
    except _UNREADABLE as wrong:
        raise BadProtobuf(f"the body cannot be read: {wrong}") from None
    return {"apiVersion": api_version, "kind": kind, **document}


def _type_of(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    for name, compact in schema_table().items():
        for its_group, its_version, its_kind in compact.get("kinds", []):
            if its_kind == kind and ((its_group, its_version) == (group, version) or kind == "DeleteOptions"):
                return str(name)
    raise BadProtobuf(f'no kind "{kind}" is registered for version "{api_version}"')


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise BadProtobuf("a number is too long")


def _fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """(number, wire type, value): an int for numbers, bytes for everything with a length."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        value: Any
        if wire == 0:
            value, at = _varint(data, at)
        elif wire == 2:
            length, at = _varint(data, at)
            value = data[at : at + length]
            if len(value) != length:
                raise BadProtobuf("the body ends too early")
            at += length
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value = struct.unpack("<d" if wire == 1 else "<f", data[at : at + size])[0]
            at += size
        else:
            raise BadProtobuf(f"unknown wire type {wire}")
        yield number, wire, value


def _message(data: bytes, kind: StructType) -> Document:
    document: Document = {}
    _read_into(document, data, kind, kind.numbers)
    return document


def _read_into(document: Document, data: bytes, kind: StructType, numbers: Document) -> None:
    for number, _, raw in _fields(data):
        place = numbers.get(str(number))
        if place is None:
            continue
        if isinstance(place, dict):
            _read_into(document, raw, kind, place)
            continue
        name, is_pointer = place
        of = kind.fields.get(name)
        if isinstance(of, ListType):
            items = document.setdefault(name, [])
            if len(items) >= MAX_STRUCTS:
                raise BadProtobuf(f"{name} has more than {MAX_STRUCTS} items")
            items.append(_value(raw, of.of))
        elif isinstance(of, MapType):
            key, value = _entry(raw, of.of)
            document.setdefault(name, {})[key] = value
        elif of is not None:
            value = _value(raw, of)
            if is_pointer or value not in ("", 0, False, None, {}):
                document[name] = value


def _entry(raw: bytes, of: ApiType) -> tuple[str, Any]:
    key, value = "", b""
    for number, _, part in _fields(raw):
        if number == 1:
            key = part.decode()
        else:
            value = part
    if isinstance(of, ListType):
        return key, [_value(part, of.of) for _, _, part in _fields(value)]
    return key, _value(value, of)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _value(raw: Any, of: ApiType) -> Any:
    match of:
        case StructType():
            return _message(raw, of)
        case BytesType():
            return base64.b64encode(raw).decode()
        case TextType():
            return raw.decode()
        case BooleanType():
            return bool(raw)
        case IntegerType():
            return _signed(raw)
        case QuantityType():
            return next((value.decode() for number, _, value in _fields(raw) if number == 1), "0")
        case IntOrStringType():
            parts = {number: value for number, _, value in _fields(raw)}
            return parts.get(3, b"").decode() if parts.get(1) else _signed(parts.get(2, 0))
        case TimeType():
            return _time(raw, of)
    if isinstance(raw, bytes):
        # An embedded object of any kind: its JSON is field 1.
        inner = next((value for number, _, value in _fields(raw) if number == 1), b"")
        refuse_deep(inner)
        return decode(inner) if inner else {}
    return raw


def _time(raw: bytes, of: TimeType) -> str | None:
    parts = {number: value for number, _, value in _fields(raw)}
    if not parts:
        return None
    seconds = _signed(parts.get(1, 0))
    if isinstance(of, MicroTimeType):
        return micro_timestamp(seconds + parts.get(2, 0) / 1e9)
    return timestamp(seconds)
