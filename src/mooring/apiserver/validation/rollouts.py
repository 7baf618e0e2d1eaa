"""Validation of `maxSurge`, `maxUnavailable` and the like: a number of pods, or a percentage."""

from __future__ import annotations

import re
from typing import Any

from mooring.apiserver.status import FieldError, invalid_value

NOT_NEGATIVE = "must be greater than or equal to 0"
_PERCENT = re.compile(r"[0-9]+%")
_NO_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for"
    " validation is '[0-9]+%')"
)


def check_not_negative(value: int | None, path: str) -> list[FieldError]:
    return [invalid_value(path, value, NOT_NEGATIVE)] if value is not None and value < 0 else []


def check_amount_of_pods(value: Any, path: str) -> list[FieldError]:
    """A number that is not negative, or a percentage."""
    if isinstance(value, str):
        return [] if _PERCENT.fullmatch(value) else [invalid_value(path, value, _NO_PERCENT)]
    return check_not_negative(value, path)


def check_at_most_all(value: Any, path: str) -> list[FieldError]:
    is_too_much = isinstance(value, str) and number_in(value) > 100
    return [invalid_value(path, value, "must not be greater than 100%")] if is_too_much else []


def number_in(value: Any) -> int:
    """The number in an amount of pods; 0 where there is none to be read."""
    if isinstance(value, str):
        return int(value[:-1]) if _PERCENT.fullmatch(value) and len(value) < 20 else 0
    return value if isinstance(value, int) else 0
