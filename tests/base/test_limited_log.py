"""Log lines with a limit for each message."""

from __future__ import annotations

from mooring.base.clock import ManualClock
from mooring.base.limited_log import LimitedLog, report_suppressed, shortened
from mooring.base.log import Log


def test_a_few_lines_a_minute_and_then_a_count(capfd):
    clock = ManualClock()
    limited = LimitedLog(Log("test"), now=clock.monotonic, lines=2)
    for at in range(5):
        limited.error("bad", at=at)
    limited.warning("other")
    clock.advance(60)
    limited.error("bad", at=9)
    lines = [line.partition("] ")[2] for line in capfd.readouterr().err.splitlines()]
    assert lines == ['"bad" at=0', '"bad" at=1', '"other"', '"bad" at=9 suppressed=3']


def test_a_flood_that_has_ended_is_counted(capfd):
    clock = ManualClock()
    limited = LimitedLog(Log("test"), now=clock.monotonic, lines=1)
    for _ in range(3):
        limited.info("bad")
    report_suppressed()
    assert "suppressed" not in capfd.readouterr().err
    clock.advance(60)
    report_suppressed()
    report_suppressed()
    written = capfd.readouterr().err
    assert written.count('"Log lines were suppressed" message="bad" suppressed=2') == 1


def test_a_silent_log_counts_nothing(capfd):
    limited = LimitedLog(Log("test", 9), lines=1)
    limited.info("bad")
    assert capfd.readouterr().err == ""


def test_what_clients_send_is_cut_and_can_be_written():
    assert shortened("x" * 300) == "x" * 256 + "… (300 characters)"
    assert shortened("a\udcff") == "a\\udcff"
