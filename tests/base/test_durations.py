"""Durations in Go's notation, both ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.base.durations import duration_seconds, go_duration

READ = {
    "15s": 15.0,
    "5m": 300.0,
    "5m0s": 300.0,
    "1h30m": 5400.0,
    "1h15m30.5s": 4530.5,
    "100ms": 0.1,
    "1.5ms": 0.0015,
    "100us": 0.0001,
    "100µs": 0.0001,
    "-2m": -120.0,
    "+1s": 1.0,
    ".5s": 0.5,
    "0": 0.0,
    "1ns": 1e-9,
    "1.9ns": 1e-9,
    "0.9ns": 0.0,
    "0.5ns0.5ns": 0.0,
    "-0.1ns": 0.0,
    "": None,
    "5": None,
    "s": None,
    "1 s": None,
    "1d": None,
    "1s\n": None,
    "9999999h": None,
}


@pytest.mark.parametrize(("text", "seconds"), READ.items(), ids=READ.keys())
def test_durations_are_read_as_go_reads_them(text, seconds):
    assert duration_seconds(text) == (seconds if seconds is None else pytest.approx(seconds, abs=0))


@pytest.mark.parametrize("text", ["1" * 50_000 + "s", "1s" * 50_000], ids=["digits", "parts"])
def test_a_long_text_is_no_duration(text):
    assert duration_seconds(text) is None


@given(st.text(alphabet="0123456789.hmsnuµ+-", max_size=12))
def test_any_text_is_a_duration_or_none(text):
    seconds = duration_seconds(text)
    assert seconds is None or abs(seconds) < 2**63 / 10**9


WRITTEN = {
    0: "0s",
    1e-9: "1ns",
    0.0000015: "1.5µs",
    0.0004: "400µs",
    0.5: "500ms",
    0.85: "850ms",
    0.9999999: "999.9999ms",
    1.25: "1.25s",
    2.0: "2s",
    15: "15s",
    90: "1m30s",
    300: "5m0s",
    3600: "1h0m0s",
    3661.001: "1h1m1.001s",
    -90: "-1m30s",
}


@pytest.mark.parametrize(("seconds", "text"), WRITTEN.items(), ids=WRITTEN.values())
def test_durations_are_written_as_go_writes_them(seconds, text):
    assert go_duration(seconds) == text


@given(st.integers(-(10**15), 10**15))
def test_what_is_written_reads_back_the_same(nanos):
    assert duration_seconds(go_duration(nanos / 10**9)) == pytest.approx(nanos / 10**9, rel=1e-12, abs=1e-10)
