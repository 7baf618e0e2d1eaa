"""What is wrong with a well-typed expression all the same: literals that cannot be what they are used for.

Kubernetes has cel-go check literal durations, timestamps, regular expressions and formats, and that all elements of a
list or map literal have the same type, not only one that fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mooring.cel.conversions import to_duration, to_timestamp
from mooring.cel.errors import CelError, Issue
from mooring.cel.library.formatting import BadFormat, Clause, clauses, wrong_type
from mooring.cel.regex import BadPattern, compiled
from mooring.cel.syntax import Call, Expression, ListLiteral, Literal, MapLiteral, children
from mooring.cel.types import Type

_KINDS = {
    "s": frozenset(
        ["list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null"]
    ),
    "d": frozenset({"int", "uint"}),
    "f": frozenset({"double", "string"}),
    "e": frozenset({"double", "string"}),
    "b": frozenset({"int", "uint", "bool"}),
    "x": frozenset({"int", "uint", "string", "bytes"}),
    "o": frozenset({"int", "uint"}),
}


def validated(tree: Expression) -> Iterator[Issue]:
    """The issues of a checked expression."""
    nodes = list(_walk(tree, exempt=False))
    yield from _bad_arguments(nodes, "duration", to_duration)
    yield from _bad_arguments(nodes, "timestamp", to_timestamp)
    yield from _bad_arguments(nodes, "matches", compiled)
    for node, exempt in nodes:
        if isinstance(node, ListLiteral) and not exempt:
            yield from _mixed_list(node)
    for node, exempt in nodes:
        if isinstance(node, MapLiteral) and not exempt:
            yield from _mixed_map(node)
    for node, _ in nodes:
        if _is_literal_format(node):
            yield from _bad_format(node)


def _walk(node: Expression, *, exempt: bool) -> Iterator[tuple[Expression, bool]]:
    """All nodes, inner ones first, and whether they are inside a call of `format`, whose list may mix types."""
    inside = exempt or (isinstance(node, Call) and node.function == "format")
    for each in children(node):
        yield from _walk(each, exempt=inside)
    yield node, exempt


def _bad_arguments(nodes: list[tuple[Expression, bool]], function: str, use: Callable[..., object]) -> Iterator[Issue]:
    for node, _ in nodes:
        if isinstance(node, Call) and node.function == function and node.args:
            literal = node.args[0]
            if isinstance(literal, Literal):
                try:
                    use(literal.value)
                except (CelError, BadPattern):
                    yield Issue(literal.offset, f"invalid {function} argument")


def _mismatch(node: Expression, expected: Type, found: Type) -> Issue:
    return Issue(node.offset, f"expected type '{expected.shown}' but found '{found.shown}'")


def _held(of: Type, *, optional: bool) -> Type:
    return of.parameters[0] if optional and of.parameters else of


def _mixed_list(node: ListLiteral) -> Iterator[Issue]:
    expected: Type | None = None
    for position, each in enumerate(node.elements):
        found = _held(each.type, optional=position in node.optionals)
        if expected is None:
            expected = found
        elif found != expected:
            yield _mismatch(each, expected, found)
            return


def _mixed_map(node: MapLiteral) -> Iterator[Issue]:
    expected: tuple[Type, Type] | None = None
    for entry in node.entries:
        key, value = entry.key.type, _held(entry.value.type, optional=entry.optional)
        if expected is None:
            expected = key, value
            continue
        if key != expected[0]:
            yield _mismatch(entry.key, expected[0], key)
        if value != expected[1]:
            yield _mismatch(entry.value, expected[1], value)


def _is_literal_format(node: Expression) -> bool:
    return (
        isinstance(node, Call)
        and node.function == "format"
        and isinstance(node.target, Literal)
        and isinstance(node.target.value, str)
        and len(node.args) == 1
        and isinstance(node.args[0], ListLiteral)
        and any(each.id == "string_format" for each in node.overloads)
    )


def _bad_format(node: Expression) -> Iterator[Issue]:
    assert isinstance(node, Call)
    assert isinstance(node.target, Literal)
    (given,) = node.args
    assert isinstance(given, ListLiteral)
    used = 0
    try:
        for piece in clauses(node.target.value, len(given.elements), checking=True):
            if isinstance(piece, Clause):
                bad = _unfit(piece.verb, given.elements[used])
                if bad is not None:
                    yield Issue(bad.offset, str(wrong_type(piece.verb, bad.type.name)))
                    return
                used += 1
    except BadFormat as problem:
        yield Issue(node.offset, str(problem))
        return
    if len(given.elements) > used:
        yield Issue(
            node.offset,
            f"too many arguments supplied to string.format (expected {used}, got {len(given.elements)})",
        )


def _unfit(verb: str, node: Expression) -> Expression | None:
    """The argument, or the part of it, that the clause cannot show."""
    if node.type.kind != "dyn" and node.type.kind not in _KINDS[verb.lower()]:
        return node
    if verb == "s" and isinstance(node, (ListLiteral, MapLiteral)):
        return next((bad for each in children(node) if (bad := _unfit("s", each)) is not None), None)
    return None
