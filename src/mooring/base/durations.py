"""Durations as Go reads and prints them: "15s", "1h30m", "1.5ms".

Seconds here, text in configuration files, flags, messages and events.
"""

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
_LONGEST = 100
_MOST_SECONDS = Fraction(2**63, 10**9)


def duration_seconds(text: str) -> float | None:
    """The duration in seconds; None if the text is none, or more than Go can hold (292 years).

    Of each part, what is less than a nanosecond is cut.
    """
    match = _DURATION.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        return None
    nanos = sum(int(Fraction(number) * _UNITS[unit] * 10**9) for number, unit in re.findall(_PART, match[2]))
    total = Fraction(nanos, 10**9)
    if total >= _MOST_SECONDS:
        return None
    return float(-total if match[1] == "-" else total)


def go_duration(seconds: float) -> str:
    """As Go prints it: `1h0m0s`, `5m0s`, `1.25s`, `850ms`, `0s`; to the nanosecond."""
    nanos = round(abs(seconds) * 10**9)
    sign = "-" if seconds < 0 and nanos else ""
    for unit, size in (("ns", 1), ("µs", 10**3), ("ms", 10**6)):
        if 0 < nanos < size * 1000:
            return f"{sign}{_decimal(nanos, size)}{unit}"
    minutes, rest = divmod(nanos, 60 * 10**9)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, 10**9)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{sign}{hours}h{text}" if hours else f"{sign}{text}"


def _decimal(nanos: int, size: int) -> str:
    """The quotient with as many decimals as it needs: whole numbers, because a float would round."""
    whole, rest = divmod(nanos, size)
    decimals = f"{rest:0{len(str(size)) - 1}d}".rstrip("0") if rest else ""
    return f"{whole}.{decimals}" if decimals else str(whole)
