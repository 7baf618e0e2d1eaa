"""The nodes of a parsed expression.

The parser makes them, macros rewrite them, the checker writes types and chosen overloads into them, and the compiler
turns them into closures. `offset` is the character that an issue about the node points at: the name of a variable, the
operator of an operation, the bracket of a call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mooring.cel.types import DYN, Type


@dataclass(eq=False)
class Expression:
    """Any expression."""

    offset: int
    type: Type = field(default=DYN, init=False)
    depth: int = field(default=0, init=False)
    """How many operators, choices and steps into values are nested in the text of it."""


@dataclass(eq=False)
class Literal(Expression):
    """A constant: a string, a number, true, null."""

    value: Any


@dataclass(eq=False)
class Ident(Expression):
    """A variable, or the name of a type. A leading dot is part of the name until the checker has resolved it."""

    name: str
    constant: Any = field(default=None, init=False)


@dataclass(eq=False)
class Select(Expression):
    """`operand.field`; with `test_only`, `has(operand.field)`. Resolved to a name of a type, it is a constant."""

    operand: Expression
    field_name: str
    test_only: bool = False
    constant: Any = field(default=None, init=False)


@dataclass(eq=False)
class Call(Expression):
    """An operator, a function or, with a target, a method. `overloads` are those that the types admit."""

    function: str
    target: Expression | None
    args: list[Expression]
    overloads: tuple[Any, ...] = field(default=(), init=False)


@dataclass(eq=False)
class ListLiteral(Expression):
    """`[a, ?b]`."""

    elements: list[Expression]
    optionals: frozenset[int] = frozenset()


@dataclass(eq=False)
class Entry:
    """`key: value` of a map literal, `field: value` of a struct (then `key` is the field's name)."""

    offset: int
    key: Any
    value: Expression
    optional: bool = False


@dataclass(eq=False)
class MapLiteral(Expression):
    """`{k: v, ?k: v}`."""

    entries: list[Entry]


@dataclass(eq=False)
class StructLiteral(Expression):
    """`Type{field: value}`."""

    type_name: str
    entries: list[Entry]


@dataclass(eq=False)
class Comprehension(Expression):
    """A loop over a list or a map that folds an accumulator: what every macro with a variable becomes."""

    range: Expression
    variable: str
    second_variable: str
    accumulator: str
    initial: Expression
    condition: Expression
    step: Expression
    result: Expression


@dataclass(eq=False)
class Broken(Expression):
    """Stands where the text could not be read; an issue has been reported."""


def qualified_name(node: Expression) -> str | None:
    """`a.b.c`, where the node is nothing but names."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test_only:
        prefix = qualified_name(node.operand)
        return None if prefix is None else f"{prefix}.{node.field_name}"
    return None


def children(node: Expression) -> Iterator[Expression]:
    """The nodes right below."""
    match node:
        case Select():
            yield node.operand
        case Call():
            if node.target is not None:
                yield node.target
            yield from node.args
        case ListLiteral():
            yield from node.elements
        case MapLiteral():
            for entry in node.entries:
                yield entry.key
                yield entry.value
        case StructLiteral():
            for entry in node.entries:
                yield entry.value
        case Comprehension():
            yield from (node.range, node.initial, node.condition, node.step, node.result)
