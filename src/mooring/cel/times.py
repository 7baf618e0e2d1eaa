"""Durations and timestamps: their texts, their fields and their arithmetic."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mooring.cel.budget import spend
from mooring.cel.errors import CelError
from mooring.cel.values import INT_LEAST, INT_MOST, Duration, Timestamp

_SECOND = 10**9
_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_PART = re.compile(r"(\d++\.?\d*+|\.\d++)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_MOMENT = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII)
_MOST_DIGITS, _MOST_DECIMALS = 19, 40
"""Of a number in a duration: more digits are more than Go can hold, more decimals are less than a nanosecond."""
_STEPS_TO_READ_A_ZONE = 5_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parsed_duration(text: str) -> Duration | None:
    """Go's `time.ParseDuration`: "1h30m", "-1.5s"; None where it is none."""
    sign, rest = (-1 if text[:1] == "-" else 1), text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return Duration(0)
    total, at = 0, 0
    while at < len(rest):
        match = _PART.match(rest, at)
        if match is None:
            return None
        whole, _, fraction = match.group(1).partition(".")
        whole, fraction = whole.lstrip("0"), fraction[:_MOST_DECIMALS]
        if len(whole) > _MOST_DIGITS:
            return None
        unit = _UNITS[match.group(2)]
        total += int(whole or 0) * unit + (int(fraction or 0) * unit // 10 ** len(fraction) if fraction else 0)
        at = match.end()
    nanoseconds = sign * total
    return Duration(nanoseconds) if at and INT_LEAST <= nanoseconds <= INT_MOST else None


def duration_text(value: Duration) -> str:
    """Seconds with as many decimals as a float needs."""
    seconds, rest = divmod(abs(value.nanoseconds), _SECOND)
    as_float = seconds + rest / 1e9
    text = repr(as_float if value.nanoseconds >= 0 else -as_float)
    if "e" in text:
        text = f"{as_float:.20f}".rstrip("0").rstrip(".")
        text = f"{float(repr(as_float)):.9f}".rstrip("0").rstrip(".")
        text = text if value.nanoseconds >= 0 else f"-{text}"
    return f"{text.removesuffix('.0')}s"


def parsed_timestamp(text: str) -> Timestamp | None:
    """RFC 3339; None where it is none. Beyond the years 1 to 9999 there is nothing in this form."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(each) for each in match.groups()[:6])
    fraction, sign, zone_hour, zone_minute = match.groups()[6:]
    zone = 0
    if sign:
        if int(zone_hour) > 24 or int(zone_minute) > 60:
            return None
        zone = (int(zone_hour) * 3600 + int(zone_minute) * 60) * (-1 if sign == "-" else 1)
    if year == 0 or hour > 23:
        return None
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    nanoseconds = int((fraction or "0")[:9].ljust(9, "0"))
    whole = (moment - _EPOCH) // timedelta(seconds=1) - zone
    return Timestamp(whole * _SECOND + nanoseconds, zone)


def timestamp_text(value: Timestamp) -> str:
    """RFC 3339 with as many decimals as there are, in the zone the timestamp was written in."""
    seconds, rest = divmod(value.nanoseconds, _SECOND)
    moment = _EPOCH + timedelta(seconds=seconds + value.zone_seconds)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    zone = "Z"
    if value.zone_seconds:
        minutes = abs(value.zone_seconds) // 60
        zone = f"{'-' if value.zone_seconds < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{moment:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + fraction + zone


def _zone(name: str) -> tzinfo:
    hours, colon, minutes = name.partition(":")
    if colon:
        try:
            offset = int(hours) * 60 + (-1 if name[0] == "-" else 1) * int(minutes)
            return timezone(timedelta(minutes=offset))
        except ValueError:
            raise CelError(f'strconv.Atoi: parsing "{hours}": invalid syntax') from None
    if name in ("", "UTC"):
        return UTC
    spend(_STEPS_TO_READ_A_ZONE)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CelError(f"unknown time zone {name}") from None


def _moment(value: Timestamp, zone: str) -> datetime:
    return (_EPOCH + timedelta(seconds=value.nanoseconds // _SECOND)).astimezone(_zone(zone))


def _from_moment(part: Callable[[datetime], int]) -> Callable[..., int]:
    def get(value: Timestamp, zone: str = "UTC") -> int:
        return part(_moment(value, zone))

    return get


TIMESTAMP_PARTS: dict[str, Callable[..., int]] = {
    "getFullYear": _from_moment(lambda moment: moment.year),
    "getMonth": _from_moment(lambda moment: moment.month - 1),
    "getDayOfYear": _from_moment(lambda moment: moment.timetuple().tm_yday - 1),
    "getDayOfMonth": _from_moment(lambda moment: moment.day - 1),
    "getDate": _from_moment(lambda moment: moment.day),
    "getDayOfWeek": _from_moment(lambda moment: moment.isoweekday() % 7),
    "getHours": _from_moment(lambda moment: moment.hour),
    "getMinutes": _from_moment(lambda moment: moment.minute),
    "getSeconds": _from_moment(lambda moment: moment.second),
}


def timestamp_milliseconds(value: Timestamp, zone: str = "UTC") -> int:
    _zone(zone)
    return value.nanoseconds % _SECOND // 10**6


def _truncated(nanoseconds: int, unit: int) -> int:
    whole = abs(nanoseconds) // unit
    return whole if nanoseconds >= 0 else -whole


DURATION_PARTS: dict[str, Callable[[Duration], int]] = {
    "getHours": lambda value: _truncated(value.nanoseconds, 3600 * _SECOND),
    "getMinutes": lambda value: _truncated(value.nanoseconds, 60 * _SECOND),
    "getSeconds": lambda value: _truncated(value.nanoseconds, _SECOND),
    "getMilliseconds": lambda value: _truncated(value.nanoseconds, 10**6),
}
