"""Other rules while pods wait: no pod is lost, and none waits for what only the old rules would have brought."""

from __future__ import annotations

import pytest
from tests.queue.builders import NODE_HINT, Recorded, a_pod, a_queue, fail, popped, wait

from mooring.base.clock import ManualClock
from mooring.framework.events import NODE_ADDED
from mooring.framework.verdicts import Refusal
from mooring.queue import ProfileRules, SchedulingQueue

SCHEDULER = "default-scheduler"
CLOSED = Recorded(Refusal("closed"))


def adopt(queue: SchedulingQueue, rules: ProfileRules, *, initial: float = 1.0, longest: float = 10.0) -> None:
    queue.set_profiles({SCHEDULER: rules}, initial_backoff_seconds=initial, max_backoff_seconds=longest)


def test_a_refused_pod_backs_off_instead_of_waiting_for_a_plugin_that_is_gone():
    queue = a_queue()
    queue.add(a_pod("web"))
    fail(queue, refused_by="Headroom")
    adopt(queue, ProfileRules())
    assert queue.where("web") == "backoff"


def test_a_gated_pod_enters_when_the_new_rules_have_no_gate():
    queue = a_queue(gates=[("Gate", CLOSED)])
    queue.add(a_pod("web"))
    assert queue.where("web") == "gated"
    adopt(queue, ProfileRules())
    assert queue.where("web") == "active"


@pytest.mark.parametrize("place", ["active", "backoff", "backoff after an error", "unschedulable"])
def test_the_new_pre_enqueue_runs_for_every_pod_wherever_it_waits(place):
    queue = a_queue()
    queue.add(a_pod("web"))
    if place == "backoff after an error":
        fail(queue)
    elif place != "active":
        fail(queue, refused_by="Headroom")
    if place == "backoff":
        queue.on_event(NODE_ADDED)
    adopt(queue, ProfileRules(pre_enqueue=[("Gate", CLOSED)]))
    assert queue.where("web") == "gated"
    assert queue.pop() is None
    adopt(queue, ProfileRules())
    assert queue.where("web") != "gated"
    assert len(queue) == 1


def test_a_pod_in_flight_that_the_old_rules_refuse_is_tried_again():
    queue = a_queue()
    queue.add(a_pod("web"))
    waiting = popped(queue)
    adopt(queue, ProfileRules())
    queue.requeue(waiting, unschedulable=["Gone"])
    assert queue.where("web") == "backoff"


def test_events_are_matched_by_the_new_hints():
    queue = a_queue(hints={"Old": [NODE_HINT]})
    adopt(queue, ProfileRules(hints={"New": [NODE_HINT]}))
    for name, plugin in (("one", "Old"), ("two", "New")):
        queue.add(a_pod(name))
        fail(queue, refused_by=plugin)
    queue.on_event(NODE_ADDED)
    assert (queue.where("one"), queue.where("two")) == ("unschedulable", "backoff")


def test_the_new_backoffs_count_from_the_next_failure_on():
    queue = a_queue(clock := ManualClock())
    adopt(queue, ProfileRules(), initial=100.0, longest=200.0)
    queue.add(a_pod("web"))
    fail(queue)
    wait(queue, clock, 50)
    assert queue.where("web") == "backoff"
    wait(queue, clock, 51)
    assert queue.where("web") == "active"


def test_on_ready_is_called_when_a_pod_can_be_popped():
    rings: list[None] = []
    queue = a_queue(gates=[("Gate", CLOSED)], on_ready=lambda: rings.append(None))
    queue.add(a_pod("web"))
    assert not rings
    adopt(queue, ProfileRules())
    assert rings
