"""What brings a pod back without an event: the timeout, activation, a requested retry (Q41, Q42)."""

import pytest
from tests.queue.builders import WAITING_PLACES, Recorded, a_pod, a_queue, fail, popped, scheduling_gates, wait

from mooring.base.clock import ManualClock
from mooring.framework.verdicts import Refusal
from mooring.queue import SchedulingQueue


def test_no_pod_waits_longer_than_the_limit_and_the_next_half_minute():
    """Q41: unschedulable pods are flushed after five minutes."""
    queue = a_queue(clock := ManualClock(start=1000.0))
    clock.advance(10)
    queue.add(a_pod())
    waiting = fail(queue, refused_by="Headroom")
    wait(queue, clock, 300)  # 1310: not older than the limit
    assert queue.where("web") == "unschedulable"
    wait(queue, clock, 29)
    assert queue.where("web") == "unschedulable"
    wait(queue, clock, 1)
    assert queue.where("web") == "active"  # its backoff ended long ago
    assert waiting.was_flushed


def test_the_limit_can_be_set():
    """Q41: unschedulable pods are flushed after five minutes."""
    queue = a_queue(clock := ManualClock(), max_unschedulable_seconds=40)
    queue.add(a_pod())
    fail(queue, refused_by="Headroom")
    wait(queue, clock, 30)
    assert queue.where("web") == "unschedulable"
    wait(queue, clock, 30)
    assert queue.where("web") == "active"


def test_the_next_failure_forgets_the_flush():
    """Q18, Q41: a failure resets timestamp and flush; unschedulable pods are flushed after five minutes."""
    queue = a_queue(clock := ManualClock(), max_unschedulable_seconds=40)
    queue.add(a_pod())
    fail(queue, refused_by="Headroom")
    wait(queue, clock, 60)
    assert not fail(queue, refused_by="Headroom").was_flushed


def test_pre_enqueue_runs_again_at_the_flush_and_then_not_before_the_limit():
    """Q41: unschedulable pods are flushed after five minutes."""
    quota = Recorded(Refusal("over quota"))
    queue = a_queue(clock := ManualClock(), gates=[("Quota", quota)], max_unschedulable_seconds=40)
    queue.add(a_pod())
    calls = []
    for _ in range(12):
        wait(queue, clock, 10)
        calls.append(len(quota.calls))
    assert calls == [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3]


def test_a_pod_that_its_gate_keeps_out_at_the_flush_is_not_brought_back_by_it():
    """Q41: unschedulable pods are flushed after five minutes."""
    quota = Recorded(Refusal("over quota"))
    queue = a_queue(clock := ManualClock(), gates=[("Quota", quota)], max_unschedulable_seconds=40)
    queue.add(a_pod())
    wait(queue, clock, 60)
    assert len(quota.calls) == 2
    quota.result = None
    queue.activate([a_pod()])
    assert not popped(queue).was_flushed


def test_a_flush_counts_for_pods_that_are_in_flight():
    """Q32, Q41: events are recorded while a pod is in flight; unschedulable pods are flushed after five minutes."""
    queue = a_queue(clock := ManualClock(), max_unschedulable_seconds=20)
    queue.add(a_pod("one"))
    fail(queue, refused_by="Headroom")
    queue.add(a_pod("two"))
    two = popped(queue)
    wait(queue, clock, 30)
    queue.requeue(two, unschedulable=["Headroom"])
    assert queue.where("two") == "backoff"


def test_a_clock_that_was_set_back_does_not_put_off_the_flush():
    queue = a_queue(clock := ManualClock(start=10_000.0), max_unschedulable_seconds=1)
    wait(queue, clock, -5000)
    queue.add(a_pod())
    fail(queue, refused_by="Headroom")
    wait(queue, clock, 30)
    assert queue.where("web") == "active"


@pytest.mark.parametrize("place", WAITING_PLACES)
def test_activation_brings_a_pod_from_any_place_past_backoff_but_not_past_its_gate(place):
    """Q42: activation skips backoff, not PreEnqueue."""
    queue = a_queue(gates=[("Gates", scheduling_gates)])
    queue.add(pod := a_pod(gates=["hold"] if place == "gated" else []))
    if place in ("backoff", "unschedulable"):
        fail(queue, refused_by="Headroom" if place == "unschedulable" else "")
    assert queue.where(pod) == place
    queue.activate([pod])
    assert queue.where(pod) == ("gated" if place == "gated" else "active")


def test_activating_an_unknown_pod_is_nothing():
    """Q42: activation skips backoff, not PreEnqueue."""
    queue = a_queue()
    queue.activate([a_pod()])
    assert queue.where("web") == "absent"


def test_activating_a_pod_in_flight_brings_it_back_after_backoff():
    """Q42: activation skips backoff, not PreEnqueue."""
    queue = a_queue()
    queue.add(a_pod())
    waiting = popped(queue)
    queue.activate([waiting.pod])
    queue.requeue(waiting, unschedulable=["Headroom"])
    assert queue.where("web") == "backoff"


def test_a_requested_retry_comes_when_it_is_due():
    queue = a_queue(clock := ManualClock(start=1000.0))
    queue.add(a_pod())
    waiting = popped(queue)
    queue.retry_after(waiting.pod, 5)
    queue.requeue(waiting, unschedulable=["Headroom"])
    assert queue.next_flush() == 1005.0
    wait(queue, clock, 4.9)
    assert queue.where("web") == "unschedulable"
    wait(queue, clock, 0.1)
    assert queue.where("web") == "active"


def test_the_time_of_the_next_attempt_is_that_of_a_requested_retry():
    queue = a_queue(clock := ManualClock(start=1000.0))
    queue.add(a_pod())
    waiting = popped(queue)
    queue.retry_after(waiting.pod, 5)
    queue.retry_after(waiting.pod, 8)
    queue.requeue(waiting, unschedulable=["Headroom"])
    assert queue.next_attempt(waiting) == 1005.0
    wait(queue, clock, 5)
    assert queue.next_attempt(waiting) is None, "it is active"


def test_a_retry_makes_the_next_flush_earlier():
    rung: list[str] = []
    queue = a_queue(ManualClock(start=1000.0), on_ready=lambda: rung.append("again"))
    queue.add(pod := a_pod())
    fail(queue, refused_by="Headroom")
    rung.clear()
    queue.retry_after(pod, 5)
    assert (rung, queue.next_flush()) == (["again"], 1005.0)


def test_a_retry_for_a_pod_that_is_gone_is_nothing():
    queue = a_queue(clock := ManualClock())
    queue.add(pod := a_pod())
    queue.retry_after(pod, 5)
    queue.delete(pod)
    wait(queue, clock, 5)
    assert queue.where("web") == "absent"


def test_a_pod_whose_retry_is_due_is_popped_without_a_flush():
    queue = a_queue()
    queue.add(pod := a_pod())
    fail(queue, refused_by="Headroom")
    queue.retry_after(pod, 0)
    assert popped(queue).pod is pod


def test_the_next_flush_is_the_nearest_of_all_that_time_brings():
    queue = a_queue(clock := ManualClock(start=1000.0))
    assert queue.next_flush() == 1030.0
    queue.add(pod := a_pod())
    fail(queue)
    assert queue.next_flush() == 1002.0
    queue.retry_after(pod, 0.5)
    assert queue.next_flush() == 1000.5
    wait(queue, clock, 0.5)
    assert queue.where("web") == "active"
    assert queue.next_flush() == 1030.0


def flush_until(queue: SchedulingQueue, clock: ManualClock, moment: float) -> None:
    """As the scheduler does: whenever something is due."""
    while (due := queue.next_flush()) <= moment:
        wait(queue, clock, due - clock.now())
    wait(queue, clock, moment - clock.now())


def test_the_time_of_the_next_attempt_is_when_it_happens():
    """What explanations show: the end of a backoff, or the flush of pods that are unschedulable for too long."""
    queue = a_queue(clock := ManualClock(start=1000.3), max_unschedulable_seconds=60)
    queue.add(a_pod())
    waiting = queue.pop()
    assert waiting is not None
    assert queue.next_attempt(waiting) is None, "in flight"
    queue.requeue(waiting, unschedulable=["Headroom"])
    due = queue.next_attempt(waiting)
    assert due is not None
    flush_until(queue, clock, due - 0.01)
    assert queue.where("web") == "unschedulable"
    flush_until(queue, clock, due + 0.01)
    assert queue.where("web") != "unschedulable"

    failing = queue.pop()
    assert failing is not None
    queue.requeue(failing)  # by an error
    assert queue.where("web") == "backoff"
    due = queue.next_attempt(failing)
    assert due is not None
    flush_until(queue, clock, due - 0.01)
    assert queue.where("web") == "backoff"
    flush_until(queue, clock, due + 0.01)
    assert queue.where("web") == "active"
    assert queue.next_attempt(failing) is None
