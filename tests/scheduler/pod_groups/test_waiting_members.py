"""Members that wait on permit for the rest of their gang: when one fails, the others hold no nodes for nothing."""

from __future__ import annotations

from typing import ClassVar

import pytest
from tests.scheduler.pod_groups.scene import GANGS, PREEMPTION, Scene, members, played

from mooring.framework import Allow, Cycle, NodeView, Plugin, Pod, Refusal, Wait
from mooring.queue import Place
from mooring.testing import a_node_object, a_pod_group
from mooring_conformance.pod_groups import settle

AS_UPSTREAM = {"GangScheduling": {"releaseWaitingPods": False}}
TIMED_OUT = "0/1 nodes are available: 1 rejected due to timeout after waiting 5m0s at plugin GangScheduling."
RELEASED = "0/1 nodes are available: 1 node(s) released because another pod of the gang failed."


class RefuseLate(Plugin):
    """Refuses a pod of this name at Reserve, not when it is tried: as a volume that was taken meanwhile."""

    refused: ClassVar[set[str]]

    def __init__(self) -> None:
        RefuseLate.refused = {"gang-2"}

    def reserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        return Refusal("taken") if pod.name in self.refused and not cycle.is_trial else None


class Hold(Plugin):
    """Lets every pod wait for something else than its gang."""

    def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> Allow | Wait:
        return Allow() if cycle.is_trial else Wait(600)


def a_gang_of_three(scene: Scene) -> list[Pod]:
    pods = members(3)
    scene.add(a_node_object("a", cpu="3"), a_pod_group("gang", min_count=3), *pods)
    return pods


def test_the_others_are_released_with_a_member_that_fails():
    """G29: they give up their nodes at once, and the gang is tried again as a whole."""

    async def story(scene: Scene) -> None:
        pods = a_gang_of_three(scene)
        await scene.run()
        assert scene.waiting() == []
        assert scene.used("a") == 0
        assert [scene.message(pod) for pod in pods[:2]] == [RELEASED, RELEASED]
        assert {scene.where(pod) for pod in pods} == {Place.BACKOFF.value}
        RefuseLate.refused = set()
        await scene.passes(seconds=3)
        assert sorted(scene.bound()) == ["gang-0", "gang-1", "gang-2"]

    played(GANGS, story, RefuseLate)


@pytest.mark.parametrize("failing", ["gang-0", "gang-1"])
def test_a_member_that_failed_does_not_count_for_those_behind_it(failing):
    """G23, G29: it is off its node before the next one is permitted, so the quorum is not reached."""

    async def story(scene: Scene) -> None:
        a_gang_of_three(scene)
        RefuseLate.refused = {failing}
        await scene.run()
        assert scene.bound() == {}
        assert scene.used("a") == 0

    played(GANGS, story, RefuseLate)


def test_as_upstream_those_that_wait_are_not_allowed_by_a_trial():
    """G27: the third member fits in the trial of the next cycle, and fails again: none is bound."""

    async def story(scene: Scene) -> None:
        a_gang_of_three(scene)
        await scene.run()
        await scene.passes(seconds=3)
        assert scene.bound() == {}
        assert scene.waiting() == ["gang-0", "gang-1"]

    played(GANGS, story, RefuseLate, args=AS_UPSTREAM)


def test_members_beyond_the_quorum_do_not_matter_to_the_others():
    """G28, G29: the gang is complete without the one that fails."""

    async def story(scene: Scene) -> None:
        scene.add(a_node_object("a", cpu="3"), a_pod_group("gang", min_count=2), *members(3))
        await scene.run()
        assert sorted(scene.bound()) == ["gang-0", "gang-1"]
        assert scene.used("a") == 2000

    played(GANGS, story, RefuseLate)


def test_members_of_a_complete_gang_may_wait_for_other_plugins():
    """G29: a member beyond the quorum that fails does not release them."""

    async def story(scene: Scene) -> None:
        scene.add(a_node_object("a", cpu="3"), a_pod_group("gang", min_count=2), *members(3))
        await scene.run()
        assert scene.waiting() == ["gang-0", "gang-1"]

    played(GANGS, story, RefuseLate, Hold)


def test_as_upstream_the_others_keep_their_nodes():
    """G29: with releaseWaitingPods false they wait on, and the failed one completes the gang as soon as it fits."""

    async def story(scene: Scene) -> None:
        a_gang_of_three(scene)
        await scene.run()
        assert scene.waiting() == ["gang-0", "gang-1"]
        assert scene.used("a") == 2000
        RefuseLate.refused = set()
        await scene.passes(seconds=3)
        assert sorted(scene.bound()) == ["gang-0", "gang-1", "gang-2"]

    played(GANGS, story, RefuseLate, args=AS_UPSTREAM)


def test_as_upstream_each_gives_up_its_node_when_its_time_is_up():
    """G23, G29: those of one cycle began to wait together, so a gang holds nodes in part for five minutes at most."""

    async def story(scene: Scene) -> None:
        pods = a_gang_of_three(scene)
        await scene.run()
        scene.clock.advance(299)
        await settle()
        assert scene.waiting() == ["gang-0", "gang-1"]
        scene.clock.advance(2)
        await settle()
        assert scene.waiting() == []
        assert scene.used("a") == 0
        assert [scene.message(pod) for pod in pods[:2]] == [TIMED_OUT, TIMED_OUT]

    played(GANGS, story, RefuseLate, args=AS_UPSTREAM)


def test_a_victim_that_waits_is_not_deleted():
    """G42: it is requeued in memory, as the event notes; as upstream its siblings wait on."""

    async def story(scene: Scene) -> None:
        a_gang_of_three(scene)
        await scene.run()
        urgent = a_pod_group("urgent", min_count=1, priority=9, uid="urgent-uid")
        scene.add(urgent, *members(1, group="urgent", cpu="2"))
        await scene.run()
        assert scene.client.deleted == []
        assert scene.waiting() == ["gang-0"]
        note = "Preempted by podgroup urgent-uid on node cluster (in kube-scheduler memory)."
        assert ("Pod", "gang-1", "Preempted", "Preempting", note) in scene.events

    played(PREEMPTION, story, RefuseLate, args=AS_UPSTREAM)
