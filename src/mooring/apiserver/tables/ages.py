"""Durations as kubectl prints them: `5s`, `3m20s`, `4h`, `2d3h`, `1y40d`."""

from __future__ import annotations

from mooring.base.clock import parse_timestamp

UNKNOWN, INVALID = "<unknown>", "<invalid>"


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
    """About two significant figures; a moment in the near future is "0s", one far ahead "<invalid>"."""
    whole = int(seconds)
    if whole < -1:
        return INVALID
    if whole < 0:
        return "0s"
    if whole < 120:
        return f"{whole}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86_400
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _two(days, "d", hours % 24, "h")
    if hours < 24 * 365 * 2:
        return f"{days}d"
    if hours < 24 * 365 * 8:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
