"""Macros: calls that stand for other expressions.

Every macro is expanded while parsing, before anything is known about types: `list.all(x, p)` becomes a loop, `has(a.b)`
a test for presence. The new nodes point at the bracket of the call they replace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

from mooring.cel.syntax import (
    Call,
    Comprehension,
    Entry,
    Expression,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    StructLiteral,
    children,
)

ACCUMULATOR = "@result"
"""No text can spell it, so no variable of an expression can collide with it."""
_RESERVED = frozenset({ACCUMULATOR, "__result__"})
UNUSED = "#unused"

NOT_A_NAME = "argument must be a simple name"
OVERWRITES = "iteration variable overwrites accumulator variable"


class MacroMistake(Exception):
    """The call is the macro's, its arguments are not."""

    def __init__(self, node: Expression, message: str) -> None:
        self.offset = node.offset
        self.message = message
        super().__init__(message)


Expander = Callable[[int, Expression | None, list[Expression]], Expression | None]
"""Takes the offset for new nodes, the target and the arguments; None where the call is an ordinary one after all."""


def _name(node: Expression, message: str = NOT_A_NAME) -> str:
    if not isinstance(node, Ident):
        raise MacroMistake(node, message)
    return node.name


def _variable(node: Expression, message: str = NOT_A_NAME) -> str:
    name = _name(node, message)
    if name in _RESERVED:
        raise MacroMistake(node, OVERWRITES)
    return name


def _variables(first: Expression, second: Expression) -> tuple[str, str]:
    names = _name(first), _name(second)
    if names[0] == names[1]:
        raise MacroMistake(second, f"duplicate variable name: {names[0]}")
    return _variable(first), _variable(second)


class _Maker:
    """Makes nodes that all stand at one place."""

    def __init__(self, at: int) -> None:
        self.at = at

    def literal(self, value: Any) -> Expression:
        return Literal(self.at, value)

    def call(self, function: str, *args: Expression) -> Expression:
        return Call(self.at, function, None, list(args))

    def method(self, function: str, target: Expression, *args: Expression) -> Expression:
        return Call(self.at, function, target, list(args))

    def accumulator(self) -> Expression:
        return Ident(self.at, ACCUMULATOR)

    def list(self, *elements: Expression) -> Expression:
        return ListLiteral(self.at, list(elements))

    def loop(
        self,
        over: Expression,
        names: tuple[str, str],
        initial: Expression,
        condition: Expression,
        step: Expression,
        result: Expression,
    ) -> Expression:
        return Comprehension(self.at, over, names[0], names[1], ACCUMULATOR, initial, condition, step, result)

    def bound(self, name: str, value: Expression, result: Expression) -> Expression:
        """`result` with the variable in it: a loop over nothing, whose accumulator is the variable."""
        return Comprehension(
            self.at, self.list(), UNUSED, "", name, value, self.literal(False), Ident(self.at, name), result
        )

    def appended(self, filtered_by: Expression | None, element: Expression) -> Expression:
        return self.filtered(filtered_by, self.call("_+_", self.accumulator(), self.list(element)))

    def filtered(self, condition: Expression | None, step: Expression) -> Expression:
        return step if condition is None else self.call("_?_:_", condition, step, self.accumulator())


def _has(at: int, _: Expression | None, args: list[Expression]) -> Expression:
    if not isinstance(args[0], Select) or args[0].test_only:
        raise MacroMistake(args[0], "invalid argument to has() macro")
    return Select(at, args[0].operand, args[0].field_name, test_only=True)


def _all(make: _Maker, over: Expression, names: tuple[str, str], predicate: Expression) -> Expression:
    return make.loop(
        over,
        names,
        make.literal(True),
        make.call("@not_strictly_false", make.accumulator()),
        make.call("_&&_", make.accumulator(), predicate),
        make.accumulator(),
    )


def _exists(make: _Maker, over: Expression, names: tuple[str, str], predicate: Expression) -> Expression:
    return make.loop(
        over,
        names,
        make.literal(False),
        make.call("@not_strictly_false", make.call("!_", make.accumulator())),
        make.call("_||_", make.accumulator(), predicate),
        make.accumulator(),
    )


def _exists_one(make: _Maker, over: Expression, names: tuple[str, str], predicate: Expression) -> Expression:
    return make.loop(
        over,
        names,
        make.literal(0),
        make.literal(True),
        make.filtered(predicate, make.call("_+_", make.accumulator(), make.literal(1))),
        make.call("_==_", make.accumulator(), make.literal(1)),
    )


def _quantifier(build: Callable[[_Maker, Expression, tuple[str, str], Expression], Expression]) -> Expander:
    def expand(at: int, target: Expression | None, args: list[Expression]) -> Expression:
        assert target is not None
        names = (_variable(args[0]), "") if len(args) == 2 else _variables(args[0], args[1])
        return build(_Maker(at), target, names, args[-1])

    return expand


def _map(at: int, target: Expression | None, args: list[Expression]) -> Expression:
    assert target is not None
    name, make = _variable(args[0], "argument is not an identifier"), _Maker(at)
    step = make.appended(args[1] if len(args) == 3 else None, args[-1])
    return make.loop(target, (name, ""), make.list(), make.literal(True), step, make.accumulator())


def _filter(at: int, target: Expression | None, args: list[Expression]) -> Expression:
    assert target is not None
    name, make = _variable(args[0], "argument is not an identifier"), _Maker(at)
    step = make.appended(args[1], args[0])
    return make.loop(target, (name, ""), make.list(), make.literal(True), step, make.accumulator())


def _transform_list(at: int, target: Expression | None, args: list[Expression]) -> Expression:
    assert target is not None
    names, make = _variables(args[0], args[1]), _Maker(at)
    step = make.appended(args[2] if len(args) == 4 else None, args[-1])
    return make.loop(target, names, make.list(), make.literal(True), step, make.accumulator())


def _transform_map(*, entry: bool) -> Expander:
    def expand(at: int, target: Expression | None, args: list[Expression]) -> Expression:
        assert target is not None
        names, make = _variables(args[0], args[1]), _Maker(at)
        inserted = [args[-1]] if entry else [Ident(at, names[0]), args[-1]]
        step = make.filtered(
            args[2] if len(args) == 4 else None, make.call("cel.@mapInsert", make.accumulator(), *inserted)
        )
        return make.loop(target, names, MapLiteral(at, []), make.literal(True), step, make.accumulator())

    return expand


def _bind(at: int, target: Expression | None, args: list[Expression]) -> Expression | None:
    if not (isinstance(target, Ident) and target.name == "cel"):
        return None
    name = _name(args[0], "cel.bind() variable names must be simple identifiers")
    return _Maker(at).bound(name, args[1], args[2])


def _optional_map(*, flat: bool) -> Expander:
    macro = "optFlatMap" if flat else "optMap"

    def expand(at: int, target: Expression | None, args: list[Expression]) -> Expression:
        assert target is not None
        name, make = _name(args[0], f"{macro}() variable name must be a simple identifier"), _Maker(at)
        if _is_larger(target, _MOST_COPIED):
            raise MacroMistake(args[0], f"{macro}() follows too large an expression; name parts of it with cel.bind()")
        mapped = make.bound(name, make.method("value", copied(target)), args[1])
        return make.call(
            "_?_:_",
            make.method("hasValue", target),
            mapped if flat else make.call("optional.of", mapped),
            make.call("optional.none"),
        )

    return expand


_MOST_COPIED = 400
"""Nodes of what an optional macro repeats. One behind the other, each doubles what is before it."""


def _is_larger(node: Expression, most: int) -> bool:
    pending, seen = [node], 0
    while pending and seen <= most:
        pending += children(pending.pop())
        seen += 1
    return seen > most


_SORT_INPUT = "@__sortBy_input__"


def _sort_by(at: int, target: Expression | None, args: list[Expression]) -> Expression:
    assert target is not None
    if not isinstance(target, (ListLiteral, Select, Ident, Comprehension, Call)):
        raise MacroMistake(
            target, "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        )
    make = _Maker(at)
    keys = _map(at, Ident(at, _SORT_INPUT), args)
    return make.bound(_SORT_INPUT, target, make.method("@sortByAssociatedKeys", Ident(at, _SORT_INPUT), keys))


def copied(node: Any) -> Any:
    """The expression once more, with nodes of its own: the checker writes into nodes."""
    twin = copy(node)
    match twin:
        case Select():
            twin.operand = copied(twin.operand)
        case Call():
            twin.target = None if twin.target is None else copied(twin.target)
            twin.args = [copied(each) for each in twin.args]
        case ListLiteral():
            twin.elements = [copied(each) for each in twin.elements]
        case MapLiteral() | StructLiteral():
            twin.entries = [_copied_entry(each) for each in twin.entries]
        case Comprehension():
            for part in ("range", "initial", "condition", "step", "result"):
                setattr(twin, part, copied(getattr(twin, part)))
    return twin


def _copied_entry(entry: Entry) -> Entry:
    key = copied(entry.key) if isinstance(entry.key, Expression) else entry.key
    return Entry(entry.offset, key, copied(entry.value), entry.optional)


Macros = Mapping[tuple[str, int, bool], Expander]

MACROS: Macros = {
    ("has", 1, False): _has,
    ("all", 2, True): _quantifier(_all),
    ("all", 3, True): _quantifier(_all),
    ("exists", 2, True): _quantifier(_exists),
    ("exists", 3, True): _quantifier(_exists),
    ("exists_one", 2, True): _quantifier(_exists_one),
    ("exists_one", 3, True): _quantifier(_exists_one),
    ("existsOne", 3, True): _quantifier(_exists_one),
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map(entry=False),
    ("transformMap", 4, True): _transform_map(entry=False),
    ("transformMapEntry", 3, True): _transform_map(entry=True),
    ("transformMapEntry", 4, True): _transform_map(entry=True),
    ("sortBy", 2, True): _sort_by,
    ("optMap", 2, True): _optional_map(flat=False),
    ("optFlatMap", 2, True): _optional_map(flat=True),
}
"""By function, number of arguments, and whether it is called on something."""

BINDINGS: Macros = {("bind", 3, True): _bind}
"""`cel.bind`, which not every environment of Kubernetes has."""
