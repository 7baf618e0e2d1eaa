"""What becomes of a pod whose attempt failed, and of events that came meanwhile (Q16–Q19, Q32–Q34)."""

import pytest
from tests.queue.builders import NODE_HINT, SERVICE_CHANGED, Recorded, a_pod, a_queue, fail, popped

from mooring.base.clock import ManualClock
from mooring.framework.events import ASSIGNED_POD_DELETED, NODE_ADDED, NODE_DELETED, Action, ClusterEvent, Hint
from mooring.objects.core import Node
from mooring.objects.meta import ObjectMeta


def test_a_pod_that_is_queued_is_not_requeued(capsys):
    """Q16: requeueing ends the attempt; a queued pod is not requeued."""
    queue = a_queue()
    queue.add(a_pod())
    waiting = fail(queue, refused_by="Headroom")
    queue.requeue(waiting)
    assert queue.where("web") == "unschedulable"
    assert waiting.consecutive_errors == 0
    assert "already present in the queue" in capsys.readouterr().err


def test_putting_back_ends_the_flight():
    """Q16: requeueing ends the attempt; a queued pod is not requeued."""
    queue = a_queue()
    queue.add(a_pod())
    fail(queue, refused_by="Headroom")
    assert list(queue.in_flight()) == []


def test_refusals_and_errors_are_counted_apart():
    """Q17: errors in a row are counted, until a rejection."""
    queue = a_queue()
    queue.add(a_pod())
    counts = []
    for plugins in ("", "", "Headroom", "", "Headroom"):
        waiting = fail(queue, refused_by=plugins)
        counts.append((waiting.consecutive_errors, waiting.unschedulable_count))
        queue.activate([waiting.pod])
    assert counts == [(1, 0), (2, 0), (0, 1), (1, 1), (0, 2)]


def test_a_failure_starts_the_waiting_time_again():
    """Q18: a failure resets timestamp and flush."""
    queue = a_queue(clock := ManualClock(start=100.0))
    queue.add(a_pod())
    clock.advance(5)
    assert fail(queue, refused_by="Headroom").timestamp == 105.0


def test_an_error_is_retried_after_backoff_whatever_happens():
    """Q19: events since the pop are replayed."""
    queue = a_queue()
    queue.add(a_pod())
    fail(queue)
    assert queue.where("web") == "backoff"


MEANWHILE = {
    "nothing happened: it waits": ([], "Headroom", "", "unschedulable"),
    "an event that the plugin named: after backoff": ([NODE_ADDED], "Headroom", "", "backoff"),
    "an event that only another plugin named: it waits": ([ASSIGNED_POD_DELETED], "Headroom", "", "unschedulable"),
    "an event that no plugin registered: it waits": ([SERVICE_CHANGED], "Headroom", "", "unschedulable"),
    "an event that a pending plugin named: at once": ([ASSIGNED_POD_DELETED], "", "Claims", "active"),
    "a later event that a pending plugin named: at once": (
        [NODE_ADDED, ASSIGNED_POD_DELETED],
        "Headroom",
        "Claims",
        "active",
    ),
    "an event that only the refusing one of both named: after backoff": ([NODE_ADDED], "Headroom", "Claims", "backoff"),
}


@pytest.mark.parametrize(("events", "refused_by", "pending_on", "place"), MEANWHILE.values(), ids=MEANWHILE.keys())
def test_what_happened_during_the_attempt_is_replayed(events, refused_by, pending_on, place):
    """Q19, Q32: events since the pop are replayed; events are recorded while a pod is in flight."""
    queue = a_queue(hints={"Headroom": [NODE_HINT], "Claims": [Hint("Pod", Action.DELETE)]})
    queue.add(a_pod())
    waiting = popped(queue)
    for event in events:
        queue.on_event(event)
    queue.requeue(waiting, unschedulable=refused_by.split(), pending=pending_on.split())
    assert queue.where("web") == place


def test_events_before_the_pop_do_not_count():
    """Q19, Q33: even though another pod in flight keeps them."""
    queue = a_queue()
    queue.add(a_pod("early"))
    queue.add(a_pod("late"))
    early = popped(queue)
    queue.on_event(NODE_ADDED)
    late = popped(queue)
    queue.requeue(late, unschedulable=["Headroom"])
    queue.requeue(early, unschedulable=["Headroom"])
    assert (queue.where("early"), queue.where("late")) == ("backoff", "unschedulable")


def test_the_replay_sees_the_objects_in_the_order_of_events():
    """Q19: events since the pop are replayed."""
    test = Recorded(False)
    queue = a_queue(hints={"Headroom": [Hint("Node", Action.ADD | Action.DELETE, test)]})
    queue.add(a_pod())
    waiting = popped(queue)
    node = Node(metadata=ObjectMeta(name="n"))
    queue.on_event(NODE_ADDED, None, node)
    queue.on_event(NODE_DELETED, node, None)
    queue.requeue(waiting, unschedulable=["Headroom"])
    assert [(old, new) for _, old, new in test.calls] == [(None, node), (node, None)]
    assert queue.where("web") == "unschedulable"


def test_events_are_forgotten_when_the_last_attempt_that_may_need_them_ends():
    """Q33: the end of an attempt drops events that no pod needs."""
    queue = a_queue()
    for name in ("one", "two", "three"):
        queue.add(a_pod(name))
    one, two, three = popped(queue), popped(queue), popped(queue)
    queue.on_event(NODE_ADDED)
    queue.done(two.pod.uid)
    queue.requeue(one, unschedulable=["Headroom"])
    assert queue.where("one") == "backoff"
    queue.requeue(three, unschedulable=["Headroom"])
    assert queue.where("three") == "backoff"

    queue.add(a_pod("four", priority=1))
    fail(queue, refused_by="Headroom")
    assert queue.where("four") == "unschedulable"


def test_only_events_since_its_own_pop_are_replayed_for_a_pod():
    """Q33: the end of an attempt drops events that no pod needs."""
    test = Recorded(False)
    queue = a_queue(hints={"Headroom": [Hint("Node", Action.ADD, test)]})
    queue.add(a_pod("one"))
    queue.add(a_pod("two"))
    one = popped(queue)
    queue.on_event(NODE_ADDED, None, "first")
    queue.on_event(NODE_ADDED, None, "second")
    two = popped(queue)
    queue.on_event(NODE_ADDED, None, "third")
    queue.done(one.pod.uid)
    queue.requeue(two, unschedulable=["Headroom"])
    assert [new for _, _, new in test.calls] == ["third"]


def test_a_pod_that_comes_again_while_it_is_in_flight_is_kept():
    """Q5, Q36: a deleted pod leaves its place; the next attempt sees the latest pod."""
    queue = a_queue()
    queue.add(a_pod())
    waiting = popped(queue)
    queue.delete(waiting.pod)
    queue.add(latest := a_pod(labels={"a": "b"}))
    queue.requeue(waiting, unschedulable=["Headroom"])
    assert (queue.where("web"), waiting.pod) == ("unschedulable", latest)


def test_a_pod_that_fails_after_it_was_done_backs_off():
    """4.4.4, Q34: a bind that fails; nothing was recorded since permit."""
    queue = a_queue()
    queue.add(a_pod())
    waiting = popped(queue)
    queue.done(waiting.pod.uid)
    assert queue.where("web") == "absent"
    queue.requeue(waiting, unschedulable=["Headroom"])
    assert queue.where("web") == "backoff"


def test_the_retry_uses_the_latest_object():
    """Q36: the next attempt sees the latest pod."""
    queue = a_queue()
    queue.add(a_pod())
    waiting = popped(queue)
    queue.update(waiting.pod, latest := a_pod(labels={"tier": "front"}))
    queue.requeue(waiting, unschedulable=["Headroom"])
    assert waiting.pod is latest


def test_the_callers_object_is_later_than_the_queues():
    """Q36: the next attempt sees the latest pod."""
    queue = a_queue()
    queue.add(a_pod())
    waiting = popped(queue)
    queue.requeue(waiting, latest := a_pod(priority=7), unschedulable=["Headroom"])
    assert waiting.pod is latest


def test_a_pod_made_again_under_its_name_is_another_pod():
    queue = a_queue()
    queue.add(old := a_pod(uid="old"))
    waiting = popped(queue)
    queue.update(old, new := a_pod(uid="new"))
    queue.requeue(waiting, new, unschedulable=["Headroom"])
    assert (queue.where("old"), queue.where("new")) == ("absent", "active")


def test_a_wildcard_for_one_pod_leaves_the_others_in_flight_alone():
    """Q29, Q42: an event concerns the pods whose plugins registered it; activation skips backoff, not PreEnqueue."""
    queue = a_queue()
    queue.add(a_pod("one"))
    queue.add(a_pod("two"))
    one, two = popped(queue), popped(queue)
    queue.activate([two.pod])
    queue.requeue(one, unschedulable=["Headroom"])
    queue.requeue(two, unschedulable=["Headroom"])
    assert (queue.where("one"), queue.where("two")) == ("unschedulable", "backoff")


def test_a_wildcard_for_all_counts_for_every_pod_in_flight():
    """Q28, Q29: unregistered events are ignored, wildcards always count; an event concerns the pods whose plugins
    registered it.
    """
    queue = a_queue(hints={})
    queue.add(a_pod())
    waiting = popped(queue)
    queue.on_event(ClusterEvent("*", Action.ALL))
    queue.requeue(waiting, unschedulable=["Headroom"])
    assert queue.where("web") == "backoff"
