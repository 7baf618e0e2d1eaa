"""Comprehensions as closures.

An accumulator starts when it is first read, and may hold a failure: a later step can still absorb it. The loops that
macros make (`all`, `exists`, `map`, `filter`) are recognised and run directly; where something fails in them, the whole
expression is evaluated again, as written, so that exactly the failure that CEL prescribes comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from mooring.cel.errors import NO_SUCH_OVERLOAD, CelError, Ended
from mooring.cel.macros import ACCUMULATOR
from mooring.cel.operators import go_type_name
from mooring.cel.syntax import Call, Comprehension, Expression, Ident, ListLiteral, Literal
from mooring.cel.values import GrowingList, GrowingMap, is_list, keys_of

Frame = list[Any]
Evaluate = Callable[[Frame], Any]

_UNSET = object()
_UNSET_LOOP = object()
"""As `_UNSET`, of an accumulator that a loop will grow."""


@dataclass(frozen=True, slots=True)
class _Failed:
    problem: CelError


def _settled(evaluate: Evaluate, frame: Frame) -> Any:
    try:
        return evaluate(frame)
    except Ended:
        raise
    except CelError as problem:
        return _Failed(problem)


def _growing(value: Any) -> Any:
    if type(value) is list:
        return GrowingList(value)
    return GrowingMap(value) if type(value) is dict else value


def _grown(value: Any) -> Any:
    if type(value) is GrowingList:
        return list(value)
    return dict(value) if type(value) is GrowingMap else value


def accumulator(slot: int, initial: Evaluate) -> Evaluate:
    """Reads the accumulator; the first time in a loop, starts it."""

    def read(frame: Frame) -> Any:
        value = frame[slot]
        if value is _UNSET:
            value = frame[slot] = _settled(initial, frame)
        elif value is _UNSET_LOOP:
            value = frame[slot] = _growing(_settled(initial, frame))
        if type(value) is _Failed:
            raise value.problem.with_traceback(None)  # it grows with every place that it is raised at
        return value

    return read


def not_strictly_false(value: Evaluate) -> Evaluate:
    """Whether a quantifier goes on: unless the value is false, a failure included."""

    def goes_on(frame: Frame) -> bool:
        try:
            return value(frame) is not False
        except Ended:
            raise
        except CelError:
            return True

    return goes_on


def entries(over: Any, *, pairs: bool) -> Iterable[Any]:
    """What a loop runs over: elements or keys; with `pairs`, index and element or key and value."""
    if is_list(over):
        return enumerate(over) if pairs else over
    if isinstance(over, dict):
        return zip(keys_of(over), over.values(), strict=True) if pairs else keys_of(over)
    if pairs:
        raise CelError(f"unsupported comprehension range type: {go_type_name(over)}")
    raise CelError(f"got '{go_type_name(over)}', expected iterable type")


def bound(slot: int, result: Evaluate) -> Evaluate:
    """A loop over nothing: its accumulator is a name for a value."""

    def with_name(frame: Frame) -> Any:
        frame[slot] = _UNSET
        return result(frame)

    return with_name


def folded(
    over: Evaluate, variables: list[int], slot: int, condition: Evaluate, step: Evaluate, result: Evaluate
) -> Evaluate:
    """A loop as written."""
    first = variables[0]
    second = variables[1] if len(variables) == 2 else None

    def fold(frame: Frame) -> Any:
        frame[slot] = _UNSET_LOOP
        for entry in entries(over(frame), pairs=second is not None):
            if second is None:
                frame[first] = entry
            else:
                frame[first], frame[second] = entry
            if _settled(condition, frame) is False:
                break
            frame[slot] = _settled(step, frame)
        frame[slot] = _UNSET if frame[slot] is _UNSET_LOOP else _grown(frame[slot])
        return result(frame)

    return fold


def _is_accumulator(node: Expression) -> bool:
    return isinstance(node, Ident) and node.name == ACCUMULATOR


def quantifier(node: Comprehension) -> tuple[bool, Expression] | None:
    """Of `all` and `exists`: the value at which they stop, and the predicate."""
    if not (isinstance(node.condition, Call) and node.condition.function == "@not_strictly_false"):
        return None
    step = node.step
    assert isinstance(step, Call)
    return step.function == "_||_", step.args[1]


def quantified(over: Evaluate, variable: int, predicate: Evaluate, *, stops_at: bool) -> Evaluate:
    """`all` and `exists`, run directly."""
    goes_on_at = not stops_at

    def run(frame: Frame) -> Any:
        for entry in entries(over(frame), pairs=False):
            frame[variable] = entry
            value = predicate(frame)
            if value is stops_at:
                return stops_at
            if value is not goes_on_at:
                raise CelError(NO_SUCH_OVERLOAD)
        return goes_on_at

    return run


def collection(node: Comprehension) -> tuple[Expression | None, Expression] | None:
    """Of `map` and `filter`: the condition, if any, and the element."""
    if not (isinstance(node.initial, ListLiteral) and isinstance(node.condition, Literal)):
        return None
    step, condition = node.step, None
    if isinstance(step, Call) and step.function == "_?_:_":
        condition, step = step.args[0], step.args[1]
    if not (isinstance(step, Call) and step.function == "_+_" and _is_accumulator(step.args[0])):
        return None
    appended = step.args[1]
    if not (isinstance(appended, ListLiteral) and len(appended.elements) == 1):
        return None
    return condition, appended.elements[0]


def collecting(over: Evaluate, variable: int, condition: Evaluate | None, element: Evaluate) -> Evaluate:
    """`map` and `filter`, run directly."""

    def run(frame: Frame) -> Any:
        collected: list[Any] = []
        for entry in entries(over(frame), pairs=False):
            frame[variable] = entry
            if condition is not None:
                value = condition(frame)
                if value is False:
                    continue
                if value is not True:
                    raise CelError(NO_SUCH_OVERLOAD)
            collected.append(element(frame))
        return collected

    return run
