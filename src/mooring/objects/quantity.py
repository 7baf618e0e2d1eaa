"""Kubernetes quantities ("100m", "1.5Gi", "2e3") as exact integers.

A scheduler needs two readings of the same text: CPU in thousandths, everything else in whole units; both
rounded up (away from zero), as `Quantity.MilliValue()` and `Quantity.Value()` do. What does not fit 64 bits is the most
that does, where upstream's numbers wrap around.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Annotated

import msgspec

_FORM = re.compile(r"([+-]?)([0-9]*+)(?:\.([0-9]*+))?(?:[eE]([+-]?[0-9]++)|([numkMGTPE]|[KMGTPE]i))?")
_LONGEST = 1000
"""No quantity has so many digits; arithmetic on more of them takes time."""
_GREATEST_EXPONENT = 300
"""A value with more digits than that counts as this power of ten: far beyond 64 bits, and still a float."""
DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_MOST = 2**63 - 1
_USUAL_LENGTH = 20
_USUAL_SCALE = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}

QuantityText = str | int | float
_PATTERN = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"
QuantityField = Annotated[str | int, msgspec.Meta(extra_json_schema={"pattern": _PATTERN})]
"""A quantity in a custom resource: API servers refuse text that is none."""


class BadQuantity(ValueError):
    """Text that is no quantity."""

    def __init__(self, text: object) -> None:
        shown = repr(text)
        shown = shown if len(shown) <= 80 else f"{shown[:76]}…"
        super().__init__(f'{shown} is not a quantity; write a number with an optional suffix, as "500m" or "2Gi"')


@dataclass(frozen=True, slots=True)
class Notation:
    """A quantity as it is written: `digits` times ten to the power of `exponent`, times two to that of `doublings`."""

    is_negative: bool
    digits: int
    exponent: int
    doublings: int = 0
    is_scientific: bool = False
    """Written with an exponent, not with a suffix."""


def notation(text: QuantityText) -> Notation:
    """Read a quantity without computing its value, which may have more digits than memory has room for."""
    written = str(text)
    match = _FORM.fullmatch(written) if len(written) <= _LONGEST else None
    if match is None:
        raise BadQuantity(text)
    sign, digits, decimals, exponent, suffix = match.groups()
    decimals = decimals or ""
    if not digits and not decimals:
        raise BadQuantity(text)
    power = int(exponent) if exponent else DECIMAL.get(suffix or "", 0)
    if not -_MOST <= power <= _MOST:
        raise BadQuantity(text)
    doublings = BINARY.get(suffix or "", 0)
    return Notation(sign == "-", int(digits + decimals), power - len(decimals), doublings, exponent is not None)


@lru_cache(maxsize=65_536)
def exact(text: QuantityText) -> Fraction:
    """The quantity's value. Finer than a billionth is rounded up, as upstream does."""
    read = notation(text)
    if not read.digits:
        return Fraction(0)
    if read.exponent > _GREATEST_EXPONENT:
        value = Fraction(10**_GREATEST_EXPONENT)
    elif read.exponent < -2 * _LONGEST:
        # Finer than a billionth, whatever the digits are.
        value = Fraction(1, 10**9)
    else:
        value = read.digits * Fraction(10) ** read.exponent * (1 << read.doublings)
        value = min(Fraction(-(-value * 10**9 // 1), 10**9), Fraction(10**_GREATEST_EXPONENT))
    if read.doublings:
        value = min(value, Fraction(_MOST))
    return -value if read.is_negative else value


def _rounded_up(value: Fraction) -> int:
    whole = -(-abs(value) // 1)
    return min(whole, _MOST) if value >= 0 else -min(whole, _MOST)


def _usual_thousandths(text: QuantityText) -> int | None:
    """The value in thousandths where it is written as people mostly do ("2", "500m", "64Mi"); None: read it properly.

    A pod's requests are read once for every pod, and fractions are slow.
    """
    if type(text) is not str or len(text) > _USUAL_LENGTH or not text.isascii():
        return None
    if text.isdecimal():
        return int(text) * 1000
    if text[-1:] == "m" and text[:-1].isdecimal():
        return int(text[:-1])
    scale = _USUAL_SCALE.get(text[-2:])
    return int(text[:-2]) * scale * 1000 if scale is not None and text[:-2].isdecimal() else None


@lru_cache(maxsize=65_536)
def milli(text: QuantityText) -> int:
    """In thousandths, rounded up: "1" is 1000, "100u" is 1."""
    usual = _usual_thousandths(text)
    return min(usual, _MOST) if usual is not None else _rounded_up(exact(text) * 1000)


@lru_cache(maxsize=65_536)
def whole(text: QuantityText) -> int:
    """In whole units, rounded up: "1500m" is 2, "1Ki" is 1024."""
    usual = _usual_thousandths(text)
    return min(-(-usual // 1000), _MOST) if usual is not None else _rounded_up(exact(text))


def amount(resource: str, text: QuantityText) -> int:
    """The scheduler's unit of the resource: thousandths of a CPU, whole units of everything else."""
    return milli(text) if resource == "cpu" else whole(text)


@lru_cache(maxsize=65_536)
def billionths(text: QuantityText) -> int:
    """In billionths, the finest a quantity can be: exact, and faster to add than fractions."""
    return int(exact(text) * 10**9)
