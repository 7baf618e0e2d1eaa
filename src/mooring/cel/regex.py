"""Regular expressions in CEL: `matches`, and patterns that are checked before anything is evaluated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

from mooring.base.regex import BadPattern, Pattern, compiled
from mooring.cel.budget import spend
from mooring.cel.errors import NO_SUCH_OVERLOAD, CelError
from mooring.cel.values import Duration, Timestamp

__all__ = ["BadPattern", "Pattern", "checked", "compiled", "matches", "matches_constant", "matching", "metered"]

_PER_CHARACTER, _PER_INSTRUCTION = 300, 20
"""Steps that it takes to make a pattern."""


def metered(make: Callable[[str], Pattern], pattern: str) -> Pattern:
    """The pattern of an evaluation, to which making it is charged, known or not."""
    spend(len(pattern) * _PER_CHARACTER)
    made = make(pattern)
    spend(made.size * _PER_INSTRUCTION)
    return made


def checked(pattern: str) -> Pattern:
    """The pattern; raises CelError."""
    try:
        return compiled(pattern)
    except BadPattern as problem:
        raise CelError(str(problem)) from None


def matches(text: Any, pattern: Any) -> bool:
    """Whether the pattern is found anywhere in the text."""
    if type(text) is not str and not isinstance(text, (Timestamp, Duration)):
        raise CelError(f"{NO_SUCH_OVERLOAD}: matches")
    return matches_constant(text, pattern)


def matches_constant(text: Any, pattern: Any) -> bool:
    """As `matches`, where the pattern was known before: upstream then refuses other values in other words."""
    if type(text) is not str or type(pattern) is not str:
        raise CelError(NO_SUCH_OVERLOAD)
    made = metered(checked, pattern)
    spend(made.steps(text))
    return made.is_in(text)


def matching(pattern: str) -> Callable[[Any, Any], bool]:
    """`matches_constant` of this pattern, unmetered. It keeps no pattern that the cache of patterns has dropped."""
    known = ref(checked(pattern))

    def is_in(text: Any, _: Any) -> bool:
        nonlocal known
        if type(text) is not str:
            raise CelError(NO_SUCH_OVERLOAD)
        made = known()
        if made is None:
            known = ref(made := checked(pattern))
        return made.is_in(text)

    return is_in
