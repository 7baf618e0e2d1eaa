"""`find` and `findAll`: texts that match a regular expression."""

from __future__ import annotations

from mooring.cel.budget import spend
from mooring.cel.declarations import Function, function, member
from mooring.cel.errors import CelError
from mooring.cel.regex import BadPattern, Pattern, compiled, metered
from mooring.cel.types import INT, STRING, list_of


def _pattern(text: str) -> Pattern:
    try:
        return compiled(text)
    except BadPattern as problem:
        raise CelError(f"Illegal regex: {problem}") from None


def _find(text: str, pattern: str) -> str:
    made = metered(_pattern, pattern)
    spend(made.steps(text))
    return next(iter(made.found_in(text)), "")


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found: list[str] = []
    made = metered(_pattern, pattern)
    spend(made.steps(text))
    for each in made.found_in(text):
        if 0 <= limit <= len(found):
            break
        found.append(each)
        spend(made.steps(text))  # each is a search, and may read all of the text
    return found


FUNCTIONS: list[Function] = [
    function("find", member("string_find_string", (STRING, STRING), STRING, _find)),
    function(
        "findAll",
        member("string_find_all_string", (STRING, STRING), list_of(STRING), _find_all),
        member("string_find_all_string_int", (STRING, STRING, INT), list_of(STRING), _find_all),
    ),
]
