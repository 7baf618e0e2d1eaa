"""CEL's types: what they are called, and which may stand where which is wanted.

A type is a kind and parameters. Type variables (of generic overloads, of empty lists) are types too;
`TypeBindings` holds what is known about them. The rules of assignment are cel-go's, quirks included: what it accepts,
Kubernetes accepts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

_NULLABLE = frozenset({"opaque", "struct", "any", "duration", "timestamp"})
_SCALAR = frozenset(
    {"bool", "bytes", "double", "int", "string", "uint", "any", "duration", "timestamp", "struct", "null"}
)


@dataclass(frozen=True)
class Type:
    """A kind (`int`, `list`, `struct`, …), its name, and its parameters."""

    kind: str
    name: str
    parameters: tuple[Type, ...] = ()

    @cached_property
    def shown(self) -> str:
        """As compile errors write it."""
        if self.kind == "error":
            return "!error!"
        if self.kind in ("any", "duration", "timestamp", "null"):
            return self.kind
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(each.shown for each in self.parameters)})"

    def __str__(self) -> str:
        """As messages about the result of an expression write it."""
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    @property
    def is_dyn(self) -> bool:
        return self.kind in ("dyn", "any")

    @property
    def is_optional(self) -> bool:
        return self.kind == "opaque" and self.name == "optional_type"


BOOL = Type("bool", "bool")
BYTES = Type("bytes", "bytes")
DOUBLE = Type("double", "double")
INT = Type("int", "int")
STRING = Type("string", "string")
UINT = Type("uint", "uint")
NULL = Type("null", "null_type")
DYN = Type("dyn", "dyn")
ANY = Type("any", "google.protobuf.Any")
ERROR = Type("error", "error")
DURATION = Type("duration", "google.protobuf.Duration")
TIMESTAMP = Type("timestamp", "google.protobuf.Timestamp")
TYPE = Type("type", "type")


def list_of(element: Type) -> Type:
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", "map", (key, value))


def type_of(of: Type) -> Type:
    return Type("type", "type", (of,))


def opaque(name: str, *parameters: Type) -> Type:
    return Type("opaque", name, parameters)


def optional_of(value: Type) -> Type:
    return opaque("optional_type", value)


def struct(name: str) -> Type:
    return Type("struct", name)


def variable(name: str) -> Type:
    return Type("variable", name)


def without_optional(of: Type) -> tuple[Type, bool]:
    """What an optional holds, and whether it was one."""
    return (of.parameters[0], True) if of.is_optional else (of, False)


class TypeBindings:
    """What is known about type variables."""

    def __init__(self, known: dict[str, Type] | None = None) -> None:
        self.known = known if known is not None else {}

    def assigned(self, one: Type, other: Type) -> TypeBindings | None:
        """The bindings under which `one` may stand where `other` is wanted; None where there are none."""
        trial = TypeBindings(dict(self.known))
        return trial if trial._assignable(one, other) else None

    def all_assigned(self, ones: list[Type], others: tuple[Type, ...]) -> TypeBindings | None:
        """As `assigned`, for all arguments of a call together."""
        trial = TypeBindings(dict(self.known))
        return trial if trial._all_assignable(tuple(ones), others) else None

    def resolved(self, of: Type, *, free_is_dyn: bool = False) -> Type:
        """The type with its known variables replaced; with `free_is_dyn`, the unknown ones are dyn."""
        if (bound := self.known.get(of.shown)) is not None:
            return self.resolved(bound, free_is_dyn=free_is_dyn)
        if of.kind == "variable":
            return DYN if free_is_dyn else of
        if not of.parameters or of.kind not in ("opaque", "list", "map", "type"):
            return of
        return Type(of.kind, of.name, tuple(self.resolved(each, free_is_dyn=free_is_dyn) for each in of.parameters))

    def _assignable(self, one: Type, other: Type) -> bool:
        if other.kind == "variable":
            valid, bound = self._substitutes(one, other)
            if valid:
                return True
            if bound:
                return False
        if one.kind == "variable":
            return self._substitutes(other, one)[0]
        if one.is_dyn or other.is_dyn or "error" in (one.kind, other.kind):
            return True
        if one.kind == "null":
            return other.kind in _NULLABLE or other.kind == "null"
        if other.kind == "null":
            return one.kind in _NULLABLE
        if one.kind in _SCALAR:
            return one.kind == other.kind and one.name == other.name
        if one.kind == "type":
            return other.kind == "type"
        return (
            one.kind == other.kind and one.name == other.name and self._all_assignable(one.parameters, other.parameters)
        )

    def _all_assignable(self, ones: tuple[Type, ...], others: tuple[Type, ...]) -> bool:
        return len(ones) == len(others) and all(
            self._assignable(one, other) for one, other in zip(ones, others, strict=True)
        )

    def _substitutes(self, value: Type, unknown: Type) -> tuple[bool, bool]:
        """Whether the variable may be `value`, and whether something was known about the variable."""
        if value == unknown:
            return True, True
        if (bound := self.known.get(unknown.shown)) is not None:
            if value == bound:
                return True, True
            if self._assignable(value, bound):
                general = most_general(value, bound)
                if self._free_of(unknown, general):
                    self.known[unknown.shown] = general
                return True, True
            return False, True
        if self._free_of(unknown, value):
            self.known[unknown.shown] = value
            return True, False
        return False, False

    def _free_of(self, unknown: Type, within: Type) -> bool:
        if unknown == within:
            return False
        if within.kind == "variable":
            bound = self.known.get(within.shown)
            return bound is None or self._free_of(unknown, bound)
        if within.kind in ("opaque", "list", "map", "type"):
            return all(self._free_of(unknown, each) for each in within.parameters)
        return True


def most_general(one: Type, other: Type) -> Type:
    """Of two types that agree, the more general one."""
    return one if _is_as_general(one, other) else other


def _is_as_general(one: Type, other: Type) -> bool:
    if one.is_dyn or one.kind == "variable":
        return True
    if other.is_dyn or other.kind == "variable" or one.kind != other.kind:
        return False
    if one.kind == "type":
        return True
    if one.kind in ("opaque", "list", "map"):
        return (
            one.name == other.name
            and len(one.parameters) == len(other.parameters)
            and all(map(_is_as_general, one.parameters, other.parameters))
        )
    return one == other
