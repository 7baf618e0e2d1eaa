"""Text functions: substring, split, replace, join, quote, find and the rest; `format` is in `formatting`.

Positions count characters. What Go does with an empty separator or an empty search text is kept.
"""

from __future__ import annotations

from typing import Any

from mooring.cel.budget import PER_CHARACTER, PER_ELEMENT, spend
from mooring.cel.declarations import Function, function, member, overload
from mooring.cel.errors import CelError
from mooring.cel.library.formatting import formatted
from mooring.cel.operators import shown
from mooring.cel.regex import BadPattern, Pattern, compiled, metered
from mooring.cel.types import DYN, INT, STRING, list_of

_ASCII_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_ASCII_UPPER = {code + 32: code for code in range(ord("A"), ord("Z") + 1)}
_SPACE = " \t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_QUOTES = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)
_STRINGS = list_of(STRING)


def _out_of_range(position: int) -> CelError:
    return CelError(f"index out of range: {position}")


def _char_at(text: str, position: int) -> str:
    if not 0 <= position <= len(text):
        raise _out_of_range(position)
    return text[position : position + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if not part:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    return text.find(part, offset) if offset < len(text) else -1


def _last_index_of(text: str, part: str) -> int:
    if not part:
        return len(text)
    if len(text.encode()) < len(part.encode()):
        return -1
    return _last_index_before(text, part, len(text) - 1)


def _last_index_before(text: str, part: str, offset: int) -> int:
    if not part:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    if offset >= len(text):
        return -1
    return text.rfind(part, 0, offset + len(part))


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    places = text.count(old) if count < 0 else min(text.count(old), count)
    spend((len(text) + places * len(new)) * PER_CHARACTER)
    return text.replace(old, new, max(count, -1))


def _split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if not separator:
        spend(len(text) * PER_ELEMENT)
        characters = list(text)
        if 0 < count < len(characters):
            return [*characters[: count - 1], "".join(characters[count - 1 :])]
        return characters
    return text.split(separator, -1 if count < 0 else count - 1)


def _substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


def _substring_range(text: str, start: int, end: int) -> str:
    if start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    for position in (start, end):
        if not 0 <= position <= len(text):
            raise _out_of_range(position)
    return text[start:end]


def _join(parts: list[Any], separator: str = "") -> str:
    for each in parts:
        if type(each) is not str:
            raise CelError(f"join: invalid input: {shown(each)}")
    spend((sum(map(len, parts)) + len(parts) * len(separator)) * PER_CHARACTER)
    return separator.join(parts)


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
    function("charAt", member("string_char_at_int", (STRING, INT), STRING, _char_at)),
    function(
        "indexOf",
        member("string_index_of_string", (STRING, STRING), INT, _index_of),
        member("string_index_of_string_int", (STRING, STRING, INT), INT, _index_of),
    ),
    function(
        "lastIndexOf",
        member("string_last_index_of_string", (STRING, STRING), INT, _last_index_of),
        member("string_last_index_of_string_int", (STRING, STRING, INT), INT, _last_index_before),
    ),
    function(
        "lowerAscii",
        member("string_lower_ascii", (STRING,), STRING, lambda text: text.translate(_ASCII_LOWER)),
    ),
    function(
        "replace",
        member("string_replace_string_string", (STRING, STRING, STRING), STRING, _replace),
        member("string_replace_string_string_int", (STRING, STRING, STRING, INT), STRING, _replace),
    ),
    function(
        "split",
        member("string_split_string", (STRING, STRING), _STRINGS, _split),
        member("string_split_string_int", (STRING, STRING, INT), _STRINGS, _split),
    ),
    function(
        "substring",
        member("string_substring_int", (STRING, INT), STRING, _substring),
        member("string_substring_int_int", (STRING, INT, INT), STRING, _substring_range),
    ),
    function("trim", member("string_trim", (STRING,), STRING, lambda text: text.strip(_SPACE))),
    function(
        "upperAscii",
        member("string_upper_ascii", (STRING,), STRING, lambda text: text.translate(_ASCII_UPPER)),
    ),
    function("format", member("string_format", (STRING, list_of(DYN)), STRING, formatted)),
    function(
        "strings.quote",
        overload("strings_quote", (STRING,), STRING, lambda text: f'"{text.translate(_QUOTES)}"'),
    ),
    function(
        "join",
        member("list_join", (_STRINGS,), STRING, _join),
        member("list_join_string", (_STRINGS, STRING), STRING, _join),
    ),
]

PATTERNS: list[Function] = [
    function("find", member("string_find_string", (STRING, STRING), STRING, _find)),
    function(
        "findAll",
        member("string_find_all_string", (STRING, STRING), _STRINGS, _find_all),
        member("string_find_all_string_int", (STRING, STRING, INT), _STRINGS, _find_all),
    ),
]
