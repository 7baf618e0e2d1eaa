"""`find` and `findAll`: texts that match a regular expression."""

from __future__ import annotations

from mooring.cel.declarations import Function, function, member
from mooring.cel.errors import CelError
from mooring.cel.regex import BadPattern, Pattern, compiled
from mooring.cel.types import INT, STRING, list_of


def _pattern(text: str) -> Pattern:
    try:
        return compiled(text)
    except BadPattern as problem:
        raise CelError(f"Illegal regex: {problem}") from None


def _find(text: str, pattern: str) -> str:
    return next(iter(_pattern(pattern).found_in(text)), "")


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found: list[str] = []
    for each in _pattern(pattern).found_in(text):
        if 0 <= limit <= len(found):
            break
        found.append(each)
    return found


FUNCTIONS: list[Function] = [
    function("find", member("string_find_string", (STRING, STRING), STRING, _find)),
    function(
        "findAll",
        member("string_find_all_string", (STRING, STRING), list_of(STRING), _find_all),
        member("string_find_all_string_int", (STRING, STRING, INT), list_of(STRING), _find_all),
    ),
]
