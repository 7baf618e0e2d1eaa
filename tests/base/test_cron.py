"""When the schedules of CronJobs come due."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.base.cron import BadSchedule, UnknownTimeZone, parse_schedule, time_zone

BERLIN = ZoneInfo("Europe/Berlin")
SAO_PAULO = ZoneInfo("America/Sao_Paulo")


def at(text: str, zone=UTC) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


def shown(moment: float | None, zone=UTC) -> str | None:
    return None if moment is None else datetime.fromtimestamp(moment, zone).strftime("%Y-%m-%dT%H:%M:%S")


NEXT = {
    "every minute": ("* * * * *", "2026-01-31T23:59:30", "2026-02-01T00:00:00"),
    "strictly later": ("0 12 * * *", "2026-01-01T12:00:00", "2026-01-02T12:00:00"),
    "steps": ("*/15 * * * *", "2026-01-01T12:16:00", "2026-01-01T12:30:00"),
    "steps from a number": ("5/20 * * * *", "2026-01-01T12:30:00", "2026-01-01T12:45:00"),
    "steps in a range": ("0 8-18/4 * * *", "2026-01-01T12:30:00", "2026-01-01T16:00:00"),
    "lists": ("0,30 9,17 * * *", "2026-01-01T09:30:00", "2026-01-01T17:00:00"),
    "names of months and days": ("0 0 * FEB mon", "2026-01-01T00:00:00", "2026-02-02T00:00:00"),
    "sunday is 0": ("0 0 * * 0", "2026-01-01T00:00:00", "2026-01-04T00:00:00"),
    "a day of the month or of the week": ("0 0 13 * 5", "2026-01-03T00:00:00", "2026-01-09T00:00:00"),
    "either of them": ("0 0 13 * 5", "2026-01-09T00:00:00", "2026-01-13T00:00:00"),
    "both where one is open": ("0 0 ? * 5", "2026-01-09T00:00:00", "2026-01-16T00:00:00"),
    "a step over all days is a restriction": ("0 0 */2 * 1", "2026-01-01T00:00:00", "2026-01-03T00:00:00"),
    "a leap day": ("0 0 29 2 *", "2026-01-01T00:00:00", "2028-02-29T00:00:00"),
    "never": ("59 23 31 2 *", "2026-01-01T00:00:00", None),
    "nothing is listed": (", * * * *", "2026-01-01T00:00:00", None),
    "@hourly": ("@hourly", "2026-01-01T12:16:00", "2026-01-01T13:00:00"),
    "@daily": ("@daily", "2026-01-01T12:16:00", "2026-01-02T00:00:00"),
    "@weekly": ("@weekly", "2026-01-01T12:16:00", "2026-01-04T00:00:00"),
    "@monthly": ("@monthly", "2026-01-01T12:16:00", "2026-02-01T00:00:00"),
    "@yearly": ("@yearly", "2026-01-01T12:16:00", "2027-01-01T00:00:00"),
    "@every": ("@every 1h30m", "2026-01-01T12:16:05", "2026-01-01T13:46:05"),
    "@every, not more often than each second": ("@every 1ms", "2026-01-01T12:16:05", "2026-01-01T12:16:06"),
}


@pytest.mark.parametrize(("text", "moment", "expected"), NEXT.values(), ids=NEXT.keys())
def test_when_a_schedule_comes_due_next(text, moment, expected):
    assert shown(parse_schedule(text).after(at(moment))) == expected


ZONED = {
    "an hour of the zone's clock": (BERLIN, "0 9 * * *", "2026-07-01T10:00:00", "2026-07-02T09:00:00"),
    "what is skipped in spring does not happen": (BERLIN, "30 2 * * *", "2026-03-29T00:00:00", "2026-03-30T02:30:00"),
    "the hours around it do": (BERLIN, "0 * * * *", "2026-03-29T01:00:00", "2026-03-29T03:00:00"),
    "a day that begins at one": (SAO_PAULO, "0 5 * * 0", "2018-11-03T06:00:00", "2018-11-04T05:00:00"),
}


@pytest.mark.parametrize(("zone", "text", "moment", "expected"), ZONED.values(), ids=ZONED.keys())
def test_schedules_follow_their_time_zone(zone, text, moment, expected):
    assert shown(parse_schedule(text, zone).after(at(moment, zone)), zone) == expected


def test_what_comes_twice_in_autumn_happens_twice():
    schedule = parse_schedule("30 2 * * *", BERLIN)
    first = schedule.after(at("2026-10-25T01:00:00", BERLIN))
    assert first is not None
    assert shown(first) == "2026-10-25T00:30:00"
    assert shown(schedule.after(first)) == "2026-10-25T01:30:00"


BAD = {
    "nothing": ("  ", "empty spec string"),
    "too few fields": ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
    "seconds": ("0 0 0 * * *", "expected exactly 5 fields, found 6: [0 0 0 * * *]"),
    "a minute too many": ("60 * * * *", "end of range (60) above maximum (59): 60"),
    "a day too few": ("0 0 0 * *", "beginning of range (0) below minimum (1): 0"),
    "seven is no sunday": ("0 0 * * 7", "end of range (7) above maximum (6): 7"),
    "a range that runs backwards": ("9-5 * * * *", "beginning of range (9) beyond end of range (5): 9-5"),
    "a step of nothing": ("*/0 * * * *", "step of range should be a positive number: */0"),
    "a word": ("noon * * * *", 'failed to parse int from noon: strconv.Atoi: parsing "noon": invalid syntax'),
    "two hyphens": ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
    "two slashes": ("*/1/2 * * * *", "too many slashes: */1/2"),
    "an endless number": ("9" * 30 + " * * * *", "value out of range"),
    "an unknown descriptor": ("@noon", "unrecognized descriptor: @noon"),
    "no duration": ("@every now", 'failed to parse duration @every now: time: invalid duration "now"'),
}


@pytest.mark.parametrize(("text", "why"), BAD.values(), ids=BAD.keys())
def test_a_bad_schedule_is_refused_with_the_reason(text, why):
    with pytest.raises(BadSchedule) as refusal:
        parse_schedule(text)
    assert why in str(refusal.value)


fields = st.tuples(
    st.sampled_from(["*", "*/7", "0", "13,44", "50-59"]),
    st.sampled_from(["*", "3", "*/5", "22-23"]),
    st.sampled_from(["*", "1", "31", "*/10"]),
    st.sampled_from(["*", "2", "jan-mar", "*/5"]),
    st.sampled_from(["*", "0", "mon-fri"]),
)


@given(fields, st.integers(1_600_000_000, 1_900_000_000), st.sampled_from([UTC, BERLIN, SAO_PAULO]))
def test_the_next_moment_matches_and_none_before_it_does(parts, moment, zone):
    schedule = parse_schedule(" ".join(parts), zone)
    found = schedule.after(moment)
    if found is not None:
        assert found > moment
        assert schedule.after(found - 1) == found
        assert schedule.latest(moment, found) == found
        assert schedule.latest(moment, found - 1) is None


@given(fields, st.integers(1_600_000_000, 1_900_000_000), st.integers(0, 400_000))
def test_the_latest_moment_is_the_last_of_those_that_come(parts, since, seconds):
    schedule = parse_schedule(" ".join(parts))
    last, following = None, schedule.after(since)
    for _ in range(10_000):
        if following is None or following > since + seconds:
            break
        last, following = following, schedule.after(following)
    assert schedule.latest(since, since + seconds) == last


def test_the_latest_of_equal_distances_is_counted_from_the_last():
    schedule = parse_schedule("@every 90s")
    assert schedule.latest(1000, 1089) is None
    assert schedule.latest(1000, 1300) == 1270


@pytest.mark.parametrize("name", ["Europe/Berlin", "UTC", "Etc/GMT+5", "America/Argentina/Buenos_Aires"])
def test_a_time_zone_is_known_by_its_name(name):
    assert str(time_zone(name)) == name


@pytest.mark.parametrize("name", ["Mars/Base", "../etc/passwd", "", "/etc/localtime", "Europe//Berlin", "-x", "Europe"])
def test_another_name_is_refused(name):
    with pytest.raises(UnknownTimeZone, match="unknown time zone"):
        time_zone(name)
