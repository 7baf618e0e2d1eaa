"""Schedules of CronJobs: the five fields of cron, `@daily` and its like, `@every 1h30m`, in a time zone.

Understood and refused as by the library that Kubernetes uses. Where clocks are put forward, times that are skipped do
not happen; where they are put back, times that come twice happen twice.
"""

from __future__ import annotations

import re
import zoneinfo
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Protocol

from mooring.base.durations import duration_seconds

LONGEST_SEARCH_YEARS = 5
"""A schedule without a time within so many years never has one: the 31st of February."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "


class BadSchedule(ValueError):
    """An invalid schedule; the text is the reason."""


class UnknownTimeZone(ValueError):
    """A name that is no time zone; the text names it."""


class Schedule(Protocol):
    """Moments, as seconds since the epoch."""

    def after(self, moment: float) -> float | None:
        """The first one later than this; None: there is none."""
        ...

    def latest(self, since: float, until: float) -> float | None:
        """The last one later than `since` and not later than `until`."""
        ...


@dataclass(frozen=True)
class Every:
    """At the same distance from one another, counted from the last."""

    seconds: int

    def after(self, moment: float) -> float | None:
        return int(moment) + self.seconds

    def latest(self, since: float, until: float) -> float | None:
        times = (int(until) - int(since)) // self.seconds
        return int(since) + times * self.seconds if times > 0 else None


@dataclass(frozen=True)
class CronFields:
    """When the clock of a time zone shows certain minutes, hours and days."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    """Whether a day of the month or a day of the week will do: where both are restricted."""
    zone: tzinfo

    def after(self, moment: float) -> float | None:
        minute = int(moment // 60) + 1
        local = self._local(minute)
        last_year = local.year + LONGEST_SEARCH_YEARS
        while local.year <= last_year:
            if local.month not in self.months:
                following = _midnight(local.year + local.month // 12, local.month % 12 + 1, 1, self.zone)
            elif not self._is_on(local):
                following = self._next_midnight(local)
            elif local.hour not in self.hours or not any(each >= local.minute for each in self.minutes):
                following = minute + 60 - local.minute
            elif local.minute not in self.minutes:
                following = minute + min(each for each in self.minutes if each >= local.minute) - local.minute
            else:
                return minute * 60
            minute = max(minute + 1, following)
            local = self._local(minute)
        return None

    def latest(self, since: float, until: float) -> float | None:
        found, none_after = self._until(since, until), until
        while found is not None and self._until(found, until) is not None:
            middle = (found + none_after) / 2
            if (later := self._until(middle, until)) is not None:
                found = later
            else:
                none_after = middle
        return found

    def _until(self, moment: float, until: float) -> float | None:
        following = self.after(moment)
        return following if following is not None and following <= until else None

    def _local(self, minute: int) -> datetime:
        return datetime.fromtimestamp(minute * 60, self.zone)

    def _is_on(self, local: datetime) -> bool:
        by_month, by_week = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        return by_month or by_week if self.either_day else by_month and by_week

    def _next_midnight(self, local: datetime) -> int:
        tomorrow = datetime.fromordinal(local.toordinal() + 1)
        return _midnight(tomorrow.year, tomorrow.month, tomorrow.day, self.zone)


def _midnight(year: int, month: int, day: int, zone: tzinfo) -> int:
    """The minute at which the day begins, also where clocks skip midnight."""
    return int(datetime(year, month, day, tzinfo=zone).timestamp() // 60)


def parse_schedule(text: str, zone: tzinfo = UTC) -> Schedule:
    """The schedule of a CronJob. Raises BadSchedule with the reason."""
    if text.startswith(_EVERY):
        return _every(text)
    if text.startswith("@") and text not in _DESCRIPTORS:
        raise BadSchedule(f"unrecognized descriptor: {text}")
    parts = _DESCRIPTORS.get(text, text).split()
    if not parts:
        raise BadSchedule("empty spec string")
    if len(parts) != 5:
        raise BadSchedule(f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]")
    minutes, _ = _values(parts[0], 0, 59)
    hours, _ = _values(parts[1], 0, 23)
    days, any_day = _values(parts[2], 1, 31)
    months, _ = _values(parts[3], 1, 12, _MONTHS)
    weekdays, any_weekday = _values(parts[4], 0, 6, _WEEKDAYS)
    return CronFields(minutes, hours, days, months, weekdays, not any_day and not any_weekday, zone)


def _every(text: str) -> Every:
    seconds = duration_seconds(text.removeprefix(_EVERY))
    if seconds is None:
        raise BadSchedule(f'failed to parse duration {text}: time: invalid duration "{text.removeprefix(_EVERY)}"')
    return Every(max(1, int(seconds)))


def _values(field: str, least: int, most: int, names: tuple[str, ...] = ()) -> tuple[frozenset[int], bool]:
    """The values that a field allows, and whether it is `*`."""
    values: set[int] = set()
    is_any = False
    for part in field.split(","):
        if part:
            found, is_star = _range(part, least, most, names)
            values |= set(found)
            is_any |= is_star
    return frozenset(values), is_any


def _range(part: str, least: int, most: int, names: tuple[str, ...]) -> tuple[range, bool]:
    bounds, *steps = part.split("/")
    low, *highs = bounds.split("-")
    is_star = low in ("*", "?")
    if is_star:
        start, end = least, most
    else:
        start = _number(low, least, names)
        if len(highs) > 1:
            raise BadSchedule(f"too many hyphens: {part}")
        end = _number(highs[0], least, names) if highs else start
    if len(steps) > 1:
        raise BadSchedule(f"too many slashes: {part}")
    step = _number(steps[0], least, ()) if steps else 1
    if steps and not highs:
        end = most
    if start < least:
        raise BadSchedule(f"beginning of range ({start}) below minimum ({least}): {part}")
    if end > most:
        raise BadSchedule(f"end of range ({end}) above maximum ({most}): {part}")
    if start > end:
        raise BadSchedule(f"beginning of range ({start}) beyond end of range ({end}): {part}")
    if step == 0:
        raise BadSchedule(f"step of range should be a positive number: {part}")
    return range(start, end + 1, step), is_star and step == 1


def _number(text: str, first: int, names: tuple[str, ...]) -> int:
    if text.lower() in names:
        return names.index(text.lower()) + first
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise BadSchedule(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    if len(text) > 18:
        raise BadSchedule(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": value out of range')
    number = int(text)
    if number < 0:
        raise BadSchedule(f"negative number ({number}) not allowed: {text}")
    return number


_ZONE_PART = re.compile(r"[A-Za-z._0-9+][A-Za-z.\-_0-9+]{0,13}")


def time_zone(name: str | None) -> tzinfo:
    """The time zone of that name, UTC without one; UnknownTimeZone otherwise."""
    if name is None or name == "UTC":
        return UTC
    is_safe = all(_ZONE_PART.fullmatch(part) and part not in (".", "..") for part in name.split("/"))
    if is_safe:
        try:
            return zoneinfo.ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, OSError, ValueError):
            if not zoneinfo.available_timezones():
                raise UnknownTimeZone(
                    f"unknown time zone {name}: this machine has no time zone database; install tzdata"
                ) from None
    raise UnknownTimeZone(f"unknown time zone {name}")
