"""What is known of a pod group: which pods count, and what a cycle sees of them while it tries them."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import msgspec
import pytest
from tests.scheduler.pod_groups.scene import GANGS, TOPOLOGY, Scene, members, played

from mooring.framework import Cycle, GroupPlacement, NodeRows, NodeView, Plugin, Pod, PodGroupInfo, PodGroups
from mooring.testing import a_node_object, a_pod, a_pod_group

COUNTED = {
    "a pod that waits for a node": (a_pod("x", group="gang"), (1, 0)),
    "a pod with scheduling gates": (a_pod("x", group="gang", gates=["quota"]), (1, 0)),
    "a pod of another profile of ours": (a_pod("x", group="gang", scheduler="other"), (1, 0)),
    "a pod that waits for another scheduler": (a_pod("x", group="gang", scheduler="foreign"), None),
    "a bound pod": (a_pod("x", group="gang", node="a"), (1, 1)),
    "a bound pod of another scheduler": (a_pod("x", group="gang", node="a", scheduler="foreign"), (1, 1)),
    "a pod of no group": (a_pod("x"), None),
    "a pod of the group of that name elsewhere": (a_pod("x", group="gang", namespace="elsewhere"), None),
}


@pytest.mark.parametrize(("pod", "counts"), COUNTED.values(), ids=COUNTED.keys())
def test_which_pods_count_as_members(pod, counts):
    """G5: unscheduled pods of our profiles, gated or not; bound ones of any scheduler; until they are deleted."""

    async def story(scene: Scene) -> None:
        scene.add(a_node_object("a"), pod)
        known = scene.core.state.pod_group("default", "gang")
        assert (known and (known.all_count, known.scheduled_count)) == counts
        scene.delete(pod)
        assert scene.core.state.pod_group("default", "gang") is None

    played(GANGS, story)


def test_a_member_that_another_scheduler_binds_becomes_scheduled():
    """G5: the update of a pod moves it from the unscheduled ones to the assigned ones."""

    async def story(scene: Scene) -> None:
        pod = a_pod("x", group="gang")
        scene.add(a_node_object("a"), pod)
        scene.add(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name="a")))
        known = scene.core.state.pod_group("default", "gang")
        assert known is not None
        assert (known.all_count, known.scheduled_count, known.unscheduled) == (1, 1, ())

    played(GANGS, story)


def test_a_gated_member_completes_the_number_that_must_exist():
    """G5, G26: it counts from its creation on, so the others are tried, and fail for want of it."""

    async def story(scene: Scene) -> None:
        gang, pods = a_pod_group("gang", min_count=2), [a_pod("x", group="gang", gates=["quota"]), *members(1)]
        scene.add(a_node_object("a"), gang, *pods)
        assert scene.gated() == ["x"]
        await scene.run()
        assert scene.bound() == {}
        assert scene.condition(gang)[0] == "False"

    played(GANGS, story)


class CountScheduled(Plugin):
    """Notes how many members have a node whenever one is reserved or unreserved."""

    seen: ClassVar[list[tuple[str, int]]]

    def __init__(self, groups: PodGroups) -> None:
        self._groups = groups
        CountScheduled.seen = []

    def reserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        self._note("trial" if cycle.is_trial else "cluster", pod)

    def unreserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        self._note("undo", pod)

    def _note(self, when: str, pod: Pod) -> None:
        known = self._groups.members(pod.namespace, pod.pod_group_name or "")
        assert known is not None
        self.seen.append((when, known.scheduled_count))


def test_a_trial_counts_those_it_has_placed_and_leaves_no_trace():
    """G6, G8: each member sees those before it; afterwards the group is as it was, and so are the nodes."""

    async def story(scene: Scene) -> None:
        scene.add(a_node_object("a", cpu="2"), a_pod_group("gang", min_count=3), *members(3))
        await scene.run()
        assert CountScheduled.seen == [("trial", 1), ("trial", 2), ("undo", 2), ("undo", 1)]
        known = scene.core.state.pod_group("default", "gang")
        assert known is not None
        assert (known.all_count, known.scheduled_count, len(known.unscheduled)) == (3, 0, 3)
        assert scene.used("a") == 0

    played(GANGS, story, CountScheduled)


def test_a_feasible_group_is_placed_once_more_after_its_trial():
    """G8, G23: the trial is undone before the members are assumed one after the other."""

    async def story(scene: Scene) -> None:
        scene.add(a_node_object("a", cpu="2"), a_pod_group("gang", min_count=2), *members(2))
        await scene.run()
        tried, undone = [("trial", 1), ("trial", 2)], [("undo", 2), ("undo", 1)]
        assert CountScheduled.seen == [*tried, *undone, ("cluster", 1), ("cluster", 2)]
        assert len(scene.bound()) == 2

    played(GANGS, story, CountScheduled)


def test_all_members_are_tried_on_the_cluster_as_it_was_when_the_cycle_began():
    """G17: what the watch delivers meanwhile counts from the next cycle on."""

    async def story(scene: Scene) -> None:
        gang = a_pod_group("gang", min_count=2)
        scene.add(a_node_object("a", cpu="1"), gang, *members(2))

        async def deliver() -> None:
            scene.add(a_node_object("b", cpu="1"))

        delivered = asyncio.create_task(deliver())
        await scene.run_one()
        assert not delivered.done()
        await delivered
        await scene.run()
        assert scene.bound() == {}
        assert scene.condition(gang)[0] == "False"
        await scene.passes(seconds=3)
        assert scene.bound() == {"gang-0": "a", "gang-1": "b"} or scene.bound() == {"gang-0": "b", "gang-1": "a"}

    played(GANGS, story)


class FailingGenerator(Plugin):
    """Fails before any member is tried."""

    def placement_generate(self, group: PodGroupInfo, nodes: NodeRows) -> list[GroupPlacement]:
        raise ValueError("no map of the racks")


def test_an_error_before_the_first_member_fails_all_of_them():
    """G17, G21, G24: each with that error, and the group as well."""

    async def story(scene: Scene) -> None:
        gang, pods = a_pod_group("gang", min_count=2), members(2)
        scene.add(a_node_object("a"), gang, *pods)
        await scene.run()
        status, reason, message = scene.condition(gang)
        assert (status, reason) == ("False", "SchedulerError")
        assert "no map of the racks" in message
        assert [scene.client.failed[pod.key]["reason"] for pod in pods] == ["SchedulerError"] * 2
        assert {scene.message(pod) for pod in pods} == {message}

    played(TOPOLOGY, story, FailingGenerator, disabled=["TopologyPlacementGenerator"])


@pytest.mark.parametrize("cpu", ["2", "1"], ids=["a gang that fits", "a gang that does not fit"])
def test_no_event_is_about_the_group(cpu):
    """G25: its condition reports the result; events are about its pods."""

    async def story(scene: Scene) -> None:
        gang, pods = a_pod_group("gang", min_count=2), members(2)
        scene.add(a_node_object("a", cpu=cpu), gang, *pods)
        await scene.run()
        assert scene.condition(gang)
        reason = "Scheduled" if cpu == "2" else "FailedScheduling"
        assert sorted(event[:3] for event in scene.events) == [("Pod", pod.name, reason) for pod in pods]

    played(GANGS, story)
