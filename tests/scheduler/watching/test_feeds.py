"""From watch events to state and queue: what each change of a pod or node means, at each moment of a pod's life."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import force_setattr
from tests.lists import list_into

from mooring.base.clock import ManualClock
from mooring.framework import PodsWhere
from mooring.framework.events import BROADCAST_KINDS, Action, Hint
from mooring.objects import Node, Pod
from mooring.objects.core import Container, ResourceRequirements
from mooring.queue import ProfileRules, SchedulingQueue
from mooring.scheduler.watching.feeds import NodeFeed, PodFeed
from mooring.scheduler.watching.pod_observer import PodObserver
from mooring.state import State
from mooring.testing import a_node_object, a_pod

OURS = "default-scheduler"


class Recorder(PodObserver):
    """Records what the feed notifies its observers of."""

    def __init__(self, notified: list[str]) -> None:
        self._notified = notified

    def assigned(self, pod: Pod) -> None:
        self._notified.append(f"placed {pod.name}")

    def deleted(self, pod: Pod) -> None:
        self._notified.append(f"deleted {pod.name}")


class World:
    """Feeds on a real state and queue; records every event, and what the scheduler would receive."""

    def __init__(self) -> None:
        self.state = State()
        self.received: list[str] = []
        self.reported: list[str] = []
        hints = [Hint(kind, Action.ALL) for kind in BROADCAST_KINDS]
        rules = {OURS: ProfileRules(hints={"Fit": hints})}
        self.queue = SchedulingQueue(ManualClock(), sort_key=lambda queued: queued.timestamp, profiles=rules)
        self._on, self.queue.on_event = self.queue.on_event, self._listen  # type: ignore[method-assign]
        self.pods = PodFeed(self.state, self.queue, [OURS], [Recorder(self.reported)])
        self.nodes = NodeFeed(self.state, self.queue)

    def _listen(self, event: Any, old: Any = None, new: Any = None, **more: Any) -> str:
        self.received.append(event.label)
        return self._on(event, old, new, **more)

    def where(self, pod: Pod) -> str:
        return self.queue.where(pod.uid)

    def attempt(self, pod: Pod, node: str = "node-1") -> None:
        """Pop it and assume it, as the loop does."""
        waiting = self.queue.pop()
        assert waiting is not None
        assert waiting.pod.uid == pod.uid
        self.state.assume(waiting.pod, node, at=1.0)


@pytest.fixture
def world() -> World:
    world = World()
    list_into(world.nodes, [a_node_object("node-1"), a_node_object("node-2")])
    world.received.clear()
    return world


def newer(seen: Pod, **spec: Any) -> Pod:
    """The same pod after a change."""
    version = str(int(seen.metadata.resource_version) + 1)
    metadata = msgspec.structs.replace(seen.metadata, resource_version=version)
    return Pod(metadata=metadata, spec=msgspec.structs.replace(seen.spec, **spec), status=seen.status)


def going(seen: Pod) -> Pod:
    pod = newer(seen)
    force_setattr(pod.metadata, "deletion_timestamp", "2026-01-01T00:00:00Z")
    return pod


# Pods that wait


def test_a_pod_of_ours_without_a_node_waits(world):
    pod = a_pod("web")
    world.pods.changed(pod)
    assert world.where(pod) == "active"
    assert world.pods.latest(pod.uid) is pod
    assert world.received == []


def test_a_pod_of_another_scheduler_is_left_alone_until_it_has_a_node(world):
    """4.1.1: pods of other schedulers are ignored."""
    pod = a_pod("web", scheduler="another", cpu="1")
    world.pods.changed(pod)
    assert (world.where(pod), world.pods.latest(pod.uid), world.state.pod(pod.uid)) == ("absent", None, None)
    world.pods.changed(newer(pod, node_name="node-1"))
    assert world.state.node("node-1").requested("cpu") == 1000
    assert world.reported == []


def test_an_update_that_is_none_is_ignored(world):
    """3.2: changed fields decide which events are raised."""
    pod = a_pod("web")
    world.pods.changed(pod)
    world.pods.changed(a_pod("web", uid=pod.uid, labels={"another": "label"}))
    assert world.pods.latest(pod.uid) is pod


def test_an_update_of_a_waiting_pod_is_what_its_next_attempt_sees(world):
    pod = a_pod("web")
    world.pods.changed(pod)
    update = newer(pod)
    world.pods.changed(update)
    waiting = world.queue.pop()
    assert waiting is not None
    assert waiting.pod is update


def test_a_deleted_pod_waits_no_longer(world):
    pod = a_pod("web")
    world.pods.changed(pod)
    world.pods.deleted(pod)
    assert (world.where(pod), world.pods.latest(pod.uid), world.reported) == ("absent", None, ["deleted web"])


def test_a_pod_made_again_under_its_name_is_another_pod(world):
    first, second = a_pod("web"), a_pod("web")
    world.pods.changed(first)
    world.pods.changed(second)
    assert (world.where(first), world.where(second)) == ("absent", "active")
    assert world.pods.uid_of("default/web") == second.uid
    world.pods.deleted(first)  # late news of the first
    assert world.where(second) == "active"


def test_a_running_pod_made_again_under_its_name_gives_its_place_back(world):
    first, second = a_pod("web", node="node-1", cpu="1"), a_pod("web")
    world.pods.changed(first)
    world.pods.changed(second)
    assert world.state.node("node-1").requested("cpu") == 0
    assert world.where(second) == "active"
    assert world.received == ["AssignedPodAdd", "AssignedPodDelete"]


# Pods on nodes


def test_a_placed_pod_counts_and_raises_an_event(world):
    """3.2: changed fields decide which events are raised."""
    pod = a_pod("web", node="node-1", cpu="1")
    world.pods.changed(pod)
    world.pods.changed(pod)
    assert world.state.node("node-1").requested("cpu") == 1000
    assert world.pods.node_of(pod.uid) == "node-1"
    assert world.received == ["AssignedPodAdd"]


def test_a_pod_that_goes_frees_its_place_once(world):
    """3.2: changed fields decide which events are raised."""
    pod = a_pod("web", node="node-1", cpu="1")
    world.pods.changed(pod)
    world.pods.deleted(pod)
    world.pods.deleted(pod)
    assert world.state.node("node-1").requested("cpu") == 0
    assert world.received == ["AssignedPodAdd", "AssignedPodDelete"]


def test_a_pod_that_shrinks_raises_an_event(world):
    """3.2: changed fields decide which events are raised."""
    pod = a_pod("web", node="node-1", cpu="2")
    world.pods.changed(pod)
    small = [Container(name="main", resources=ResourceRequirements(requests={"cpu": "1"}))]
    world.pods.changed(newer(pod, containers=small))
    assert world.received == ["AssignedPodAdd", "AssignedPodUpdatePodScaleDown"]
    assert world.state.node("node-1").requested("cpu") == 1000


def test_a_pod_whose_requests_cannot_be_read_still_occupies_a_place(world, capsys):
    pod = a_pod("web", node="node-1", cpu="many")
    world.pods.changed(pod)
    assert world.state.node("node-1").requested("pods") == 1
    assert "its requests are invalid" in capsys.readouterr().err


def test_a_pod_that_another_scheduler_bound_leaves_the_queue(world):
    """3.2: changed fields decide which events are raised."""
    pod = a_pod("web")
    world.pods.changed(pod)
    world.pods.changed(newer(pod, node_name="node-2"))
    assert (world.where(pod), world.pods.latest(pod.uid), world.reported) == ("absent", None, ["placed web"])
    assert world.state.pending(PodsWhere()) == []


def test_a_pod_that_lost_its_node_has_none_in_the_cache(world):
    pod = a_pod("web", node="node-1", cpu="1")
    world.pods.changed(pod)
    list_into(world.pods, [newer(pod, node_name="")])
    assert world.state.pod(pod.uid) is None
    assert world.where(pod) == "active"
    assert world.received == ["AssignedPodAdd", "AssignedPodDelete"]


# Pods on their way


def test_the_watch_confirms_what_was_assumed_and_nothing_counts_twice(world):
    """4.4.7, 4.5: a bound pod stays assumed until the watch shows it; a failed binding forgets the pod."""
    pod = a_pod("web", cpu="1")
    world.pods.changed(pod)
    world.attempt(pod)
    world.queue.done(pod.uid)
    world.pods.changed(newer(pod, node_name="node-1"))
    assert not world.state.is_assumed(pod.uid)
    assert world.state.node("node-1").requested("cpu") == 1000
    assert world.received == ["AssignedPodAdd"]


def test_the_watch_shows_another_node_than_was_assumed_and_that_place_is_free(world):
    """4.5: a failed binding forgets the pod."""
    pod = a_pod("web", cpu="1")
    world.pods.changed(pod)
    world.attempt(pod)
    world.pods.changed(newer(pod, node_name="node-2"))
    assert [world.state.node(name).requested("cpu") for name in ("node-1", "node-2")] == [0, 1000]
    assert world.received == ["AssignedPodAdd", "AssignedPodDelete"]


@pytest.mark.parametrize("is_past_permit", [False, True])
def test_an_update_of_an_assumed_pod_brings_it_nowhere(world, is_past_permit):
    pod = a_pod("web")
    world.pods.changed(pod)
    world.attempt(pod)
    if is_past_permit:
        world.queue.done(pod.uid)
    update = newer(pod)
    world.pods.changed(update)
    assert world.where(pod) == ("absent" if is_past_permit else "in flight")
    assert world.pods.latest(pod.uid) is update
    assert world.reported == []


def test_an_assumed_pod_that_begins_to_go_is_reported_once(world):
    """3.2: changed fields decide which events are raised."""
    pod = a_pod("web")
    world.pods.changed(pod)
    world.attempt(pod)
    leaving = going(pod)
    world.pods.changed(leaving)
    world.pods.changed(newer(leaving))
    assert world.reported == ["deleted web"]


def test_an_assumed_pod_that_is_deleted_is_left_to_the_cycle_that_assumed_it(world):
    pod = a_pod("web")
    world.pods.changed(pod)
    world.attempt(pod)
    world.pods.deleted(pod)
    assert world.reported == ["deleted web"]
    assert world.where(pod) == "in flight"
    assert world.state.is_assumed(pod.uid)


# Lists


def test_a_list_replaces_what_was_known(world):
    stays, goes, runs, ends = a_pod("stays"), a_pod("goes"), a_pod("runs", node="node-1"), a_pod("ends", node="node-1")
    for pod in (stays, goes, runs, ends):
        world.pods.changed(pod)
    comes = a_pod("comes")
    list_into(world.pods, [stays, runs, comes])
    assert [world.where(pod) for pod in (stays, goes, comes)] == ["active", "absent", "active"]
    assert world.state.pod(runs.uid) is not None
    assert world.state.pod(ends.uid) is None


def test_the_same_list_again_changes_nothing(world):
    pods = [a_pod("waits"), a_pod("runs", node="node-1")]
    list_into(world.pods, pods)
    received = list(world.received)
    list_into(world.pods, pods)
    assert world.received == received


# Nodes


def a_changed_node(name: str, version: str, **options: Any) -> Node:
    node = a_node_object(name, **options)
    force_setattr(node.metadata, "resource_version", version)
    return node


def test_nodes_come_change_and_go(world):
    world.nodes.changed(a_node_object("node-3"))
    world.nodes.changed(a_changed_node("node-3", "2", labels={"zone": "a"}))
    world.nodes.deleted(a_changed_node("node-3", "3"))
    assert world.received == ["NodeAdd", "NodeUpdateNodeLabel", "NodeDelete"]
    assert world.state.node("node-3") is None


def test_a_heartbeat_requeues_no_pod(world):
    """3.2: changed fields decide which events are raised."""
    world.nodes.changed(a_changed_node("node-1", "2"))
    assert world.received == []


def test_a_list_without_a_node_removes_it(world):
    list_into(world.nodes, [a_node_object("node-2")])
    assert world.received == ["NodeDelete"]
    assert world.state.node_count == 1


def test_a_node_that_was_never_known_cannot_go(world):
    world.nodes.deleted(a_node_object("unknown"))
    assert world.received == []


def test_an_invalid_allocatable_counts_as_nothing(world, capsys):
    world.nodes.changed(a_node_object("odd", cpu="lots"))
    assert world.state.node("odd").allocatable("cpu") == 0
    assert "odd" in capsys.readouterr().err


def test_an_assumed_pod_outlives_its_node_and_can_be_forgotten(world):
    """4.5: a failed binding forgets the pod."""
    pod = a_pod("web", cpu="1")
    world.pods.changed(pod)
    world.attempt(pod)
    view = world.state.node("node-1")
    world.nodes.deleted(a_node_object("node-1"))
    assert (view.free("cpu"), view.requested("cpu")) == (0, 0)
    world.state.forget(pod.uid)
    world.nodes.changed(a_node_object("node-1"))
    assert world.state.node("node-1").requested("cpu") == 0
