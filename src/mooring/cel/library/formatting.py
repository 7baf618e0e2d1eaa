"""`"%s has %d".format([a, b])`: how values become text, clause by clause.

The same walk over the format checks literal formats when an expression is compiled (`clauses`, used by `validation`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mooring.cel.budget import PER_CALL, PER_CHARACTER, PER_COMPARISON, spend
from mooring.cel.conversions import to_double, to_string
from mooring.cel.errors import CelError
from mooring.cel.text import quoted
from mooring.cel.times import duration_text, timestamp_text
from mooring.cel.types import Type
from mooring.cel.values import Duration, Timestamp, Uint, is_list, key_of, keys_of, type_name

DEFAULT_PRECISION = 6
_MOST_DIGITS = 6
"""Of a precision: a million characters are enough."""
WRONG_TYPE = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
    "timestamps, was given {}",
    "d": "decimal clause can only be used on integers, was given {}",
    "f": "fixed-point clause can only be used on doubles, was given {}",
    "e": "scientific clause can only be used on doubles, was given {}",
    "b": "only integers and bools can be formatted as binary, was given {}",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given {}",
    "o": "octal clause can only be used on integers, was given {}",
}


class BadFormat(CelError):
    """The format itself, or a value in it, cannot be used. `argument` is the place of the value, if it is one."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


@dataclass(frozen=True)
class Clause:
    """`%.3f`: the verb, and the precision if there is one."""

    verb: str
    precision: int | None


def clauses(text: str, count: int, *, checking: bool = False) -> Iterator[str | Clause]:
    """The format as texts and clauses; raises BadFormat where it is none, or where there are too few arguments.

    Checking a literal format, upstream notices a dangling % before it notices that there is no argument for it.
    """
    at, used = 0, 0
    while at < len(text):
        if text[at] != "%":
            end = text.find("%", at)
            end = len(text) if end < 0 else end
            yield text[at:end]
            at = end
            continue
        if text[at + 1 : at + 2] == "%":
            yield "%"
            at += 2
            continue
        missing = BadFormat(f"index {used} out of range")
        if used >= count and not checking:
            raise missing
        if at + 1 >= len(text):
            raise BadFormat("unexpected end of string")
        if used >= count:
            raise missing
        clause, at = _clause(text, at + 1)
        yield clause
        used += 1


def _clause(text: str, at: int) -> tuple[Clause, int]:
    precision = None
    if text[at] == ".":
        end = at + 1
        while end < len(text) and text[end] in "0123456789":
            end += 1
        if end >= len(text):
            raise _unparsed("error while parsing precision: could not find end of precision specifier")
        if end == at + 1:
            raise _unparsed(
                "error while parsing precision: error while converting precision to integer: "
                'strconv.Atoi: parsing "": invalid syntax'
            )
        precision = _precision(text[at + 1 : end])
        at = end
    verb = text[at]
    if verb not in "sdfebxXo":
        raise _unparsed(f'unrecognized formatting clause "{_first_byte(verb)}"')
    return Clause(verb, precision), at + 1


def _precision(digits: str) -> int:
    if len(digits.lstrip("0")) > _MOST_DIGITS:
        raise _unparsed(f"error while parsing precision: {digits[:_MOST_DIGITS]}… is too large")
    return int(digits)


def _first_byte(character: str) -> str:
    """Upstream reads bytes, and takes the first one for a character."""
    return chr(character.encode()[0])


def _unparsed(message: str) -> BadFormat:
    return BadFormat(f"could not parse formatting clause: {message}")


def wrong_type(verb: str, given: str) -> BadFormat:
    return BadFormat(f"error during formatting: {WRONG_TYPE[verb.lower()].format(given)}")


def formatted(text: str, args: list[Any]) -> str:
    """The text with its clauses replaced."""
    parts: list[str] = []
    values = iter(args)
    for piece in clauses(text, len(args)):
        if isinstance(piece, Clause):
            spend((piece.precision or 0) * PER_CHARACTER)
            piece = _VERBS[piece.verb](piece, next(values))
        spend(len(piece) * PER_CHARACTER)
        parts.append(piece)
    return "".join(parts)


def _string(_: Clause, value: Any) -> str:
    return _plain(value)


def _plain(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, (list, tuple, dict)):
        spend(PER_CALL + len(value) * PER_COMPARISON)
    if is_list(value):
        return f"[{', '.join(_literal(each) for each in value)}]"
    if isinstance(value, dict):
        pairs = sorted((_key(each), _literal(value[key_of(each)])) for each in keys_of(value))
        return "{" + ", ".join(f"{key}:{of}" for key, of in pairs) + "}"
    if isinstance(value, Type):
        return value.name
    if isinstance(value, (bool, int, float, str, bytes, Timestamp, Duration)):
        return to_string(value)
    raise wrong_type("s", type_name(value))


def _key(value: Any) -> str:
    if not isinstance(value, (str, bool, int)):
        raise BadFormat(f"error during formatting: no formatting function for map key of type {type_name(value)}")
    return _literal(value)


def _literal(value: Any) -> str:
    """As the value stands inside a list or a map."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bytes):
        return f"b{quoted(to_string(value))}"
    if isinstance(value, float):
        text = _fixed_text(value, DEFAULT_PRECISION)
        return text if value == value and abs(value) != float("inf") else quoted(text)
    if isinstance(value, Timestamp):
        return f"timestamp({quoted(timestamp_text(value))})"
    if isinstance(value, Duration):
        return f"duration({quoted(duration_text(value))})"
    if value is None or isinstance(value, (bool, int, list, tuple, dict, Type)):
        return _plain(value)
    raise BadFormat(f"error during formatting: no formatting function for {type_name(value)}")


def _decimal(_: Clause, value: Any) -> str:
    if type(value) not in (int, Uint):
        raise wrong_type("d", type_name(value))
    return str(int(value))


def _as_double(clause: Clause, value: Any) -> float:
    if type(value) is float:
        return value
    if type(value) is str and value in ("NaN", "Infinity", "-Infinity"):
        return to_double(value)
    raise wrong_type(clause.verb, type_name(value))


def _fixed_text(value: float, precision: int) -> str:
    if value != value:
        return "NaN"
    if abs(value) == float("inf"):
        return "+Inf" if value > 0 else "-Inf"
    return f"{value:.{precision}f}"


_SPECIAL = {float("inf"): "∞", float("-inf"): "-∞"}


def _fixed(clause: Clause, value: Any) -> str:
    number = _as_double(clause, value)
    if number != number:
        return "NaN"
    precision = DEFAULT_PRECISION if clause.precision is None else clause.precision
    # English groups thousands.
    return _SPECIAL.get(number) or f"{number:,.{precision}f}"


_SUPERSCRIPTS = str.maketrans("0123456789+-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻")


def _scientific(clause: Clause, value: Any) -> str:
    number = _as_double(clause, value)
    if number != number:
        return "NaN"
    if (special := _SPECIAL.get(number)) is not None:
        return special
    # Upstream gives the precision as a width, so that it stays six digits.
    width = DEFAULT_PRECISION if clause.precision is None else clause.precision
    mantissa, exponent = f"{number:.6e}".split("e")
    power = f"{int(exponent):+03d}".replace("+", "").translate(_SUPERSCRIPTS)
    return f"{mantissa}×10{power}".rjust(width)


def _binary(_: Clause, value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if not isinstance(value, int):
        raise wrong_type("b", type_name(value))
    return f"{value:b}"


def _hex(clause: Clause, value: Any) -> str:
    if isinstance(value, str):
        text = value.encode().hex()
    elif isinstance(value, bytes):
        text = value.hex()
    elif type(value) in (int, Uint):
        text = f"{value:x}"
    else:
        raise wrong_type("x", type_name(value))
    return text.upper() if clause.verb == "X" else text


def _octal(_: Clause, value: Any) -> str:
    if type(value) not in (int, Uint):
        raise wrong_type("o", type_name(value))
    return f"{value:o}"


_VERBS: dict[str, Callable[[Clause, Any], str]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "x": _hex,
    "X": _hex,
    "o": _octal,
}
