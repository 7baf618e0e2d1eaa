"""Time layouts of Go: the reference time Mon Jan 2 15:04:05 MST 2006, written as times are to be read.

A layout becomes a regular expression once; texts are then read with it. What a text leaves out is as in Go: the year
0 and UTC. Names of zones are read and count as UTC, as Go does for those that it does not know.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

RFC3339 = "2006-01-02T15:04:05Z07:00"

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_OFFSET = r"[+-][0-9]{2}"
_PARTS = {
    "2006": r"(?P<year>[0-9]{4})",
    "06": r"(?P<year2>[0-9]{2})",
    "January": r"(?P<month_name>[A-Za-z]{3,9})",
    "Jan": r"(?P<month_name>[A-Za-z]{3})",
    "01": r"(?P<month>[0-9]{2})",
    "1": r"(?P<month>[0-9]{1,2})",
    "Monday": r"[A-Za-z]{6,9}",
    "Mon": r"[A-Za-z]{3}",
    "02": r"(?P<day>[0-9]{2})",
    "_2": r" ?(?P<day>[0-9]{1,2})",
    "2": r"(?P<day>[0-9]{1,2})",
    "15": r"(?P<hour>[0-9]{2})",
    "03": r"(?P<hour12>[0-9]{2})",
    "3": r"(?P<hour12>[0-9]{1,2})",
    "04": r"(?P<minute>[0-9]{2})",
    "4": r"(?P<minute>[0-9]{1,2})",
    "05": r"(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]+))?",
    "5": r"(?P<second>[0-9]{1,2})(?:[.,](?P<fraction>[0-9]+))?",
    "PM": r"(?P<half>[AP]M)",
    "pm": r"(?P<half>[ap]m)",
    "Z07:00": rf"(?P<offset>Z|{_OFFSET}:[0-9]{{2}})",
    "Z0700": rf"(?P<offset>Z|{_OFFSET}[0-9]{{2}})",
    "Z07": rf"(?P<offset>Z|{_OFFSET})",
    "-07:00": rf"(?P<offset>{_OFFSET}:[0-9]{{2}})",
    "-0700": rf"(?P<offset>{_OFFSET}[0-9]{{2}})",
    "-07": rf"(?P<offset>{_OFFSET})",
    "MST": r"[A-Z]{3,4}",
}
_FRACTION = r"[.,](?:0+|9+)(?![0-9])"
"""After the seconds it adds nothing: a text may have a fraction there anyway, as in Go."""
_PART = re.compile("|".join([_FRACTION, *map(re.escape, sorted(_PARTS, key=len, reverse=True))]))


class BadLayout(ValueError):
    """A layout that names a part of the time twice, or none."""


class GoTimeLayout:
    """A layout, ready to read texts."""

    def __init__(self, layout: str) -> None:
        pattern, end, parts = "", 0, 0
        for match in _PART.finditer(layout):
            pattern += re.escape(layout[end : match.start()])
            pattern += _PARTS.get(match[0], "")
            end, parts = match.end(), parts + 1
        if not parts:
            raise BadLayout(f'"{layout}" holds no part of Mon Jan 2 15:04:05 MST 2006, the time that Go layouts show')
        try:
            self._pattern = re.compile(pattern + re.escape(layout[end:]), re.ASCII)
        except re.error as error:
            raise BadLayout(f'"{layout}" names a part of the time twice') from error

    def seconds(self, text: str) -> float | None:
        """Seconds since the epoch; None: the text does not have this layout, or there is no such time."""
        match = self._pattern.fullmatch(text)
        if match is None:
            return None
        parts = match.groupdict()
        try:
            read = datetime(
                _year(parts),
                _month(parts),
                int(parts.get("day") or 1),
                _hour(parts),
                int(parts.get("minute") or 0),
                int(parts.get("second") or 0),
                tzinfo=_zone(parts.get("offset")),
            )
        except ValueError:
            return None
        fraction = parts.get("fraction")
        return (read - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() + (float(f"0.{fraction}") if fraction else 0.0)


def _year(parts: dict[str, str | None]) -> int:
    if two := parts.get("year2"):
        return int(two) + (1900 if int(two) >= 69 else 2000)
    return int(parts.get("year") or 1)


def _month(parts: dict[str, str | None]) -> int:
    if name := parts.get("month_name"):
        return _MONTHS.index(name[:3].lower()) + 1
    return int(parts.get("month") or 1)


def _hour(parts: dict[str, str | None]) -> int:
    if twelve := parts.get("hour12"):
        if not 0 <= int(twelve) <= 12:
            raise ValueError(twelve)
        half = (parts.get("half") or "AM").upper()
        return int(twelve) % 12 + 12 if half == "PM" else int(twelve) % 12 if parts.get("half") else int(twelve)
    return int(parts.get("hour") or 0)


def _zone(offset: str | None) -> timezone:
    if not offset or offset == "Z":
        return UTC
    digits = offset[1:].replace(":", "")
    delta = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
    return timezone(-delta if offset[0] == "-" else delta)
