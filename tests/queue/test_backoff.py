"""How long failed pods wait, in which order they return, and who may be tried early (Q20–Q27)."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.queue.builders import a_pod, a_queue, fail, names, popped, wait

from mooring.base.clock import ManualClock
from mooring.framework.events import NODE_ADDED
from mooring.queue.backoff import PodBackoff

DURATIONS = {
    "the defaults double up to ten seconds": ((1, 10), [1, 2, 4, 8, 10, 10]),
    "one failure is the initial, whatever the settings": ((3, 60), [3, 6, 12, 24, 48, 60]),
    "an initial above the cap is the cap": ((10, 4), [4, 4]),
    "a cap of nothing is no backoff": ((1, 0), [0, 0]),
    "exactly the cap is the cap": ((1, 8), [1, 2, 4, 8, 8]),
}


@pytest.mark.parametrize(("settings", "seconds"), DURATIONS.values(), ids=DURATIONS.keys())
def test_the_backoff_doubles_up_to_a_cap(settings, seconds):
    """Q21: backoff doubles up to the cap."""
    assert [PodBackoff(*settings).seconds(failures) for failures in range(1, len(seconds) + 1)] == seconds


def test_ten_thousand_failures_are_the_cap():
    """Q21: backoff doubles up to the cap."""
    assert PodBackoff(1, 10).seconds(10_000) == 10


@given(st.integers(1, 9), st.floats(0, 1, exclude_max=True), st.booleans())
def test_a_pod_returns_at_the_first_whole_second_after_its_window(failures, fraction, by_error):
    """Q20–Q23: the effective backoff is longer than the duration, by at most a second."""
    queue = a_queue(clock := ManualClock(start=1000.0 + fraction))
    queue.add(a_pod())
    for _ in range(failures):
        queue.activate([a_pod()])
        waiting = fail(queue, refused_by="" if by_error else "Headroom")
    queue.on_event(NODE_ADDED)
    failed, duration = waiting.timestamp, [1, 2, 4, 8, 10][min(failures, 5) - 1]

    release = queue.next_flush()
    assert release == math.floor(release)
    assert duration < release - failed <= duration + 1

    just_before = math.nextafter(release, 0.0)
    wait(queue, clock, just_before - clock.now())
    assert queue.where("web") == "backoff"
    wait(queue, clock, release - clock.now())
    assert queue.where("web") == "active"


def test_errors_in_a_row_count_before_refusals():
    """Q20: backoff counts errors in a row, else rejections."""
    queue = a_queue(clock := ManualClock(start=1000.0))
    queue.add(a_pod())
    for refused_by in ("Headroom", "Headroom", "Headroom", ""):
        fail(queue, refused_by=refused_by)
        release = queue.next_flush()
        queue.activate([a_pod()])
    assert release == clock.now() + 2  # the first error: one second, and strictly after it


def test_without_a_cap_there_is_no_backoff():
    """Q20: backoff counts errors in a row, else rejections."""
    queue = a_queue(max_backoff_seconds=0)
    queue.add(a_pod())
    fail(queue)
    assert queue.where("web") == "active"


def test_a_pod_that_waited_out_its_backoff_among_the_refused_is_active_at_once():
    """Q30: Queue means activeQ, or backoffQ while backoff lasts."""
    queue = a_queue(clock := ManualClock(start=1000.5))
    queue.add(a_pod())
    fail(queue, refused_by="Headroom")
    clock.advance(1.4)  # 1001.9: the window is second 1001, still backing off
    queue.on_event(NODE_ADDED)
    assert queue.where("web") == "backoff"

    queue.activate([a_pod()])
    fail(queue, refused_by="Headroom")  # failed at 1001.9 for the second time: window 1003
    clock.advance(2.1)  # 1004.0
    queue.on_event(NODE_ADDED)
    assert queue.where("web") == "active"


def test_priority_decides_inside_a_window_and_the_window_before_priority():
    """Q24: backoffQ is ordered by second, then by the sort plugin."""
    queue = a_queue(clock := ManualClock(start=1000.0))
    for name, priority in {"low": 0, "high": 9, "next-window": 99}.items():
        queue.add(a_pod(name, priority=priority))
        fail(queue, refused_by="Headroom")
        clock.advance(0.4 if name == "low" else 0.6)
    queue.on_event(NODE_ADDED)
    assert queue.counts()["backoff"] == 3
    assert names([queue.pop() for _ in range(4)]) == ["high", "low", "next-window", None]


def test_after_errors_only_the_window_orders():
    """Q24: both come out at once; then the active queue's order decides."""
    queue = a_queue(clock := ManualClock(start=1000.0))
    for name, priority in {"low": 0, "high": 9}.items():
        queue.add(a_pod(name, priority=priority))
        fail(queue)
    assert queue.pop() is None
    clock.advance(2)
    assert names([queue.pop(), queue.pop()]) == ["high", "low"]


def test_a_refused_pod_is_tried_early_when_no_other_pod_is_active():
    """Q25: the head of backoffQ is popped early, never after an error."""
    queue = a_queue()
    queue.add(a_pod("woken", priority=9))
    fail(queue, refused_by="Headroom")
    queue.on_event(NODE_ADDED)
    queue.add(a_pod("new"))
    assert names([queue.pop(), queue.pop()]) == ["new", "woken"]


def test_a_pod_after_an_error_is_never_tried_early():
    """Q25, Q26: the head of backoffQ is popped early, never after an error; without a rejecting plugin the pod backs
    off as after an error.
    """
    queue = a_queue(clock := ManualClock(start=1000.0))
    queue.add(a_pod())
    fail(queue)
    assert queue.pop() is None
    clock.advance(1.9)
    assert queue.pop() is None
    clock.advance(0.1)
    assert popped(queue).attempts == 2


def test_pop_does_what_time_has_made_due():
    """Q23: an ended backoff competes in the active queue, whether or not flush was called."""
    queue = a_queue(clock := ManualClock(start=1000.0))
    queue.add(a_pod("high", priority=9))
    fail(queue, refused_by="Headroom")
    queue.on_event(NODE_ADDED)
    queue.add(a_pod("low"))
    clock.advance(2)
    assert names([queue.pop(), queue.pop()]) == ["high", "low"]


class Bell:
    def __init__(self):
        self.rings = 0

    def __call__(self):
        self.rings += 1

    def rang(self):
        rings, self.rings = self.rings, 0
        return rings


def test_on_ready_rings_when_there_is_something_new_to_pop():
    """Q27: an entry wakes the scheduling loop."""
    bell = Bell()
    queue = a_queue(clock := ManualClock(), on_ready=bell)
    queue.add(a_pod("one"))
    assert bell.rang() == 1
    fail(queue, refused_by="Headroom")
    assert bell.rang() == 0
    queue.add(a_pod("two"))
    fail(queue, refused_by="Headroom")
    bell.rang()
    queue.on_event(NODE_ADDED)  # two pods enter backoff: one ring
    assert bell.rang() == 1
    wait(queue, clock, 3)
    assert bell.rang() == 1
    sleeps_until = queue.next_flush()
    fail(queue)  # no pod can be popped yet, but the next flush is earlier
    assert bell.rang() == 1
    assert queue.next_flush() < sleeps_until
    wait(queue, clock, 3)
    assert bell.rang() == 1


def test_on_ready_rings_when_the_move_is_complete():
    """Q27: who pops in the callback finds the pod."""
    found = []

    def pop_at_once():
        found.append(queue.pop())

    queue = a_queue(on_ready=pop_at_once)
    queue.add(a_pod())
    assert names(found) == ["web"]
