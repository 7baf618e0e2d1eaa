"""Which events wake which refused pods (Q28–Q31, Q35)."""

import asyncio

import pytest
from tests.queue.builders import NODE_HINT, SERVICE_CHANGED, Recorded, a_pod, a_queue, fail, popped, wait

from mooring.base.clock import ManualClock
from mooring.framework.events import (
    ASSIGNED_POD_ADDED,
    ASSIGNED_POD_DELETED,
    NODE_ADDED,
    NODE_DELETED,
    Action,
    ClusterEvent,
    Hint,
)
from mooring.queue import ProfileRules

EVERYTHING = ClusterEvent("*", Action.ALL)
CUSTOM = "quotas.v1.example.com"

MATCHES = {
    "a registered event": (Hint("Node", Action.ADD), NODE_ADDED, True),
    "another action": (Hint("Node", Action.ADD), NODE_DELETED, False),
    "another kind": (Hint("Node", Action.ADD), ASSIGNED_POD_ADDED, False),
    "Pod means pods on nodes": (Hint("Pod", Action.DELETE), ASSIGNED_POD_DELETED, True),
    "a specific update, for Update": (
        Hint("Node", Action.UPDATE),
        ClusterEvent("Node", Action.UPDATE_NODE_TAINT),
        True,
    ),
    "an unspecific update, for a specific one": (
        Hint("Pod", Action.UPDATE_POD_LABEL),
        ClusterEvent("AssignedPod", Action.UPDATE),
        False,
    ),
    "a custom resource": (Hint(CUSTOM, Action.UPDATE), ClusterEvent(CUSTOM, Action.UPDATE), True),
    "another custom resource": (Hint(CUSTOM, Action.ALL), ClusterEvent("teams.v1.example.com", Action.ADD), False),
    "anything, for everything": (Hint("*", Action.ALL), SERVICE_CHANGED, True),
    "a wildcard, for whatever is registered": (Hint("Node", Action.ADD), EVERYTHING, True),
}


@pytest.mark.parametrize(("hint", "event", "wakes"), MATCHES.values(), ids=MATCHES.keys())
def test_an_event_wakes_pods_whose_plugin_registered_it(hint, event, wakes):
    """Q28, Q29: unregistered events are ignored, wildcards always count; an event concerns the pods whose plugins
    registered it.
    """
    queue = a_queue(hints={"Headroom": [hint]})
    queue.add(a_pod())
    fail(queue, refused_by="Headroom")
    queue.on_event(event)
    assert queue.where("web") == ("backoff" if wakes else "unschedulable")


def test_an_event_that_no_plugin_registered_is_not_even_recorded():
    """Q28: unregistered events are ignored, wildcards always count."""
    queue = a_queue(hints={"Headroom": [NODE_HINT], "Ports": [Hint("Pod", Action.DELETE)]})
    queue.add(a_pod())
    waiting = popped(queue)
    queue.on_event(SERVICE_CHANGED)
    queue.requeue(waiting, unschedulable=["Headroom"])
    assert queue.where("web") == "unschedulable"


def test_only_hints_of_the_plugins_that_refused_the_pod_run():
    """Q31: only hints of the rejecting plugins run."""
    tests = {plugin: Recorded(False) for plugin in ("Headroom", "Ports", "Taints")}
    queue = a_queue(hints={plugin: [Hint("Node", Action.ADD, test)] for plugin, test in tests.items()})
    queue.add(a_pod())
    fail(queue, refused_by="Headroom Taints")
    queue.on_event(NODE_ADDED)
    assert {plugin for plugin, test in tests.items() if test.calls} == {"Headroom", "Taints"}
    assert queue.where("web") == "unschedulable"


def test_any_one_of_several_refusing_plugins_wakes_the_pod():
    """Q29: an event concerns the pods whose plugins registered it."""
    queue = a_queue(hints={"Headroom": [NODE_HINT], "Ports": [Hint("Pod", Action.DELETE)]})
    queue.add(a_pod())
    fail(queue, refused_by="Headroom Ports")
    queue.on_event(ASSIGNED_POD_DELETED)
    assert queue.where("web") == "backoff"


def test_an_attempt_knows_what_requeued_its_pod():
    clock = ManualClock()
    queue = a_queue(clock, hints={"Headroom": [NODE_HINT, Hint("Pod", Action.DELETE)]})
    queue.add(a_pod())
    assert fail(queue, refused_by="Headroom").started_by == "", "nothing requeued it: it is the first one"
    queue.on_event(NODE_ADDED)
    wait(queue, clock, 3)
    second = popped(queue)
    assert queue.started_by(second.pod.uid) == "NodeAdd"
    queue.on_event(ASSIGNED_POD_DELETED)
    queue.requeue(second, unschedulable=["Headroom"])
    wait(queue, clock, 9)
    third = popped(queue)
    assert third.started_by == "AssignedPodDelete", "it came during the attempt before"
    queue.requeue(third)
    wait(queue, clock, 20)
    assert popped(queue).started_by == "ScheduleAttemptFailure", "an error: only the backoff requeued it"


def test_every_matching_hint_of_a_plugin_runs_until_one_passes():
    """Q31: only hints of the rejecting plugins run."""
    no = Hint("Node", Action.ADD | Action.DELETE, Recorded(False))
    yes = Hint("Node", Action.ADD, Recorded(True))
    queue = a_queue(hints={"Headroom": [no, yes]})
    queue.add(a_pod())
    fail(queue, refused_by="Headroom")
    queue.on_event(NODE_DELETED)
    assert queue.where("web") == "unschedulable"
    queue.on_event(NODE_ADDED)
    assert queue.where("web") == "backoff"


def test_a_test_sees_the_pod_and_the_object_before_and_after():
    """Q29: an event concerns the pods whose plugins registered it."""
    test = Recorded(False)
    queue = a_queue(hints={"Headroom": [Hint("Node", Action.ADD, test)]})
    queue.add(pod := a_pod())
    fail(queue, refused_by="Headroom")
    queue.on_event(NODE_ADDED, None, "the node")
    assert test.calls == [(pod, None, "the node")]


def test_a_pending_plugins_event_brings_the_pod_back_without_backoff():
    """Q29, Q30: an event concerns the pods whose plugins registered it; Queue means activeQ, or backoffQ while backoff
    lasts.
    """
    queue = a_queue()
    queue.add(a_pod())
    fail(queue, pending_on="Headroom")
    queue.on_event(NODE_ADDED)
    assert queue.where("web") == "active"


def test_the_event_of_a_refusing_plugin_does_not_spare_a_pending_pod_its_backoff():
    """Q29, Q30: an event concerns the pods whose plugins registered it; Queue means activeQ, or backoffQ while backoff
    lasts.
    """
    queue = a_queue(hints={"Headroom": [NODE_HINT], "Claims": [Hint("Pod", Action.DELETE)]})
    queue.add(a_pod())
    fail(queue, refused_by="Headroom", pending_on="Claims")
    queue.on_event(NODE_ADDED)
    assert queue.where("web") == "backoff"


def test_a_hint_that_raises_counts_as_yes_and_is_logged(capsys):
    """Q30: Queue means activeQ, or backoffQ while backoff lasts."""

    def broken(pod, old, new):
        raise AttributeError("labels")

    queue = a_queue(hints={"Headroom": [Hint("Node", Action.ADD, broken)]})
    queue.add(a_pod())
    fail(queue, refused_by="Headroom")
    queue.on_event(NODE_ADDED)
    assert queue.where("web") == "backoff"
    assert 'plugin="Headroom" event="NodeAdd" pod="shop/web"' in capsys.readouterr().err


def test_a_wildcard_that_carries_a_pod_is_for_that_pod():
    """Q29: an event concerns the pods whose plugins registered it."""
    queue = a_queue()
    for name in ("one", "two"):
        queue.add(a_pod(name))
        fail(queue, refused_by="Headroom")
    queue.on_event(EVERYTHING, None, a_pod("two"))
    assert (queue.where("one"), queue.where("two")) == ("unschedulable", "backoff")


def test_a_check_in_advance_leaves_pods_out():
    """Q29: an event concerns the pods whose plugins registered it."""
    queue = a_queue()
    for name, priority in {"low": 1, "high": 9}.items():
        queue.add(a_pod(name, priority=priority))
        fail(queue, refused_by="Headroom")
    queue.on_event(NODE_ADDED, only=lambda pod: pod.priority <= 5)
    assert (queue.where("low"), queue.where("high")) == ("backoff", "unschedulable")


def test_hints_of_the_same_plugin_in_another_profile_do_not_run():
    """Q29: an event concerns the pods whose plugins registered it."""
    queue = a_queue(
        profiles={"default-scheduler": ProfileRules({"Headroom": [NODE_HINT]}), "batch": ProfileRules({"Headroom": []})}
    )
    queue.add(a_pod("one"))
    fail(queue, refused_by="Headroom")
    queue.add(a_pod("two", scheduler="batch"))
    fail(queue, refused_by="Headroom")
    queue.on_event(NODE_ADDED)
    assert (queue.where("one"), queue.where("two")) == ("backoff", "unschedulable")


def test_events_neither_move_nor_hurry_pods_that_back_off():
    """Q35: events do not move pods in activeQ or backoffQ."""
    queue = a_queue(clock := ManualClock())
    queue.add(a_pod())
    fail(queue)
    release = queue.next_flush()
    queue.on_event(NODE_ADDED)
    queue.on_event(EVERYTHING)
    assert (queue.where("web"), queue.next_flush()) == ("backoff", release)
    wait(queue, clock, release - clock.now())
    assert queue.where("web") == "active"


def test_an_event_visits_only_pods_that_it_may_help():
    """Among thousands of refused pods, those of other plugins cost nothing."""
    test = Recorded(False)
    queue = a_queue(
        hints={"Ports": [Hint("Pod", Action.DELETE, test)], "Headroom": [Hint("Node", Action.ADD, test)]},
    )
    for name in ("one", "two", "three"):
        queue.add(a_pod(name))
        fail(queue, refused_by="Ports" if name == "two" else "Headroom")
    queue.on_event(ASSIGNED_POD_DELETED)
    assert [pod.name for pod, _, _ in test.calls] == ["two"]


def test_a_hint_that_reads_something_cancelled_counts_as_yes():
    """Q30, Isolation: it must not look as if the watch that delivers the event were cancelled."""

    def test(*_):
        raise asyncio.CancelledError

    faults = []
    queue = a_queue(hints={"Headroom": [Hint("Node", Action.ADD, test)]}, on_fault=lambda *fault: faults.append(fault))
    queue.add(a_pod())
    fail(queue, refused_by="Headroom")
    queue.on_event(NODE_ADDED)
    assert queue.where("web") == "backoff"
    assert faults == [("Headroom", "QueueingHint")]
