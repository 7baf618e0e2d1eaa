"""Where a pod is from its arrival to its departure, and which is popped first (Q1–Q9, Q49, Q50)."""

from collections import Counter

import pytest
from tests.queue.builders import (
    GATES_ELIMINATED,
    NODE_HINT,
    SERVICE_CHANGED,
    WAITING_PLACES,
    a_pod,
    a_queue,
    fail,
    names,
    popped,
    scheduling_gates,
    wait,
)

from mooring.base.clock import ManualClock
from mooring.framework.events import NODE_ADDED
from mooring.queue import ProfileRules


def test_a_refused_pod_waits_for_the_event_its_plugin_named():
    """Q28–Q30, Q22: the story of most pods, once as a whole."""
    queue = a_queue(clock := ManualClock(), hints={"Headroom": [NODE_HINT]})
    queue.add(a_pod("web"))
    fail(queue, refused_by="Headroom")

    queue.on_event(SERVICE_CHANGED)
    assert queue.where("web") == "unschedulable"

    queue.on_event(NODE_ADDED)
    assert queue.where("web") == "backoff"

    wait(queue, clock, seconds=2)  # backoff ends at whole seconds, strictly after its window
    assert queue.where("web") == "active"


def test_a_new_pod_is_active_and_has_not_been_tried():
    """Q2: PreEnqueue admits a new pod or gates it."""
    queue = a_queue()
    queue.add(pod := a_pod())
    assert queue.where(pod) == "active"
    found = queue.find(pod.uid)
    assert found is not None
    assert found.attempts == 0


def test_a_pod_is_found_by_object_uid_key_and_name():
    queue = a_queue()
    queue.add(pod := a_pod("web"))
    assert {queue.where(it) for it in (pod, pod.uid, "shop/web", "web")} == {"active"}
    assert queue.where("db") == "absent"


def test_the_first_readiness_is_remembered_for_good():
    """Q3: the first entry into activeQ sets the time of the first attempt."""
    queue = a_queue(clock := ManualClock(start=100.0))
    queue.add(a_pod())
    waiting = fail(queue)
    wait(queue, clock, 5)
    assert queue.where("web") == "active"
    assert (waiting.initial_attempt, waiting.timestamp) == (100.0, 100.0)
    clock.advance(1)
    fail(queue)
    assert (waiting.initial_attempt, waiting.timestamp) == (100.0, 106.0)


def test_a_gated_pod_is_not_ready_yet():
    """Q3: the first entry into activeQ sets the time of the first attempt."""
    queue = a_queue(
        clock := ManualClock(start=100.0), hints={"Gates": [GATES_ELIMINATED]}, gates=[("Gates", scheduling_gates)]
    )
    queue.add(gated := a_pod(gates=["hold"]))
    clock.advance(7)
    queue.update(gated, a_pod())
    assert popped(queue).initial_attempt == 107.0


@pytest.mark.parametrize("place", WAITING_PLACES)
def test_a_deleted_pod_leaves_whichever_place_it_is_in(place):
    """Q5: a deleted pod leaves its place."""
    queue = a_queue(gates=[("Gates", scheduling_gates)])
    queue.add(pod := a_pod(gates=["hold"] if place == "gated" else []))
    if place in ("backoff", "unschedulable"):
        fail(queue, refused_by="Headroom" if place == "unschedulable" else "")
    assert queue.where(pod) == place

    queue.delete(pod)
    assert queue.where(pod) == "absent"
    assert len(queue) == 0
    assert set(queue.counts().values()) == {0}
    assert queue.pop() is None
    queue.on_event(NODE_ADDED)
    assert queue.where(pod) == "absent"


def test_a_pod_deleted_during_its_attempt_is_dropped_when_the_attempt_ends():
    """Q5: a deleted pod leaves its place."""
    queue = a_queue()
    queue.add(pod := a_pod())
    waiting = popped(queue)
    queue.delete(pod)
    assert queue.where(pod) == "in flight"
    queue.requeue(waiting, unschedulable=["Headroom"])
    assert queue.where(pod) == "absent"


def test_deleting_an_unknown_pod_is_nothing():
    """Q5: a deleted pod leaves its place."""
    queue = a_queue()
    queue.add(pod := a_pod("known"))
    queue.delete(a_pod("unknown"))
    assert (queue.where(pod), len(queue)) == ("active", 1)


def test_higher_priority_first_then_the_earlier():
    """Q6: one queue, ordered by the sort plugin."""
    queue = a_queue(clock := ManualClock())
    for name, priority in {"late": 0, "low": -1, "high": 10, "later": 0}.items():
        queue.add(a_pod(name, priority=priority))
        clock.advance(1)
    assert names([queue.pop() for _ in range(5)]) == ["high", "late", "later", "low", None]


def test_profiles_share_one_order():
    """Q6: one queue, ordered by the sort plugin."""
    queue = a_queue(profiles={"batch": ProfileRules(), "default-scheduler": ProfileRules()})
    queue.add(a_pod("one", scheduler="default-scheduler"))
    queue.add(a_pod("two", scheduler="batch", priority=5))
    assert names([queue.pop(), queue.pop()]) == ["two", "one"]


def test_pop_counts_attempts_and_keeps_who_refused_until_the_next_failure():
    """Q7: a pop counts an attempt and keeps the rejecting plugins."""
    queue = a_queue()
    queue.add(a_pod())
    assert popped(queue).attempts == 1
    queue.requeue(waiting := next(queue.in_flight()), unschedulable=["Headroom"])
    queue.on_event(NODE_ADDED)
    assert popped(queue) is waiting
    assert (waiting.attempts, waiting.unschedulable_plugins) == (2, {"Headroom"})
    queue.requeue(waiting)
    assert waiting.unschedulable_plugins == set()


def test_a_pod_in_flight_that_is_added_again_is_not_popped_twice():
    """Q8: a pod in flight is not popped again."""
    queue = a_queue()
    queue.add(a_pod())
    popped(queue)
    queue.add(a_pod(labels={"a": "b"}))
    assert queue.where("web") == "in flight"
    assert queue.pop() is None


def test_nothing_to_pop_while_nothing_is_ready():
    """Q9: nothing is popped while activeQ and backoffQ are empty."""
    queue = a_queue()
    assert queue.pop() is None
    queue.add(a_pod())
    fail(queue, refused_by="Headroom")
    assert queue.pop() is None


def test_a_pod_that_is_done_is_gone_and_done_twice_is_done_once():
    """Q33, Q34: the end of an attempt drops events that no pod needs; a pod is in flight until requeued, dropped or
    past permit.
    """
    queue = a_queue()
    queue.add(pod := a_pod())
    popped(queue)
    queue.done(pod.uid)
    queue.done(pod.uid)
    assert queue.where(pod) == "absent"


def test_done_does_not_touch_a_pod_that_waits():
    """Q33: the end of an attempt drops events that no pod needs."""
    queue = a_queue()
    queue.add(pod := a_pod())
    queue.done(pod.uid)
    assert queue.where(pod) == "active"


def test_the_counts_are_the_sizes_of_the_places():
    """Q49: backoff counts refusals and errors alike; pods in flight are in no count."""
    queue = a_queue(gates=[("Gates", scheduling_gates)])
    for name in ("refused", "woken", "erred", "flying", "ready"):
        queue.add(a_pod(name, priority=-len(name)))
        if name == "refused":
            fail(queue, refused_by="Other")
        elif name == "woken":
            fail(queue, refused_by="Headroom")
            queue.on_event(NODE_ADDED)
        elif name == "erred":
            fail(queue)
        elif name == "flying":
            popped(queue)
    queue.add(a_pod("gated", gates=["hold"]))
    assert queue.counts() == {"active": 1, "backoff": 2, "unschedulable": 1, "gated": 1}
    assert len(queue) == 5
    assert {waiting.pod.name for waiting in queue.pending()} == {"refused", "woken", "erred", "ready", "gated"}
    assert names(list(queue.in_flight())) == ["flying"]
    assert queue.unschedulable_by_plugin() == {
        ("Other", "default-scheduler"): 1,
        ("Headroom", "default-scheduler"): 1,
        ("Gates", "default-scheduler"): 1,
    }


def test_each_entry_is_reported_once_with_its_reason():
    """Q50: each entry is counted with its reason."""
    entries: Counter[tuple[str, str]] = Counter()
    queue = a_queue(
        clock := ManualClock(),
        gates=[("Gates", scheduling_gates)],
        on_entry=lambda place, reason: entries.update([(place, reason)]),
    )
    queue.add(a_pod("gated", gates=["hold"]))
    queue.activate([a_pod("gated")])  # stays gated: what is there already does not count again
    queue.add(a_pod("web"))
    fail(queue, refused_by="Headroom")
    queue.on_event(NODE_ADDED)
    popped(queue)  # early, from backoff
    queue.done("uid-of-web")
    queue.update(a_pod("db"), a_pod("db"))
    fail(queue)
    wait(queue, clock, 3)
    assert entries == {
        ("unschedulable", "UnschedulablePodAdd"): 1,
        ("active", "UnschedulablePodAdd"): 1,
        ("unschedulable", "ScheduleAttemptFailure"): 1,
        ("backoff", "NodeAdd"): 1,
        ("active", "PopFromBackoffQ"): 1,
        ("active", "UnschedulablePodUpdate"): 1,
        ("backoff", "ScheduleAttemptFailure"): 1,
        ("active", "BackoffComplete"): 1,
    }
