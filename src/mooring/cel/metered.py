"""A checked expression to closures that count what they cost, and stop when the budget is spent.

The counting is cel-go's: a variable costs one, every step into it one more, a call what `call_costs` has for it, a list
or a map what making one costs; constants, tests for presence and the logic around them are free. It is slower than the
plain plan, which serves wherever an expression can neither exceed its budget nor fail in a part that does not decide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mooring.cel import loops
from mooring.cel.call_costs import LIST, MAP, cost_of
from mooring.cel.errors import CelError, Ended
from mooring.cel.logic import absorbed, chosen
from mooring.cel.operators import look_up, look_up_if_present
from mooring.cel.plan import METER, Evaluate, Frame, Planner, check_key, operands
from mooring.cel.regex import checked, matches_constant
from mooring.cel.syntax import Call, Comprehension, Expression, Ident, ListLiteral, MapLiteral, Select
from mooring.cel.values import NONE, Optional, equal, same


class MeteredPlanner(Planner):
    """Plans one expression with a meter in the frame's first slot."""

    def plan(self, node: Expression) -> Evaluate:
        if self.is_constant(node):
            return super().plan(node)
        if _is_attribute(node) or _is_choice(node):
            resolve = self._resolved(node)
            return resolve if _ends_in_choice(node) else _charged(resolve, 0 if _is_presence(node) else 1)
        match node:
            case ListLiteral():
                return _charged(self._list(node), LIST)
            case MapLiteral():
                return _charged(self._map(node), MAP)
            case Call():
                return self._metered_call(node)
        return super().plan(node)

    def _resolved(self, node: Expression) -> Evaluate:
        """A variable and the steps into it, each of which costs one; what the whole costs is not in it yet."""
        if self.is_constant(node):
            return super().plan(node)
        match node:
            case Ident():
                return self.variable(node.name)
            case Select():
                return _step(self._operand(node.operand), _constant(node.field_name), _kind_of(node))
            case Call() if _is_choice(node):
                return self._choice(node)
            case Call() if _is_attribute(node):
                key = node.args[1]
                check_key(self.constant(key))
                kind = "index" if node.function == "_[_]" else "optional"
                return _step(self._operand(node.args[0]), self._resolved_or_planned(key), kind)
        return self.plan(node)

    def _operand(self, node: Expression) -> Evaluate:
        return self._resolved(node) if _is_attribute(node) or _is_choice(node) else self.plan(node)

    def _resolved_or_planned(self, node: Expression) -> Evaluate:
        return self._resolved(node) if _is_attribute(node) else self.plan(node)

    def _choice(self, node: Call) -> Evaluate:
        condition, then, otherwise = node.args
        return chosen(self.plan(condition), self._operand(then), self._operand(otherwise))

    def _metered_call(self, node: Call) -> Evaluate:
        function = node.function
        if function in ("_&&_", "_||_"):
            terms = [self.plan(each) for each in node.args]
            decisive = function == "_||_"
            return lambda frame: absorbed(terms, frame, decisive=decisive)
        if function == "@in" and self.fixed_members(node) is not None:
            return super()._call(node)
        if function in ("or", "orValue") and node.target is not None:
            return super()._call(node)
        args = self.arguments(node)
        overload = node.overloads[0].id if len(node.overloads) == 1 else ""
        if function == "@not_strictly_false":
            return _charged(loops.not_strictly_false(args[0]), 1)
        if function == "_==_":
            return _metered(equal, args, function, "equals")
        if function == "_!=_":
            return _metered(_differs, args, function, "not_equals")
        return _metered(self.implementation(node), args, function, overload, eager=self._is_eager(node))

    def matching(self, pattern: str) -> Callable[..., Any]:
        checked(pattern)
        return matches_constant

    def _is_eager(self, node: Call) -> bool:
        """Whether upstream evaluates, and charges for, both arguments even if the first one fails."""
        if len(operands(node)) != 2 or node.overloads[0].id == "string_format" or self.has_constant_pattern(node):
            return False
        return len(node.overloads) == 1 or self._functions[node.function].implementation is not None

    def _quick_loop(self, node: Comprehension, over: Evaluate, variables: list[int]) -> Evaluate | None:
        return None  # every step is to be counted


def _differs(one: Any, other: Any) -> bool:
    return same(one, other) is not True


def _constant(value: Any) -> Evaluate:
    return lambda _: value


def _is_attribute(node: Expression) -> bool:
    match node:
        case Ident() | Select():
            return True
        case Call():
            return node.function in ("_[_]", "_?._", "_[?_]")
    return False


def _is_choice(node: Expression) -> bool:
    return isinstance(node, Call) and node.function == "_?_:_"


def _ends_in_choice(node: Expression) -> bool:
    """Steps into a choice belong to its branches; the choice itself is free."""
    while True:
        if _is_choice(node):
            return True
        if isinstance(node, Select):
            node = node.operand
        elif isinstance(node, Call) and _is_attribute(node):
            node = node.args[0]
        else:
            return False


def _is_presence(node: Expression) -> bool:
    return isinstance(node, Select) and node.test_only


def _kind_of(node: Select) -> str:
    return "presence" if node.test_only else "index"


def _charged(evaluate: Evaluate, cost: int) -> Evaluate:
    def charge(frame: Frame) -> Any:
        try:
            value = evaluate(frame)
        except Ended:
            raise
        except CelError:
            frame[METER].add(cost)
            raise
        frame[METER].add(cost)
        return value

    return charge


def _step(container: Evaluate, key: Evaluate, kind: str) -> Evaluate:
    """One step into a value. An optional step to a missing entry costs nothing."""

    def step(frame: Frame) -> Any:
        value = container(frame)
        if type(value) is Optional:
            return _step_into_optional(value, key, frame, kind)
        if kind != "index":
            return _found(value, key(frame), frame, kind)
        try:
            return look_up(value, key(frame))
        finally:
            frame[METER].add(1)

    return step


def _found(container: Any, key: Any, frame: Frame, kind: str) -> Any:
    if kind == "presence":
        frame[METER].add(1)
        return look_up_if_present(container, key)[1]
    value, present = look_up_if_present(container, key)
    if present:
        frame[METER].add(1)
    return Optional(value) if present else NONE


def _step_into_optional(value: Optional, key: Evaluate, frame: Frame, kind: str) -> Any:
    if not value.present:
        return False if kind == "presence" else NONE
    return _found(value.value, key(frame), frame, kind)


def _metered(
    implementation: Callable[..., Any], args: list[Evaluate], function: str, overload: str, *, eager: bool = True
) -> Evaluate:
    """A call; an eager one evaluates all its arguments, whatever the first one does."""
    cost = cost_of(function, overload)

    def call(frame: Frame) -> Any:
        values: list[Any] = []
        failure: CelError | None = None
        for each in args:
            try:
                values.append(each(frame))
            except Ended:
                raise
            except CelError as problem:
                failure = failure or problem
                values.append(problem)
                if not eager:
                    break
        if failure is None:
            try:
                result = implementation(*values)
            except CelError as problem:
                failure = problem
        if len(values) == len(args):
            frame[METER].add(1 if cost is None else cost(values, None if failure is not None else result))
        if failure is not None:
            raise failure.with_traceback(None)  # it grows with every place that it is raised at
        return result

    return call
