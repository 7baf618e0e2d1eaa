"""Gangs of which some pods are bound and the rest does not fit: a crash between the bindings leaves such."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import force_setattr
from tests.scheduler.pod_groups.scene import GANGS, PREEMPTION, TOPOLOGY, Scene, members, played

from mooring.base.clock import timestamp
from mooring.framework import Cycle, NodeView, Plugin, Pod, PodGroupPlan, Wait
from mooring.objects import Kind
from mooring.objects.pod_groups import GANG_COMPLETED, Condition, PodGroup
from mooring.testing import a_node_object, a_pod, a_pod_group
from mooring_conformance.pod_groups import settle

TIMEOUT_SECONDS = 300
BACKOFF_SECONDS = 15
"""Longer than any pod backs off."""
WHY = "pod group default/gang cannot be completed: 2 of 4 pods bound"


def on_node(pod: Pod, *, started: float | None = None) -> Pod:
    """The pod bound to node a."""
    status = pod.status if started is None else msgspec.structs.replace(pod.status, start_time=timestamp(started))
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name="a"), status=status)


def after_a_crash(
    scene: Scene, *, pods: int = 4, bound: int = 2, started_ago: float | None = None, created_ago: float = 60
) -> list[Pod]:
    """A gang of four, some of its pods bound and the others pending. Of node a, which has room for four pods, another
    pod took what is left. Pending pods were created so many seconds ago."""
    now = scene.clock.now()
    gang = members(pods, created=now - created_ago)
    started = None if started_ago is None else now - started_ago
    gang[:bound] = [on_node(pod, started=started) for pod in gang[:bound]]
    scene.add(a_node_object("a", cpu=4), a_pod_group("gang", min_count=4), other(4 - bound), *gang)
    return gang


def other(cpu: int) -> Pod:
    return a_pod("other", uid="other", cpu=cpu, node="a", priority=100)


async def until_timed_out(scene: Scene) -> None:
    await scene.run()
    await scene.passes(seconds=TIMEOUT_SECONDS)


def ended(scene: Scene) -> list[Pod]:
    """The evicted pods end, and their owner creates others."""
    now = scene.clock.now()
    names = [name.partition("/")[2] for name in scene.client.deleted]
    for name in names:
        scene.core.pods.deleted(scene.known[name])
    new = [a_pod(f"new-{name}", cpu="1", group="gang", created=now) for name in names]
    scene.add(*new)
    return new


@pytest.mark.parametrize("gates", [GANGS, TOPOLOGY, PREEMPTION], ids=["gangs", "topology", "preemption"])
def test_bound_pods_are_evicted_when_the_time_out_has_passed(gates):
    """Their condition and event report why; the others stay pending with the reason that they do not fit."""

    async def story(scene: Scene) -> None:
        pods = after_a_crash(scene)
        await scene.run()
        await scene.passes(seconds=TIMEOUT_SECONDS - 1)
        assert scene.client.deleted == []
        await scene.passes(seconds=BACKOFF_SECONDS)
        assert sorted(scene.client.deleted) == ["default/gang-0", "default/gang-1"]
        assert scene.client.disrupted["gang-0"] == ("PreemptionByScheduler", f"default-scheduler: {WHY}")
        assert ("Pod", "gang-1", "Preempted", "Preempting", WHY) in scene.events
        assert scene.bound() == {}
        assert "Insufficient cpu" in scene.message(pods[3])

    played(gates, story)


def test_the_gang_is_tried_as_a_whole_when_they_have_ended():
    async def story(scene: Scene) -> None:
        after_a_crash(scene)
        await until_timed_out(scene)
        ended(scene)
        await scene.passes(seconds=BACKOFF_SECONDS)
        assert scene.bound() == {}, "half of the node is another pod's"
        scene.delete(other(2))
        await scene.passes(seconds=BACKOFF_SECONDS)
        assert sorted(scene.bound()) == ["gang-2", "gang-3", "new-gang-0", "new-gang-1"]

    played(GANGS, story)


def test_what_they_held_is_free_for_others():
    async def story(scene: Scene) -> None:
        after_a_crash(scene)
        await until_timed_out(scene)
        ended(scene)
        scene.add(a_pod("next", cpu=2))
        await scene.run()
        assert scene.bound() == {"next": "a"}

    played(GANGS, story)


def test_the_rest_is_bound_beside_them_if_it_fits_in_time():
    async def story(scene: Scene) -> None:
        after_a_crash(scene)
        await scene.run()
        await scene.passes(seconds=TIMEOUT_SECONDS - BACKOFF_SECONDS)
        scene.delete(other(2))
        await scene.passes(seconds=BACKOFF_SECONDS)
        assert sorted(scene.bound()) == ["gang-2", "gang-3"]
        await scene.passes(seconds=TIMEOUT_SECONDS)
        assert scene.client.deleted == []

    played(GANGS, story)


def test_a_member_that_does_not_fit_is_nothing_to_a_gang_that_others_complete():
    async def story(scene: Scene) -> None:
        large = a_pod("large", cpu="9", group="gang", priority=9)
        after_a_crash(scene)
        scene.delete(other(2))
        scene.add(large)
        await until_timed_out(scene)
        assert scene.client.deleted == []
        assert sorted(scene.bound()) == ["gang-2", "gang-3"]

    played(GANGS, story)


def test_evicted_pods_that_have_not_ended_do_not_complete_the_gang():
    """Otherwise room for two would bind two pods beside two that are about to be gone."""

    async def story(scene: Scene) -> None:
        pods = after_a_crash(scene)
        await until_timed_out(scene)
        scene.add(*(evicted(pod) for pod in pods[:2]))
        scene.delete(other(2))
        await scene.passes(seconds=BACKOFF_SECONDS)
        assert scene.bound() == {}

    played(GANGS, story)


def evicted(pod: Pod) -> Pod:
    """As the watch shows it until it has ended."""
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    status = msgspec.convert({"phase": "Running", "conditions": [condition]}, type(pod.status))
    return msgspec.structs.replace(ending(pod), status=status)


def ending(pod: Pod) -> Pod:
    """Being deleted."""
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z", resource_version="2")
    return msgspec.structs.replace(pod, metadata=metadata)


LEFT_ALONE = {
    "pods that have run for long, so they are not those of a crash": {"started_ago": 601, "created_ago": 700},
    "pods that started before the pending ones were created: these replace others": {
        "started_ago": 30,
        "created_ago": 29,
    },
    "pods that start in the future: by this clock their age is unknown": {"started_ago": -3600, "created_ago": -3000},
    "a pod that is bound alone, where two more are too young": {"bound": 1, "started_ago": 30, "created_ago": 29},
}


@pytest.mark.parametrize("situation", LEFT_ALONE.values(), ids=LEFT_ALONE.keys())
def test_pods_of_a_gang_that_was_complete_before_a_restart_are_left_alone(situation):
    async def story(scene: Scene) -> None:
        after_a_crash(scene, **situation)
        for _ in range(3):
            await until_timed_out(scene)
        assert scene.client.deleted == []

    played(GANGS, story)


def test_young_pods_beyond_those_that_the_gang_needs_do_not_matter():
    """All four of a gang of four existed when the first of them started: none of them is a replacement."""

    async def story(scene: Scene) -> None:
        after_a_crash(scene, started_ago=30)
        scene.add(a_pod("young", cpu=1, group="gang", created=scene.clock.now()))
        await until_timed_out(scene)
        assert sorted(scene.client.deleted) == ["default/gang-0", "default/gang-1"]

    played(GANGS, story)


def test_pods_of_a_gang_that_was_seen_complete_are_left_alone():
    """The scheduler was there when two were lost. It knows, whatever the ages of the others are."""

    async def story(scene: Scene) -> None:
        pods = after_a_crash(scene, pods=6, bound=4)
        scene.delete(*pods[:2])
        scene.add(other(2))
        for _ in range(3):
            await until_timed_out(scene)
        assert scene.client.deleted == []

    played(GANGS, story)


def test_it_is_recorded_that_a_gang_was_complete_when_a_pod_of_it_lacks_room():
    """For the process that comes after this one: by then the gang may have lost a pod. Once, not at each attempt."""

    async def story(scene: Scene) -> None:
        after_a_crash(scene, pods=6, bound=4)
        scene.client.may_delete.clear()
        await until_timed_out(scene)
        await until_timed_out(scene)
        assert scene.client.completed == ["gang"]

    played(GANGS, story)


def test_nothing_is_recorded_of_a_gang_that_all_its_pods_fit():
    async def story(scene: Scene) -> None:
        scene.add(a_node_object("a", cpu=4), a_pod_group("gang", min_count=4), *members(4))
        await scene.run()
        await until_timed_out(scene)
        assert scene.client.completed == []

    played(GANGS, story)


def test_pods_of_a_gang_that_is_recorded_as_complete_are_left_alone():
    async def story(scene: Scene) -> None:
        after_a_crash(scene, pods=6, bound=3)
        scene.add(completed(a_pod_group("gang", min_count=4)))
        for _ in range(3):
            await until_timed_out(scene)
        assert scene.client.deleted == []

    played(GANGS, story)


def completed(group: PodGroup) -> PodGroup:
    force_setattr(group.metadata, "resource_version", "2")
    force_setattr(group.status, "conditions", (*group.status.conditions, Condition(type=GANG_COMPLETED, status="True")))
    return group


def test_a_pod_that_ends_when_the_scheduler_starts_shows_that_the_gang_was_complete():
    """It was drained while no scheduler ran, and is there for its grace period still."""

    async def story(scene: Scene) -> None:
        pods = after_a_crash(scene, pods=6, bound=3)
        scene.add(ending(on_node(a_pod("drained", cpu=1, group="gang"))))
        for _ in range(3):
            await until_timed_out(scene)
        assert pods[0].key not in scene.client.deleted

    played(GANGS, story)


def test_each_eviction_doubles_the_time_out():
    """Pods that another client binds would be evicted again and again."""

    async def story(scene: Scene) -> None:
        after_a_crash(scene)
        await until_timed_out(scene)
        for at, seconds in enumerate((TIMEOUT_SECONDS, 2 * TIMEOUT_SECONDS)):
            for name in scene.client.deleted:
                scene.delete(scene.known[name.partition("/")[2]])
            scene.client.deleted.clear()
            await scene.passes(seconds=BACKOFF_SECONDS)
            scene.add(*(on_node(a_pod(f"again-{at}-{each}", cpu=1, group="gang", priority=9)) for each in range(2)))
            await scene.passes(seconds=BACKOFF_SECONDS)
            await scene.passes(seconds=seconds)
            assert scene.client.deleted == []
            await scene.passes(seconds=seconds)
            assert len(scene.client.deleted) == 2

    played(GANGS, story)


def test_pods_whose_eviction_is_under_way_do_not_complete_the_gang():
    """Room appears before the API server has deleted them: two would be bound beside two that are about to go."""

    async def story(scene: Scene) -> None:
        after_a_crash(scene)
        scene.client.may_delete.clear()
        await until_timed_out(scene)
        scene.delete(other(2))
        await scene.passes(seconds=BACKOFF_SECONDS)
        assert scene.bound() == {}
        assert scene.client.deleted == []
        scene.client.may_delete.set()
        await scene.passes(seconds=BACKOFF_SECONDS)
        ended(scene)
        await scene.passes(seconds=BACKOFF_SECONDS)
        assert sorted(scene.bound()) == ["gang-2", "gang-3", "new-gang-0", "new-gang-1"]

    played(GANGS, story)


def test_an_eviction_that_takes_long_is_not_begun_again():
    async def story(scene: Scene) -> None:
        after_a_crash(scene)
        scene.client.may_delete.clear()
        await until_timed_out(scene)
        for _ in range(5):
            await scene.passes(seconds=60)
        scene.client.may_delete.set()
        await settle()
        assert sorted(scene.client.deleted) == ["default/gang-0", "default/gang-1"]

    played(GANGS, story)


@pytest.mark.parametrize("terminating", [0, 1])
def test_a_pod_that_is_being_deleted_is_not_evicted_again(terminating):
    async def story(scene: Scene) -> None:
        pods = after_a_crash(scene)
        scene.add(*(ending(pod) for pod in pods[:terminating]))
        await until_timed_out(scene)
        assert sorted(scene.client.deleted) == [pod.key for pod in pods[terminating:2]]

    played(GANGS, story)


def test_the_time_out_starts_again_for_other_pods():
    """The pods that were bound alone are gone, and their successors are bound in part as well."""

    async def story(scene: Scene) -> None:
        pods = after_a_crash(scene)
        await scene.run()
        await scene.passes(seconds=TIMEOUT_SECONDS - 20)
        scene.delete(*pods[:2])
        scene.add(*(on_node(a_pod(f"again-{at}", cpu=1, group="gang", priority=9)) for at in range(2)))
        await scene.passes(seconds=40)
        assert scene.client.deleted == []
        await scene.passes(seconds=TIMEOUT_SECONDS)
        assert sorted(scene.client.deleted) == ["default/again-0", "default/again-1"]

    played(GANGS, story)


def evictions_that_fail(scene: Scene, failures: dict[str, int]) -> list[str]:
    """Pods that the API server deletes are gone at once; of these pods, so many requests fail before. Every request."""
    requests: list[str] = []

    async def delete(_kind: Kind, name: str, *_: object, **_more: object) -> None:
        requests.append(name)
        if failures.get(name, 0) > 0:
            failures[name] -= 1
            raise RuntimeError("no response")
        scene.client.deleted.append(f"default/{name}")
        scene.delete(scene.known[name])

    scene.client.delete = delete  # type: ignore[method-assign, assignment]
    return requests


def test_a_pod_that_could_not_be_evicted_is_evicted_again():
    """Also if others are gone then: that fewer pods are left than the gang needs does not mean that it was complete."""

    async def story(scene: Scene) -> None:
        after_a_crash(scene, started_ago=30)
        evictions_that_fail(scene, {"gang-1": 1})
        await until_timed_out(scene)
        assert scene.client.deleted == ["default/gang-0"]
        scene.add(a_pod("new", cpu=1, group="gang", created=scene.clock.now()))
        for _ in range(4):
            await scene.passes(seconds=BACKOFF_SECONDS)
        assert scene.client.deleted == ["default/gang-0", "default/gang-1"]

    played(GANGS, story)


@pytest.mark.parametrize("gates", [GANGS, PREEMPTION], ids=["gangs", "preemption"])
def test_evictions_that_always_fail_are_repeated_at_intervals(gates):
    """A failure requeues the pods at once: without an interval, requests would follow each other without a pause."""

    async def story(scene: Scene) -> None:
        after_a_crash(scene)
        requests = evictions_that_fail(scene, dict.fromkeys(["gang-0", "gang-1"], 1000))
        await until_timed_out(scene)
        for _ in range(4):
            await scene.passes(seconds=BACKOFF_SECONDS)
        assert len(requests) == 3, "at 300, 330 and 360 s, and of the first pod only"

    played(gates, story)


class Hold(Plugin):
    """Lets pods of this name wait after they were tried."""

    def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> Wait | None:
        return Wait(3600) if pod.name == "gang-2" and not cycle.is_trial else None


def test_nothing_is_evicted_while_other_members_are_being_bound():
    """A second pod fits and waits for something else; a third one fails meanwhile."""

    async def story(scene: Scene) -> None:
        gang = members(4, created=scene.clock.now())
        gang[:2] = [on_node(pod) for pod in gang[:2]]
        scene.add(a_node_object("a", cpu=4), a_pod_group("gang", min_count=3), *gang[:3])
        await scene.run()
        assert scene.waiting() == ["gang-2"]
        scene.add(a_pod_group("gang", min_count=4, uid="larger"), other(1), gang[3])
        await until_timed_out(scene)
        assert scene.client.deleted == []

    played(GANGS, story, Hold)


AS_ARGUED = {
    "kube-scheduler leaves them": ({"evictPartialGroups": False}, 3600, []),
    "another time-out": ({"partialGroupTimeoutSeconds": 5}, 6, ["default/gang-0", "default/gang-1"]),
}


@pytest.mark.parametrize(("arguments", "seconds", "deleted"), AS_ARGUED.values(), ids=AS_ARGUED.keys())
def test_arguments_decide_whether_and_when(arguments, seconds, deleted):
    async def story(scene: Scene) -> None:
        after_a_crash(scene)
        await scene.run()
        await scene.passes(seconds=seconds)
        assert sorted(scene.client.deleted) == deleted

    played(GANGS, story, args={"GangScheduling": arguments})


def test_explain_shows_how_long_they_stay():
    async def story(scene: Scene) -> None:
        pods = after_a_crash(scene)
        [gang_scheduling] = [
            each
            for each in scene.core.assembly.current.profiles["default-scheduler"].plugins
            if each.name == "GangScheduling"
        ]
        assert list(gang_scheduling.explain(pods[3])) == []
        await scene.run()
        scene.clock.advance(100)
        assert list(gang_scheduling.explain(pods[3])) == [
            "gang gang: 2 of 4 pods bound; evicted in 200 s unless the others fit by then"
        ]

    played(GANGS, story)


class Learns(Plugin):
    """A plugin of a user's."""

    is_broken = False

    def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> None: ...

    def pod_group_unschedulable(self, group: PodGroup) -> PodGroupPlan | None:
        if self.is_broken:
            raise RuntimeError("oops")
        return None


class Breaks(Learns):
    is_broken = True


def test_a_plugin_that_fails_there_costs_nothing():
    """It is logged; the other plugins are called, and every pod is requeued."""

    async def story(scene: Scene) -> None:
        pods = after_a_crash(scene)
        await until_timed_out(scene)
        assert sorted(scene.client.deleted) == ["default/gang-0", "default/gang-1"]
        assert {scene.where(pod) for pod in pods[2:]} == {"backoff"}

    played(GANGS, story, Breaks, Learns)


def test_members_are_gated_while_pods_are_evicted_with_group_preemption():
    """G43: as for any eviction for the group."""

    async def story(scene: Scene) -> None:
        pods = after_a_crash(scene)
        await scene.run()
        scene.client.may_delete.clear()
        await scene.passes(seconds=TIMEOUT_SECONDS)
        await settle()
        assert "waiting for the preemption for this pod group to be finished" in scene.gated_by(pods[3])

    played(PREEMPTION, story)
