"""Regular expressions in CEL: `matches`, and patterns that are checked before anything is evaluated."""

from __future__ import annotations

from typing import Any

from mooring.base.regex import BadPattern, Pattern, compiled
from mooring.cel.errors import NO_SUCH_OVERLOAD, CelError
from mooring.cel.values import Duration, Timestamp

__all__ = ["BadPattern", "Pattern", "checked", "compiled", "matches", "matches_constant"]


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
    return checked(pattern).is_in(text)
