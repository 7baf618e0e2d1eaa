"""`&&`, `||`, `?:` and `==` as closures.

`&&` and `||` absorb: a term that fails does not matter where another one decides (`absorbed`). The quick way (`both`,
`either`) lets the failure out: the whole expression is then evaluated again, in the careful way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mooring.cel.errors import NO_SUCH_OVERLOAD, CelError, Ended
from mooring.cel.values import equal, same

Evaluate = Callable[[list[Any]], Any]


def absorbed(terms: list[Evaluate], frame: list[Any], *, decisive: bool) -> bool:
    """The value of the whole: the decisive one if any term has it; else the first failure, if any term failed."""
    failure: CelError | None = None
    for term in terms:
        try:
            value = term(frame)
        except Ended:
            raise
        except CelError as problem:
            failure = failure or problem
            continue
        if value is decisive:
            return value is True
        if value is not True and value is not False:
            failure = failure or CelError(NO_SUCH_OVERLOAD)
    if failure is not None:
        raise failure.with_traceback(None)  # it grows with every place that it is raised at
    return not decisive


def _logic(terms: list[Evaluate], *, decisive: bool) -> Evaluate:
    other = not decisive
    if len(terms) == 2:
        first, second = terms

        def two(frame: list[Any]) -> bool:
            value = first(frame)
            if value is decisive:
                return value is True
            if value is other:
                value = second(frame)
                if value is decisive or value is other:
                    return bool(value)
            raise CelError(NO_SUCH_OVERLOAD)

        return two

    def several(frame: list[Any]) -> bool:
        for term in terms:
            value = term(frame)
            if value is decisive:
                return value is True
            if value is not other:
                raise CelError(NO_SUCH_OVERLOAD)
        return other

    return several


def both(terms: list[Evaluate]) -> Evaluate:
    """`a && b && …`."""
    return _logic(terms, decisive=False)


def either(terms: list[Evaluate]) -> Evaluate:
    """`a || b || …`."""
    return _logic(terms, decisive=True)


def chosen(condition: Evaluate, then: Evaluate, otherwise: Evaluate) -> Evaluate:
    """`condition ? then : otherwise`."""

    def choose(frame: list[Any]) -> Any:
        value = condition(frame)
        if value is True:
            return then(frame)
        if value is False:
            return otherwise(frame)
        raise CelError(NO_SUCH_OVERLOAD)

    return choose


def eagerly_equal(left: Evaluate, right: Evaluate, *, wanted: bool) -> Evaluate:
    """`left == right`, or `!=`."""
    if wanted:
        return lambda frame: equal(left(frame), right(frame))
    return lambda frame: same(left(frame), right(frame)) is not True
