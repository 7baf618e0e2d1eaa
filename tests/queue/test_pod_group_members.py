"""Members of pod groups in the queue: failed ones wait for the end of their backoff, also in an idle scheduler."""

from typing import Any

import pytest
from tests.queue.builders import Recorded, a_queue, fail, popped

from mooring.base.clock import ManualClock
from mooring.framework.events import (
    ASSIGNED_POD_ADDED,
    NODE_ADDED,
    PENDING_POD_ADDED,
    Action,
    ClusterEvent,
    Hint,
    resource_name,
)
from mooring.framework.verdicts import Refusal
from mooring.objects.meta import ObjectMeta
from mooring.objects.placed import placed
from mooring.objects.pod_groups import PodGroup
from mooring.queue import SchedulingQueue
from mooring.testing import a_node_object, a_pod

WORKER = a_pod("worker", group="gang")


def a_queue_with_a_failed_member(clock: ManualClock) -> SchedulingQueue:
    queue = a_queue(clock, has_pod_groups=True)
    queue.add(WORKER)
    fail(queue, refused_by="GangScheduling")
    return queue


OWN = a_pod("other", group="gang")
GROUP = PodGroup(metadata=ObjectMeta(name="gang", namespace="default"))
POD_GROUP_ADDED = ClusterEvent(resource_name(PodGroup), Action.ADD)
CHANGES: dict[str, tuple[ClusterEvent, Any, list[str]]] = {
    "a pod of their group": (PENDING_POD_ADDED, OWN, ["gang"]),
    "a pod of their group that is on a node": (ASSIGNED_POD_ADDED, placed(OWN, "node"), ["gang"]),
    "their group": (POD_GROUP_ADDED, GROUP, ["gang"]),
    "a pod of no group": (PENDING_POD_ADDED, a_pod("lone"), []),
    "a pod of no group that is on a node": (ASSIGNED_POD_ADDED, placed(a_pod("lone"), "node"), []),
    "a pod of a group of that name elsewhere": (PENDING_POD_ADDED, a_pod("far", namespace="far", group="gang"), []),
    "an object of another kind": (NODE_ADDED, a_node_object(), ["gang", "gang-2"]),
}


@pytest.mark.parametrize(("event", "added", "groups"), CHANGES.values(), ids=CHANGES.keys())
def test_a_hint_about_pod_groups_runs_only_for_pods_of_the_group_that_changed(event, added, groups):
    """G16. However many groups wait, a pod that joins one of them costs the others nothing."""
    test = Recorded(result=False)
    hints = [Hint(resource, Action.ADD, test, within_pod_group=True) for resource in ("Pod", PodGroup, "Node")]
    queue = a_queue(hints={"Gangs": hints}, gates=[("Gangs", lambda _: Refusal("too few"))], has_pod_groups=True)
    for group in ("gang", "gang-2"):
        queue.add(a_pod(group=group))
    queue.on_event(event, None, added)
    assert [pod.pod_group_name for pod, _, _ in test.calls] == groups


def test_an_idle_queue_does_not_pop_a_failed_member_before_its_backoff_ends():
    queue = a_queue_with_a_failed_member(clock := ManualClock())
    assert queue.where(WORKER.uid) == "backoff"
    assert queue.pop() is None

    clock.advance(seconds=2)
    assert popped(queue).pod is WORKER


def test_an_event_does_not_shorten_the_backoff_of_a_member():
    queue = a_queue_with_a_failed_member(ManualClock())
    queue.on_event(NODE_ADDED)
    assert queue.pop() is None


def test_a_member_is_popped_with_its_group_whatever_its_backoff():
    queue = a_queue_with_a_failed_member(ManualClock())
    queued = queue.pop_member(WORKER.uid)
    assert queued is not None
    assert queued.attempts == 2
