"""A checked expression to closures: what runs.

Each node becomes a function of a frame, a list with a slot for every variable. Types that the checker knows choose the
closure: a map with text keys is read like a Python dict, a comparison with a constant is one comparison. Constants are
folded as cel-go folds them, since a conversion that cannot succeed is then a mistake of the expression, not of a value.

Nothing here counts what an evaluation costs, or absorbs a failure in `&&`, `||`, `all` and `exists`: the plan of
`mooring.cel.metered` does, for expressions that could exceed a budget and where this one failed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from mooring.cel import loops, operators
from mooring.cel.access import alternative, element_of, has_text_keys, optional_element, path_of, presence, text_key
from mooring.cel.declarations import Function, chosen_at_run_time
from mooring.cel.errors import CelError, Ended
from mooring.cel.library.semver import Semver
from mooring.cel.logic import both, chosen, eagerly_equal, either
from mooring.cel.operators import go_type_name
from mooring.cel.regex import checked, matching
from mooring.cel.syntax import (
    Call,
    Comprehension,
    Expression,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    StructLiteral,
)
from mooring.cel.types import Type
from mooring.cel.values import Opaque, Optional, equal, key_of, type_of

Frame = list[Any]
Evaluate = Callable[[Frame], Any]

METER, FIRST_VARIABLE = 0, 1
"""Slots: the meter, where there is one, and the variables behind it."""
_CONVERSIONS = frozenset(["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"])
_COMPARING = frozenset({"sort", "distinct", "@sortByAssociatedKeys"})
_PATTERNS = frozenset({"matches", "find", "findAll"})
_FOLDED = frozenset({"quantity", "semver", "ip", "cidr", "url"})
"""Calls that are made once where their arguments are constant. No call whose work can exceed its text is among them."""
_NOT_CONSTANT = object()


class Planner:
    """Plans one expression. `slots` is how long a frame must be."""

    def __init__(self, variables: list[str], functions: Mapping[str, Function]) -> None:
        self._scope = {name: FIRST_VARIABLE + position for position, name in enumerate(variables)}
        self._accumulators: dict[str, Evaluate] = {}
        self._functions = functions
        self.slots = FIRST_VARIABLE + len(variables)

    def plan(self, node: Expression) -> Evaluate:
        constant = self.constant(node)
        if constant is not _NOT_CONSTANT:
            return _always(constant)
        match node:
            case Ident():
                return self.variable(node.name)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case Comprehension():
                return self._comprehension(node)
            case StructLiteral():
                raise CelError(f"unknown type: {node.type_name}")
        raise TypeError(f"{type(node).__name__} cannot be planned")

    def variable(self, name: str) -> Evaluate:
        if (accumulator := self._accumulators.get(name)) is not None:
            return accumulator
        return itemgetter(self._scope[name])

    def new_slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    # Constants

    def constant(self, node: Expression) -> Any:
        """The value, where the expression is one already; `_NOT_CONSTANT` otherwise."""
        match node:
            case Literal():
                return node.value
            case Ident() | Select() if node.constant is not None:
                return node.constant
            case ListLiteral() if not node.optionals:
                values = [self.constant(each) for each in node.elements]
                return _NOT_CONSTANT if any(each is _NOT_CONSTANT for each in values) else values
            case MapLiteral() if not any(each.optional for each in node.entries):
                pairs = [(self.constant(each.key), self.constant(each.value)) for each in node.entries]
                if any(_NOT_CONSTANT in (id_of(key), id_of(value)) for key, value in pairs):
                    return _NOT_CONSTANT
                return {_as_key(key): value for key, value in pairs}
            case Call() if node.function in _CONVERSIONS and len(node.args) == 1 and node.target is None:
                value = self.constant(node.args[0])
                return _NOT_CONSTANT if value is _NOT_CONSTANT else self.implementation(node)(value)
            case Call() if node.function == "@in" and [each.id for each in node.overloads] == ["in_list"]:
                return False if self.constant(node.args[1]) == [] else _NOT_CONSTANT
        return _NOT_CONSTANT

    def is_constant(self, node: Expression) -> bool:
        return self.constant(node) is not _NOT_CONSTANT

    # Names and containers

    def _select(self, node: Select) -> Evaluate:
        name = node.field_name
        if node.test_only:
            return presence(self.plan(node.operand), name)
        if (path := self._fixed_path(node)) is not None:
            slot, keys = path
            return path_of(slot, keys)
        operand = self.plan(node.operand)
        if has_text_keys(node.operand.type):
            return text_key(operand, name)
        return element_of(operand, _always(name))

    def _fixed_path(self, node: Expression) -> tuple[int, list[str]] | None:
        """`a.b["c"].d`, where every step is into a map with text keys: a slot, and the keys."""
        keys: list[str] = []
        while True:
            if isinstance(node, Ident) and node.constant is None:
                slot = self._scope.get(node.name)
                return None if slot is None or node.name in self._accumulators or not keys else (slot, keys[::-1])
            if isinstance(node, Select) and not node.test_only and node.constant is None:
                key, node = node.field_name, node.operand
            elif isinstance(node, Call) and node.function == "_[_]" and type(self.constant(node.args[1])) is str:
                key, node = self.constant(node.args[1]), node.args[0]
            else:
                return None
            if not has_text_keys(node.type):
                return None
            keys.append(key)

    def _list(self, node: ListLiteral) -> Evaluate:
        elements = [self.plan(each) for each in node.elements]
        if not node.optionals:
            return lambda frame: [each(frame) for each in elements]
        optionals = node.optionals

        def build(frame: Frame) -> list[Any]:
            built: list[Any] = []
            for position, each in enumerate(elements):
                value = each(frame)
                if position not in optionals:
                    built.append(value)
                elif type(value) is not Optional:
                    raise CelError(
                        f"cannot initialize optional list element from non-optional value {operators.shown(value)}"
                    )
                elif value.present:
                    built.append(value.value)
            return built

        return build

    def _map(self, node: MapLiteral) -> Evaluate:
        entries = [(self.plan(each.key), self.plan(each.value), each.optional) for each in node.entries]

        def build(frame: Frame) -> dict[Any, Any]:
            built: dict[Any, Any] = {}
            for key, value, optional in entries:
                put_entry(built, key(frame), value(frame), optional=optional)
            return built

        return build

    # Calls

    def _call(self, node: Call) -> Evaluate:
        match node.function:
            case "_&&_":
                return both([self.plan(each) for each in flattened(node)])
            case "_||_":
                return either([self.plan(each) for each in flattened(node)])
            case "_?_:_":
                return chosen(*(self.plan(each) for each in node.args))
            case "_==_" | "_!=_":
                return self._equality(node, wanted=node.function == "_==_")
            case "_[_]":
                return self._index(node)
            case "_?._" | "_[?_]":
                check_key(self.constant(node.args[1]))
                return optional_element(self.plan(node.args[0]), self.plan(node.args[1]))
            case "@not_strictly_false":
                return loops.not_strictly_false(self.plan(node.args[0]))
            case "@in" if (members := self.fixed_members(node)) is not None:
                return _membership(self.plan(node.args[0]), members)
            case "or" | "orValue" if node.target is not None and node.overloads[0].id.startswith("optional_or"):
                return alternative(self.plan(node.target), self.plan(node.args[0]), wrapped=node.function == "or")
        args = self.arguments(node)
        implementation = self.implementation(node)
        if node.function in _FOLDED:
            constants = [self.constant(each) for each in operands(node)]
            if not any(each is _NOT_CONSTANT for each in constants):
                try:
                    return _always(implementation(*constants))
                except CelError:
                    pass  # then it fails whenever it is evaluated, and only then
        return applied(implementation, args)

    def arguments(self, node: Call) -> list[Evaluate]:
        args = [self.plan(each) for each in operands(node)]
        if node.function in _COMPARING and len(node.overloads) == 1:
            return [_or_crash(each) for each in args]
        return args

    def implementation(self, node: Call) -> Callable[..., Any]:
        """What runs for the call, knowing what the checker knows."""
        function = self._functions[node.function]
        if self.has_constant_pattern(node):
            if node.function == "matches":
                return self.matching(self.constant(operands(node)[1]))
            checked(self.constant(operands(node)[1]))
        if function.implementation is not None:
            return _specialised(node, function.implementation)
        if len(node.overloads) == 1:
            (only,) = node.overloads
            if only.implementation is not None and (not only.guarded or _is_certain(node)):
                implementation: Callable[..., Any] = only.implementation
                return implementation
            return chosen_at_run_time(function.name, [only])
        return chosen_at_run_time(function.name, function.overloads)

    def matching(self, pattern: str) -> Callable[..., Any]:
        return matching(pattern)

    def has_constant_pattern(self, node: Call) -> bool:
        """Whether it is a call with a regular expression that is known now."""
        return node.function in _PATTERNS and type(self.constant(operands(node)[1])) is str

    def fixed_members(self, node: Call) -> frozenset[Any] | None:
        """The list of an `in`, where it is constant and its elements can be looked up."""
        if [each.id for each in node.overloads] != ["in_list"]:
            return None
        elements = self.constant(node.args[1])
        if elements is _NOT_CONSTANT or not all(isinstance(each, (str, int, float)) for each in elements):
            return None
        return frozenset(_member_key(each) for each in elements)

    def _equality(self, node: Call, *, wanted: bool) -> Evaluate:
        left, right = node.args
        constant = self.constant(right)
        if constant is not _NOT_CONSTANT and (fast := _equal_to(self.plan(left), constant, wanted)) is not None:
            return fast
        return eagerly_equal(self.plan(left), self.plan(right), wanted=wanted)

    def _index(self, node: Call) -> Evaluate:
        if (path := self._fixed_path(node)) is not None:
            return path_of(*path)
        container = self.plan(node.args[0])
        key = self.constant(node.args[1])
        check_key(key)
        if type(key) is str and has_text_keys(node.args[0].type):
            return text_key(container, key)
        return element_of(container, self.plan(node.args[1]))

    # Loops

    def _comprehension(self, node: Comprehension) -> Evaluate:
        over = self.plan(node.range)
        initial = self.plan(node.initial)
        slot = self.new_slot()
        outer_scope, outer_accumulators = self._scope, self._accumulators
        self._accumulators = {**outer_accumulators, node.accumulator: loops.accumulator(slot, initial)}
        self._scope = {**outer_scope, node.accumulator: slot}
        in_result = self._scope, self._accumulators
        variables = [self.new_slot() for name in (node.variable, node.second_variable) if name]
        for name, of in zip((node.variable, node.second_variable), variables, strict=False):
            self._scope = {**self._scope, name: of}
            self._accumulators = {key: value for key, value in self._accumulators.items() if key != name}
        # One or the other: what is planned twice at every level would be planned without end in nested loops.
        quick = self._quick_loop(node, over, variables)
        condition, step = (self.plan(node.condition), self.plan(node.step)) if quick is None else (None, None)
        self._scope, self._accumulators = in_result
        result = self.plan(node.result)
        self._scope, self._accumulators = outer_scope, outer_accumulators
        if isinstance(node.range, ListLiteral) and not node.range.elements:
            return loops.bound(slot, result)
        if quick is not None:
            return quick
        assert condition is not None
        assert step is not None
        return loops.folded(over, variables, slot, condition, step, result)

    def _quick_loop(self, node: Comprehension, over: Evaluate, variables: list[int]) -> Evaluate | None:
        """The loops that macros write are run as the loops they are, where no error occurs."""
        if len(variables) != 1:
            return None
        if (found := loops.quantifier(node)) is not None:
            stops_at, predicate = found
            return loops.quantified(over, variables[0], self.plan(predicate), stops_at=stops_at)
        if (collected := loops.collection(node)) is not None:
            condition, element = collected
            return loops.collecting(
                over,
                variables[0],
                None if condition is None else self.plan(condition),
                self.plan(element),
            )
        return None


def _or_crash(evaluate: Evaluate) -> Evaluate:
    """Upstream counts the cost of comparing elements without looking whether there is a list."""

    def crash(frame: Frame) -> Any:
        try:
            return evaluate(frame)
        except Ended:
            raise
        except CelError as problem:
            raise Ended(
                "internal error: interface conversion: *types.Err is not traits.Lister: missing method Add"
            ) from problem

    return crash


def _always(value: Any) -> Evaluate:
    return lambda _: value


def id_of(value: Any) -> Any:
    """The marker itself, or nothing: a value must not be compared with it."""
    return value if value is _NOT_CONSTANT else None


def operands(node: Call) -> list[Expression]:
    """Target and arguments."""
    return [*([node.target] if node.target is not None else []), *node.args]


def flattened(node: Call) -> list[Expression]:
    """The terms of nested `&&` (or `||`), in order."""
    terms: list[Expression] = []
    for each in node.args:
        if isinstance(each, Call) and each.function == node.function:
            terms += flattened(each)
        else:
            terms.append(each)
    return terms


def check_key(key: Any) -> None:
    """A constant that no container can have as a key or position is a mistake of the expression."""
    if key is not _NOT_CONSTANT and not isinstance(key, (str, int, float)):
        raise CelError(f"invalid qualifier type: {go_type_name(key)}")


def put_entry(built: dict[Any, Any], key: Any, value: Any, *, optional: bool) -> None:
    """One entry of a map literal; an optional one without a value takes the key away."""
    if optional:
        if type(value) is not Optional:
            raise CelError(
                f"cannot initialize optional entry '{operators.shown(key)}' from non-optional value "
                f"{operators.shown(value)}"
            )
        if not value.present:
            built.pop(_as_key(key), None)
            return
        value = value.value
    built[_as_key(key)] = value


def _as_key(value: Any) -> Any:
    if isinstance(value, (str, int, float)):
        return key_of(value)
    raise CelError(f"unsupported key type: {type_of(value).name}")


def _member_key(value: Any) -> Any:
    return key_of(value) if not (type(value) is float and not value.is_integer()) else value


def _membership(value: Evaluate, members: frozenset[Any]) -> Evaluate:
    def is_member(frame: Frame) -> bool:
        found = value(frame)
        if type(found) is str:
            return found in members
        if type(found) is Semver:
            # Upstream looks it up in a hash table, which Go does not allow.
            raise Ended("internal error: runtime error: hash of unhashable type cel.Semver")
        return isinstance(found, (int, float)) and _member_key(found) in members

    return is_member


def applied(implementation: Callable[..., Any], args: list[Evaluate]) -> Evaluate:
    """The call of a function."""
    if len(args) == 1:
        (only,) = args
        return lambda frame: implementation(only(frame))
    if len(args) == 2:
        left, right = args
        return lambda frame: implementation(left(frame), right(frame))
    return lambda frame: implementation(*[each(frame) for each in args])


def _is_certain(node: Call) -> bool:
    """Whether the checker knows the arguments' types, so that the values need no check."""
    return not any(_mentions_dyn(each.type) for each in operands(node))


def _mentions_dyn(of: Type) -> bool:
    return of.is_dyn or of.kind == "variable" or any(map(_mentions_dyn, of.parameters))


_ON_INTS: dict[str, Callable[..., Any]] = {
    "_<_": lambda left, right: left < right,
    "_<=_": lambda left, right: left <= right,
    "_>_": lambda left, right: left > right,
    "_>=_": lambda left, right: left >= right,
    "_+_": operators.add_ints,
}


def _specialised(node: Call, implementation: Callable[..., Any]) -> Callable[..., Any]:
    kinds = {each.type.kind for each in operands(node)}
    if kinds == {"int"} or (kinds == {"string"} and node.function != "_+_"):
        return _ON_INTS.get(node.function, implementation)
    return implementation


def _equal_to(value: Evaluate, constant: Any, wanted: bool) -> Evaluate | None:
    """Comparison with a constant, where Python's equality is CEL's."""
    kind = type(constant)
    if kind is str:

        def same_text(frame: Frame) -> bool:
            found = value(frame)
            if isinstance(found, Opaque) and wanted:
                return equal(found, constant)
            return (found == constant) is wanted

        return same_text
    if kind is bool:

        def same_truth(frame: Frame) -> bool:
            found = value(frame)
            if isinstance(found, Opaque) and wanted:
                return equal(found, constant)
            return (found is constant) is wanted

        return same_truth
    if kind is int and abs(constant) < 2**53:

        def same_number(frame: Frame) -> bool:
            found = value(frame)
            if isinstance(found, Opaque) and wanted:
                return equal(found, constant)
            return (found == constant and found is not True and found is not False) is wanted

        return same_number
    return None
