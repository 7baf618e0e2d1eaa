"""Kubernetes quantities ("100m", "1.5Gi", "2e3") as exact integers.

A scheduler needs two readings of the same text: CPU in thousandths, everything else in whole units; both
rounded up (away from zero), as `Quantity.MilliValue()` and `Quantity.Value()` do. What does not fit 64 bits is the most
that does, where upstream's numbers wrap around.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

_FORM = re.compile(r"([+-]?)([0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE]([+-]?[0-9]+)|([numkMGTPE]|[KMGTPE]i))?")
_LONGEST = 1000
"""Nobody writes so many digits; without an end, reading them would take one."""
_SCALE = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
_MOST = 2**63 - 1
_USUAL_LENGTH = 20
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}

QuantityText = str | int | float


class BadQuantity(ValueError):
    """Text that is no quantity."""

    def __init__(self, text: object) -> None:
        shown = repr(text)
        shown = shown if len(shown) <= 80 else f"{shown[:76]}…"
        super().__init__(f'{shown} is not a quantity; write a number with an optional suffix, as "500m" or "2Gi"')


@lru_cache(maxsize=65_536)
def exact(text: QuantityText) -> Fraction:
    """The quantity's value. Finer than a billionth is rounded up, as upstream does."""
    written = str(text)
    match = _FORM.fullmatch(written)
    if match is None or len(written) > _LONGEST:
        raise BadQuantity(text)
    sign, digits, exponent, suffix = match.groups()
    value = Fraction(digits)
    if exponent:
        # Beyond these bounds the value is too great, or finer than a billionth, whatever the digits are.
        value *= Fraction(10) ** max(-2 * _LONGEST, min(int(exponent), 2 * _LONGEST))
    elif suffix:
        value *= _SCALE[suffix]
    value = Fraction(-(-value * 10**9 // 1), 10**9)
    return -value if sign == "-" else value


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
    scale = _BINARY.get(text[-2:])
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
