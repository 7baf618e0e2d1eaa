"""Durations as kubectl prints them: `5s`, `3m20s`, `4h`, `2d3h`, `1y40d`."""

from __future__ import annotations

from mooring.base.clock import parse_timestamp

UNKNOWN, INVALID = "<unknown>", "<invalid>"
SECONDS_IN = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "y": 365 * 86_400}
# Ages below a limit are printed in this unit, and the remainder in the smaller one: about two significant figures.
SCALES = (
    (2, "m", "s", ""),
    (10, "m", "m", "s"),
    (3, "h", "m", ""),
    (8, "h", "h", "m"),
    (48, "h", "h", ""),
    (8, "d", "d", "h"),
    (2, "y", "d", ""),
    (8, "y", "y", "d"),
)


def age(created: str | None, now: float) -> str:
    """How long ago that was."""
    if not created:
        return UNKNOWN
    try:
        return human_duration(now - parse_timestamp(created))
    except ValueError:
        # A custom resource may hold any text where its column expects a date.
        return INVALID


def human_duration(seconds: float) -> str:
    """How long that is; a moment in the near future is "0s", one far ahead "<invalid>"."""
    whole = int(seconds)
    if whole < 0:
        return "0s" if whole == -1 else INVALID
    unit, rest_unit = next(
        ((unit, smaller) for limit, of, unit, smaller in SCALES if whole < limit * SECONDS_IN[of]), ("y", "")
    )
    count, rest = divmod(whole, SECONDS_IN[unit])
    rest = rest // SECONDS_IN[rest_unit] if rest_unit else 0
    return f"{count}{unit}{rest}{rest_unit}" if rest else f"{count}{unit}"
