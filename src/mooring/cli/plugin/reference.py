"""A plugin's reference page as text: from its docstrings and its one `Args` class, so that it cannot be out of date."""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Iterator
from typing import Any

import msgspec

from mooring.framework import Meta
from mooring.framework.registry import PluginEntry


def reference(entry: PluginEntry) -> str:
    return "\n".join(_lines(entry))


def _lines(entry: PluginEntry) -> Iterator[str]:
    yield f"{entry.name} ({entry.source})"
    module = sys.modules[entry.cls.__module__]
    yield ""
    yield inspect.cleandoc(module.__doc__ or entry.cls.__doc__ or "It has no documentation.")
    yield ""
    yield f"Extension points: {', '.join(point.config_name for point in entry.points)}"
    if kinds := entry.object_types:
        yield f"Watches: {', '.join(kind.KIND.name for kind in kinds)}"
    if entry.args is None:
        yield "It takes no arguments."
        return
    yield ""
    yield f"Arguments ({entry.name}Args)"
    yield from _fields(entry.args, "  ")


def _fields(cls: type[msgspec.Struct], indent: str) -> Iterator[str]:
    hints = typing.get_type_hints(cls, include_extras=True)
    for field in msgspec.structs.fields(cls):
        if field.default is not msgspec.NODEFAULT:
            default = f"default {_shown(field.default)}"
        elif field.default_factory is not msgspec.NODEFAULT:
            default = f"default {_shown(field.default_factory())}"
        else:
            default = "required"
        yield f"{indent}{field.encode_name}: {_type_name(hints[field.name])}, {default}"
        for text in _descriptions(hints[field.name]):
            yield f"{indent}    {text}"
        nested = _struct_in(field.type)
        if nested is not None:
            yield from _fields(nested, indent + "    ")


def _descriptions(hint: Any) -> Iterator[str]:
    for extra in getattr(hint, "__metadata__", ()):
        if isinstance(extra, Meta) and extra.description:
            yield extra.description


def _struct_in(kind: Any) -> type[msgspec.Struct] | None:
    """The struct that a field holds, itself or as an element."""
    if inspect.isclass(kind) and issubclass(kind, msgspec.Struct):
        return kind
    return next((found for part in typing.get_args(kind) if (found := _struct_in(part)) is not None), None)


def _type_name(hint: Any) -> str:
    if typing.get_origin(hint) is typing.Annotated:
        bounds = [
            f"{word} {getattr(extra, name)}"
            for extra in hint.__metadata__
            if isinstance(extra, Meta)
            for name, word in (("ge", "at least"), ("le", "at most"), ("gt", "more than"), ("lt", "less than"))
            if getattr(extra, name) is not None
        ]
        return " ".join([_type_name(typing.get_args(hint)[0]), *([f"({', '.join(bounds)})"] if bounds else [])])
    parts = typing.get_args(hint)
    if typing.get_origin(hint) is typing.Literal:
        return f"one of {', '.join(map(str, parts))}"
    if typing.get_origin(hint) in (list, tuple, set, frozenset):
        return f"list of {_type_name(parts[0])}"
    if typing.get_origin(hint) is dict:
        return f"map from {_type_name(parts[0])} to {_type_name(parts[1])}"
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(_type_name(part) for part in parts)
    if hint is types.NoneType:
        return "null"
    if inspect.isclass(hint):
        return {"str": "text", "int": "whole number", "float": "number", "bool": "true or false"}.get(
            hint.__name__, hint.__name__
        )
    return str(hint).replace("typing.", "")


def _shown(value: Any) -> str:
    return msgspec.json.encode(value).decode()
