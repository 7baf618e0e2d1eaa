"""Durations as Go writes them: "15s", "1h30m", "1.5ms"."""

from __future__ import annotations

import re
from fractions import Fraction

_UNITS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}
_PART = r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)"
_DURATION = re.compile(rf"([+-]?)((?:{_PART})+|0)", re.ASCII)
_MOST_SECONDS = Fraction(2**63, 10**9)


def duration_seconds(text: str) -> float | None:
    """The duration in seconds; None if the text is none, or more than Go can hold (292 years)."""
    match = _DURATION.fullmatch(text)
    if match is None or len(text) > 100:
        return None
    total = sum((Fraction(number) * _UNITS[unit] for number, unit in re.findall(_PART, match[2])), Fraction(0))
    if total >= _MOST_SECONDS:
        return None
    return float(-total if match[1] == "-" else total)
