"""Kubernetes quantities in expressions: `quantity("1Gi").isGreaterThan(...)`.

A quantity is a whole number times a power of ten. Small ones are kept as 64 bits with a scale, as upstream keeps them,
because that decides what `isInteger` returns: "1" and "1k" are integers, "1.0" and "1000m" are not.

Upstream compares a quantity that was computed by `add` or `sub` only when it stands on the left; on the right it is no
overload. So it is here.
"""

from __future__ import annotations

import re
from functools import lru_cache

from mooring.cel import types
from mooring.cel.declarations import Function, function, member, overload
from mooring.cel.errors import CelError
from mooring.cel.types import BOOL, DOUBLE, INT, STRING
from mooring.cel.values import INT_LEAST, INT_MOST, Opaque

QUANTITY = types.struct("kubernetes.Quantity")

_FORM = re.compile(r"([+-]?)0*+([0-9]*+)(?:\.([0-9]*+))?([eEinumkKMGTP]*+[-+]?[0-9]*+)", re.ASCII)
_FORMAT_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_BAD_SUFFIX = "unable to parse quantity's suffix"
_BAD_NUMBER = "unable to parse numeric part of quantity"
_DECIMAL = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_NANO = -9
_MOST_DIGITS = 18
_LONGEST = 4_096
"""In characters. Python converts no longer numbers; upstream has no limit."""
_LONGEST_REMEMBERED = 128
_LARGEST_EXPONENT = 1_000
"""No real quantity has such an exponent; without a limit, computing with one would not end."""


class Quantity(Opaque):
    """`unscaled` times ten to the power of `scale`; `is_big` where upstream has left 64 bits."""

    __slots__ = ("computed", "is_big", "nano", "scale", "unscaled")
    cel_type = QUANTITY

    nano: int

    def __init__(self, unscaled: int, scale: int, *, is_big: bool = False, computed: bool = False) -> None:
        self.unscaled, self.scale = unscaled, scale
        self.is_big = is_big
        self.computed = computed
        self.nano = unscaled * 10 ** (scale - _NANO)
        """The value in billionths, below which there is nothing: what is compared."""

    @classmethod
    def parsed(cls, text: str) -> Quantity:
        """The quantity of the text; raises CelError in upstream's words."""
        return parsed_quantity(text)

    def as_int64(self) -> int | None:
        """The whole number, where upstream sees one."""
        if self.is_big or self.scale < 0:
            return None
        value = int(self.unscaled * 10**self.scale)
        return value if INT_LEAST <= value <= INT_MOST else None

    def plus(self, other: Quantity, sign: int = 1) -> Quantity:
        scale = min(self.scale, other.scale)
        if self.unscaled == 0:
            scale = other.scale
        elif other.unscaled == 0:
            scale = self.scale
        unscaled = (self.nano + sign * other.nano) // 10 ** (scale - _NANO)
        fits = INT_LEAST <= unscaled <= INT_MOST
        return Quantity(unscaled, scale, is_big=self.is_big or other.is_big or not fits, computed=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nano == other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __repr__(self) -> str:
        return f"Quantity({self.unscaled}e{self.scale})"

    def comparable_with(self, other: object) -> bool:
        return isinstance(other, Quantity) and not other.computed


def parsed_quantity(text: str) -> Quantity:
    """The quantity of the text; raises CelError in upstream's words."""
    return _remembered(text) if len(text) <= _LONGEST_REMEMBERED else _parsed(text)


def _parsed(text: str) -> Quantity:
    match = _FORM.fullmatch(text)
    if match is None or not text:
        raise CelError(_FORMAT_WRONG)
    if len(text) > _LONGEST:
        raise CelError(_BAD_NUMBER)
    sign, digits, decimals, suffix = match.groups()
    decimals = decimals or ""
    digits = digits or "0"
    power, shift = _scale_of(suffix)
    negative = -1 if sign == "-" else 1
    if shift is None:
        scale = power - len(decimals)
        if _MOST_DIGITS - len(digits) - len(decimals) >= 0 and scale >= _NANO:
            return Quantity(negative * int(digits + decimals), scale)
    elif not decimals and 15 - len(digits) - shift * 3 // 10 - 1 >= 0:
        return Quantity(negative * (int(digits) << shift), 0)
    if not any(character.isdigit() for character in text[: match.start(4)]):
        raise CelError(_BAD_NUMBER)
    return _big(negative, digits, decimals, power, shift)


_remembered = lru_cache(maxsize=16_384)(_parsed)


def _scale_of(suffix: str) -> tuple[int, int | None]:
    """The power of ten, and the power of two where the suffix is binary."""
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], None
    if suffix in _BINARY:
        return 0, _BINARY[suffix]
    if suffix[0] in "eE" and re.fullmatch(r"[+-]?[0-9]+", suffix[1:]):
        return max(-_LARGEST_EXPONENT, min(int(suffix[1:]), _LARGEST_EXPONENT)), None
    raise CelError(_BAD_SUFFIX)


def _big(negative: int, digits: str, decimals: str, power: int, shift: int | None) -> Quantity:
    unscaled, scale = int(digits + decimals), power - len(decimals)
    if shift is not None:
        unscaled <<= shift
    if unscaled and scale < _NANO:
        # Rounded away from zero: a small amount does not become none.
        unscaled = -(-unscaled // 10 ** min(_NANO - scale, 4 * _LARGEST_EXPONENT))
        scale = _NANO
    if shift is not None and unscaled * 10 ** (scale - _NANO) > INT_MOST * 10**9:
        unscaled, scale = INT_MOST, 0
    return Quantity(negative * unscaled, scale, is_big=True)


def _is_quantity(text: str) -> bool:
    try:
        parsed_quantity(text)
    except CelError:
        return False
    return True


def _as_integer(quantity: Quantity) -> int:
    value = quantity.as_int64()
    if value is None:
        raise CelError("cannot convert value to integer")
    return value


def _as_float(quantity: Quantity) -> float:
    try:
        base = float(quantity.unscaled)
        return base if quantity.scale == 0 else base * float(f"1e{quantity.scale}")
    except OverflowError:
        return float("inf") if quantity.unscaled > 0 else float("-inf")


def compared(one: Quantity, other: Quantity) -> int:
    return (one.nano > other.nano) - (one.nano < other.nano)


_TWO = (QUANTITY, QUANTITY)

FUNCTIONS: list[Function] = [
    function("quantity", overload("string_to_quantity", (STRING,), QUANTITY, parsed_quantity)),
    function("isQuantity", overload("is_quantity_string", (STRING,), BOOL, _is_quantity)),
    function(
        "sign",
        overload("quantity_sign", (QUANTITY,), INT, lambda q: (q.unscaled > 0) - (q.unscaled < 0)),
    ),
    function(
        "isGreaterThan",
        member("quantity_is_greater_than", _TWO, BOOL, lambda one, other: one.nano > other.nano),
    ),
    function(
        "isLessThan",
        member("quantity_is_less_than", _TWO, BOOL, lambda one, other: one.nano < other.nano),
    ),
    function("compareTo", member("quantity_compare_to", _TWO, INT, compared)),
    function("asApproximateFloat", member("quantity_get_float", (QUANTITY,), DOUBLE, _as_float)),
    function("asInteger", member("quantity_get_int", (QUANTITY,), INT, _as_integer)),
    function("isInteger", member("quantity_is_integer", (QUANTITY,), BOOL, lambda q: q.as_int64() is not None)),
    function(
        "add",
        member("quantity_add", _TWO, QUANTITY, lambda one, other: one.plus(other)),
        member("quantity_add_int", (QUANTITY, INT), QUANTITY, lambda one, other: one.plus(Quantity(other, 0))),
    ),
    function(
        "sub",
        member("quantity_sub", _TWO, QUANTITY, lambda one, other: one.plus(other, -1)),
        member("quantity_sub_int", (QUANTITY, INT), QUANTITY, lambda one, other: one.plus(Quantity(other, 0), -1)),
    ),
]
