"""The pod group cycle: which members are tried, when a group is feasible, and what becomes of each member."""

from __future__ import annotations

import msgspec
import pytest
from tests.scheduler.pod_groups.scene import GANGS, PREEMPTION, TOPOLOGY, WAIT, Scene, members, played

from mooring.config import default_configuration
from mooring.framework import FeatureGates, Point
from mooring.plugins.catalogue import catalogue
from mooring.queue import Place
from mooring.testing import a_node_object, a_pod, a_pod_group


def test_the_default_profile_gains_the_plugins_of_the_gates():
    """G1: GangScheduling is behind all others, then the plugins of placements; NodeResourcesFit scores placements."""
    gates = FeatureGates(dict.fromkeys(TOPOLOGY, True))
    [profile] = default_configuration(catalogue(), gates).profiles
    at = {point: [use.name for use in uses] for point, uses in profile.points.items()}
    assert at[Point.PERMIT] == ["GangScheduling"]
    assert at[Point.PRE_ENQUEUE][-1] == "GangScheduling"
    assert at[Point.PLACEMENT_GENERATE] == ["TopologyPlacementGenerator"]
    assert [(use.name, use.weight) for use in profile.points[Point.PLACEMENT_SCORE]] == [
        ("NodeResourcesFit", 1),
        ("PodGroupPodsCount", 1),
    ]
    [plain] = default_configuration(catalogue(), FeatureGates()).profiles
    assert not {Point.PLACEMENT_GENERATE, Point.PLACEMENT_SCORE} & plain.points.keys()
    assert plain.points[Point.PERMIT] == ()


def test_a_gang_that_fits_is_bound_in_one_cycle():
    """G9, G10, G23, G24: one pop takes all members; they are permitted one after the other and bound together."""

    async def story(scene: Scene) -> None:
        gang, pods = a_pod_group("gang", min_count=3), members(3)
        scene.add(a_node_object("a", cpu="2"), a_node_object("b", cpu="2"), gang, *pods)
        await scene.run()
        assert sorted(scene.bound()) == ["gang-0", "gang-1", "gang-2"]
        assert scene.cycles == 1
        assert scene.condition(gang) == ("True", "Scheduled", "")
        assert not list(scene.core.room)
        assert scene.client.nominated == []

    played(GANGS, story)


def test_a_gang_that_does_not_fit_leaves_nothing_behind():
    """G14, G18, G21, G22: no member is bound, what was tried is undone, and all back off with their reasons."""

    async def story(scene: Scene) -> None:
        gang, pods = a_pod_group("gang", min_count=3), members(3)
        scene.add(a_node_object("a", cpu="2"), gang, *pods)
        await scene.run()
        assert scene.bound() == {}
        assert scene.core.state.pod_counts() == (0, 0)
        node = scene.core.state.node("a")
        assert node is not None
        assert node.requested("cpu") == 0
        assert [scene.message(pod) for pod in pods[:2]] == [WAIT, WAIT]
        assert scene.message(pods[2]).startswith("0/1 nodes are available: 1 Insufficient cpu.")
        assert {scene.where(pod) for pod in pods} == {Place.BACKOFF.value}
        assert scene.condition(gang) == ("False", "Unschedulable", "pod group is unschedulable")

    played(GANGS, story)


def test_a_group_without_a_quorum_places_what_fits():
    """G2, G19: a basic group goes through the cycle; members that do not fit fail by themselves."""

    async def story(scene: Scene) -> None:
        group, pods = a_pod_group("gang"), members(3)
        scene.add(a_node_object("a", cpu="2"), group, *pods)
        await scene.run()
        assert sorted(scene.bound()) == ["gang-0", "gang-1"]
        assert scene.condition(group)[0] == "True"
        assert scene.where(pods[2]) == Place.BACKOFF.value

    played(("GenericWorkload",), story)


def test_two_gangs_that_would_deadlock_one_by_one_do_not():
    """G18: while one gang is tried no other pod is, so it gets all of what it needs, or nothing."""

    async def story(scene: Scene) -> None:
        pods = [pod for pair in zip(members(2, group="red"), members(2, group="blue"), strict=True) for pod in pair]
        groups = a_pod_group("red", min_count=2), a_pod_group("blue", min_count=2)
        scene.add(a_node_object("a", cpu="2"), *groups, *pods)
        await scene.run()
        assert sorted(scene.bound()) in (["red-0", "red-1"], ["blue-0", "blue-1"])
        assert sorted(scene.condition(group)[0] for group in groups) == ["False", "True"]

    played(GANGS, story)


def test_members_wait_for_their_group_and_for_each_other():
    """G15, G16, G26: PreEnqueue holds them until PodGroup and minCount pods exist; each added member tries again."""

    async def story(scene: Scene) -> None:
        pods = members(2)
        scene.add(a_node_object("a"), pods[0])
        assert scene.gated() == ["gang-0"]
        scene.add(a_pod_group("gang", min_count=2))
        assert scene.gated() == ["gang-0"]
        scene.add(a_pod("foreign", group="another"))
        assert scene.gated() == ["foreign", "gang-0"]
        scene.add(pods[1])
        assert scene.gated() == ["foreign"]
        await scene.run()
        assert sorted(scene.bound()) == ["gang-0", "gang-1"]

    played(GANGS, story)


def test_running_pods_count_towards_the_quorum():
    """G4, G6, G7, G27, G28: a replacement of a running gang passes alone; bound pods of any scheduler count."""

    async def story(scene: Scene) -> None:
        running = a_pod("old", group="gang", node="a", scheduler="another-scheduler")
        scene.add(a_node_object("a"), a_pod_group("gang", min_count=2), running)
        known = scene.core.state.pod_group("default", "gang")
        assert known is not None
        assert (known.all_count, known.scheduled_count) == (1, 1)
        scene.add(a_pod("new", group="gang"))
        await scene.run()
        assert scene.bound() == {"new": "a"}
        assert known.scheduled_count == 2

    played(GANGS, story)


def test_more_members_than_the_quorum_are_placed_where_they_fit():
    """G11, G28: members are tried by priority; those beyond minCount fail alone, and the group stays True."""

    async def story(scene: Scene) -> None:
        gang, pods = a_pod_group("gang", min_count=2), members(3)
        scene.add(a_node_object("a", cpu="2"), gang, *reversed(pods))
        await scene.run()
        assert sorted(scene.bound()) == ["gang-0", "gang-1"]
        scene.core.queue.activate([pods[2]])
        await scene.run()
        assert scene.condition(gang)[0] == "True"

    played(GANGS, story)


def test_members_of_two_schedulers_fail_with_an_error():
    """G12: all members must name the same scheduler."""

    async def story(scene: Scene) -> None:
        pods = [a_pod("x", group="gang", priority=2), a_pod("y", group="gang", priority=1, scheduler="other")]
        scene.add(a_node_object("a"), a_pod_group("gang", min_count=2), *pods)
        await scene.run()
        expected = 'all pods in a single pod group should have the same .spec.schedulerName set, got: "other" and '
        assert all(scene.message(pod) == f'{expected}"default-scheduler"' for pod in pods)
        assert scene.bound() == {}

    played(GANGS, story)


def racks(**cpus: str) -> list[object]:
    return [a_node_object(name, cpu=cpu, labels={"rack": name[:2]}) for name, cpu in cpus.items()]


def test_a_constrained_group_stays_within_one_domain():
    """G30, G31, G32: each value of the label is a placement; only one that has room for the gang is taken."""

    async def story(scene: Scene) -> None:
        gang = a_pod_group("gang", min_count=3, topology_key="rack")
        scene.add(*racks(r1a="1", r1b="1", r2a="2", r2b="1"), gang, *members(3))  # type: ignore[arg-type]
        await scene.run()
        assert set(scene.bound().values()) == {"r2a", "r2b"}

    played(TOPOLOGY, story)


def test_a_constrained_group_that_fits_no_domain_fails():
    """G33, G36: the status names the number of placements; its members do not preempt."""

    async def story(scene: Scene) -> None:
        gang, pods = a_pod_group("gang", min_count=3, topology_key="rack"), members(3)
        scene.add(*racks(r1a="1", r2a="1"), gang, *pods)  # type: ignore[arg-type]
        await scene.run()
        message = "0/2 placements are available, first placement status: pod group is unschedulable"
        assert scene.condition(gang) == ("False", "Unschedulable", message)
        assert "not eligible due to placement-based pod group scheduling limitation" in scene.message(pods[2])

    played(TOPOLOGY, story)


def test_of_two_domains_the_one_with_more_pods_of_the_group_wins_then_the_fullest():
    """G34: PodGroupPodsCount, then NodeResourcesFit by how full the placement gets."""

    async def story(scene: Scene) -> None:
        basic = a_pod_group("gang", topology_key="rack")
        scene.add(*racks(r1a="1", r2a="3"), basic, *members(3))  # type: ignore[arg-type]
        await scene.run()
        assert set(scene.bound().values()) == {"r2a"}
        tight = a_pod_group("tight", min_count=1, topology_key="rack")
        scene.add(*racks(r3a="64", r4a="2"), tight, *members(1, group="tight"))  # type: ignore[arg-type]
        await scene.run()
        assert scene.bound()["tight-0"] in ("r1a", "r4a")

    played(TOPOLOGY, story)


def test_a_group_preempts_as_a_whole():
    """G20, G37, G40, G41: units below the group's own priority are evicted, as few as it takes."""

    async def story(scene: Scene) -> None:
        low = [a_pod(f"low-{at}", cpu="1", node="a", priority=at) for at in range(4)]
        gang, pods = a_pod_group("gang", min_count=2, priority=100), members(2)
        scene.add(a_node_object("a", cpu="4"), *low, gang, *pods)
        await scene.run()
        assert sorted(set(scene.client.deleted)) == ["default/low-0", "default/low-1"]
        assert scene.condition(gang) == ("False", "Unschedulable", "pod group is unschedulable")
        assert "not eligible due to workload aware preemption enabled" in scene.message(pods[0])
        assert scene.core.state.pod_counts() == (0, 4)

    played(PREEMPTION, story)


@pytest.mark.parametrize(
    ("gang", "reason"),
    [
        (a_pod_group("gang", min_count=2), "No preemption victims found for incoming preemptor"),
        (a_pod_group("gang", min_count=2, priority=10, disruption_mode="Pod"), "pod group is unschedulable"),
    ],
    ids=["without a priority of its own", "too large for the cluster"],
)
def test_why_a_group_does_not_preempt(gang, reason):
    """G40: the reason follows the status of the group, whose priority is not that of its pods."""

    async def story(scene: Scene) -> None:
        scene.add(a_node_object("a", cpu="1"), a_pod("low", cpu="1", node="a", priority=0), gang, *members(2))
        await scene.run()
        assert scene.client.deleted == []
        assert scene.condition(gang) == ("False", "Unschedulable", f"pod group is unschedulable, {reason}")

    played(PREEMPTION, story)


def test_a_group_with_disruption_mode_pod_group_is_evicted_whole():
    """G40: all pods of the victim group are deleted, though one of them would have been enough."""

    async def story(scene: Scene) -> None:
        victim = a_pod_group("victim", min_count=2, priority=1, disruption_mode="PodGroup")
        low = [a_pod(f"victim-{at}", cpu="1", node="a", group="victim") for at in range(2)]
        scene.add(a_node_object("a", cpu="2"), victim, *low)
        scene.add(a_pod_group("gang", min_count=1, priority=9), *members(1))
        await scene.run()
        assert sorted(set(scene.client.deleted)) == ["default/victim-0", "default/victim-1"]

    played(PREEMPTION, story)


def test_with_the_gates_off_members_are_scheduled_one_by_one():
    """G2: without GenericWorkload the group that a pod names means nothing."""

    async def story(scene: Scene) -> None:
        scene.add(a_node_object("a", cpu="2"), *members(3))
        await scene.run()
        assert sorted(scene.bound()) == ["gang-0", "gang-1"]
        assert scene.client.groups == {}

    played((), story)


def test_a_member_that_is_being_deleted_is_dropped():
    """G13: it is not tried; the others are."""

    async def story(scene: Scene) -> None:
        going, *others = members(3)
        metadata = msgspec.structs.replace(going.metadata, deletion_timestamp="2024-01-01T00:00:00Z")
        scene.add(a_node_object("a"), a_pod_group("gang", min_count=2))
        scene.add(msgspec.structs.replace(going, metadata=metadata), *others)
        await scene.run()
        assert sorted(scene.bound()) == ["gang-1", "gang-2"]

    played(GANGS, story)


def test_a_member_that_must_not_preempt_keeps_the_group_from_it():
    """G39: one member with preemptionPolicy Never is enough."""

    async def story(scene: Scene) -> None:
        gang, (meek, other) = a_pod_group("gang", min_count=2, priority=9), members(2)
        spec = msgspec.structs.replace(meek.spec, preemption_policy="Never")
        scene.add(a_node_object("a", cpu="2"), a_pod("low", cpu="2", node="a"), gang)
        scene.add(msgspec.structs.replace(meek, spec=spec), other)
        await scene.run()
        assert scene.client.deleted == []
        message = "pod group is unschedulable, not eligible due to preemptionPolicy=Never."
        assert scene.condition(gang) == ("False", "Unschedulable", message)

    played(PREEMPTION, story)
