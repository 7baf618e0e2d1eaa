"""Preemption for a pod group as a whole: what victims and their users see, and what holds the group meanwhile."""

from __future__ import annotations

import pytest
from tests.scheduler.pod_groups.scene import PREEMPTION, TOPOLOGY, Scene, members, played

from mooring.testing import a_node_object, a_pod, a_pod_group
from mooring_conformance.pod_groups import settle

NO_PLACEMENT = "0/1 placements are available, first placement status: pod group is unschedulable"
UNSUPPORTED = {
    "without the plugin DefaultPreemption": (
        None,
        ["DefaultPreemption"],
        f"{NO_PLACEMENT}, default preemption plugin is not registered, workload aware preemption is disabled",
    ),
    "of a group with a topology constraint": (
        "rack",
        [],
        f"{NO_PLACEMENT}, workload aware preemption is not supported for pod groups with scheduling constraints",
    ),
}


@pytest.mark.parametrize(("key", "disabled", "message"), UNSUPPORTED.values(), ids=UNSUPPORTED.keys())
def test_where_there_is_no_preemption_for_the_group(key, disabled, message):
    """G38: the reason follows the status of the group, and no pod is evicted."""

    async def story(scene: Scene) -> None:
        gang = a_pod_group("gang", min_count=2, priority=9, topology_key=key)
        scene.add(a_node_object("a", cpu="2", labels={"rack": "r1"}), a_pod("low", cpu="2", node="a"))
        scene.add(gang, *members(2))
        await scene.run()
        assert scene.condition(gang) == ("False", "Unschedulable", message)
        assert scene.client.deleted == []

    played((*PREEMPTION, TOPOLOGY[-1]), story, disabled=disabled)


def test_what_victims_of_a_group_see():
    """G42: the condition DisruptionTarget, their deletion, and an event that names the group by its uid."""

    async def story(scene: Scene) -> None:
        scene.add(a_node_object("a", cpu="2"), a_pod("low", cpu="2", node="a"))
        scene.add(a_pod_group("gang", min_count=2, priority=9, uid="gang-uid"), *members(2))
        await scene.run()
        why = "default-scheduler: preempting to accommodate a higher priority podgroup"
        assert scene.client.disrupted == {"low": ("PreemptionByScheduler", why)}
        assert scene.client.deleted == ["default/low"]
        note = "Preempted by podgroup gang-uid on node cluster"
        assert ("Pod", "low", "Preempted", "Preempting", note) in scene.events

    played(PREEMPTION, story)


def test_victims_are_evicted_by_their_importance():
    """G42: the most important one first; the last one when the others are being deleted."""

    async def story(scene: Scene) -> None:
        low = [a_pod(f"low-{priority}", cpu="1", node="a", priority=priority) for priority in (1, 3, 2)]
        scene.add(a_node_object("a", cpu="3"), *low)
        scene.add(a_pod_group("gang", min_count=3, priority=9), *members(3))
        await scene.run()
        assert scene.client.deleted == ["default/low-3", "default/low-2", "default/low-1"]

    played(PREEMPTION, story)


def test_the_pods_of_a_group_are_held_while_its_victims_are_evicted():
    """G43: PreEnqueue of DefaultPreemption gates them, also if they are activated, and lets them go afterwards."""

    async def story(scene: Scene) -> None:
        low, pods = a_pod("low", cpu="2", node="a"), members(2)
        scene.add(a_node_object("a", cpu="2"), low, a_pod_group("gang", min_count=2, priority=9), *pods)
        scene.client.may_delete.clear()
        await scene.run()
        scene.core.queue.activate(pods)
        held = ("waiting for the preemption for this pod group to be finished",)
        assert [scene.gated_by(pod) for pod in pods] == [held, held]
        scene.client.may_delete.set()
        await settle()
        scene.delete(low)
        await scene.passes(seconds=3)
        assert scene.gated() == []
        assert sorted(scene.bound()) == ["gang-0", "gang-1"]

    played(PREEMPTION, story)


def test_only_members_that_fitted_are_nominated():
    """G44: the first member fitted beside the victims and is nominated to its node; the second one is not."""

    async def story(scene: Scene) -> None:
        pods = members(2)
        scene.add(a_node_object("a", cpu="2"), a_pod("low", cpu="1", node="a"))
        scene.add(a_pod_group("gang", min_count=2, priority=9), *pods)
        await scene.run()
        assert scene.client.deleted == ["default/low"]
        assert [scene.client.failed[pod.key]["nominatedNode"] for pod in pods] == ["a", None]
        assert scene.message(pods[0]) == "pod group is unschedulable"
        assert scene.message(pods[1]).startswith("0/1 nodes are available: 1 Insufficient cpu.")

    played(PREEMPTION, story)
