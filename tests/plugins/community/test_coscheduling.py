"""Coscheduling: pods of a group are bound together, and groups do not block each other."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import force_setattr

from mooring.base.errors import OperatorMistake
from mooring.framework import Action, Allow, Plan, Pod, PostFilterRefusal, QueuedPod, Refusal, Skip, Wait
from mooring.objects.meta import ObjectMeta
from mooring.objects.placed import placed
from mooring.plugins.community.coscheduling import Coscheduling
from mooring.plugins.community.coscheduling.pod_groups import (
    GROUP_LABEL,
    CoschedulingGroup,
    CoschedulingGroupSpec,
    CoschedulingGroupStatus,
)
from mooring.testing import Services, a_cluster, a_cycle, a_node, a_plugin, a_pod

COMPATIBLE = "scheduler-plugins"


def a_group(
    name: str = "train",
    *,
    members: int = 2,
    created: str = "2026-01-01T00:00:00Z",
    namespace: str = "default",
    **spec: Any,
) -> CoschedulingGroup:
    return CoschedulingGroup(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=name, creation_timestamp=created),
        spec=CoschedulingGroupSpec(min_member=members, **spec),
    )


def a_member(name: str, group: str = "train", **more: Any) -> Pod:
    return a_pod(name, labels={GROUP_LABEL: group}, **more)


def terminating(pod: Pod) -> Pod:
    force_setattr(pod.metadata, "deletion_timestamp", "2026-01-01T00:00:00Z")
    return pod


class World:
    """A cluster with one node, groups, pods, and the plugin."""

    def __init__(self, *groups: CoschedulingGroup, pods: list[Pod], pod_room: int = 110, **arguments: Any) -> None:
        self.services = Services(objects={CoschedulingGroup: list(groups)}, pods=pods)
        self.cluster = a_cluster(a_node("node", cpu="4", pods=pod_room), services=self.services)
        self.plugin = a_plugin(Coscheduling, self.services, **arguments)

    def pre_filter(self, pod: Pod) -> str | None:
        result = self.plugin.pre_filter(pod, a_cycle(pod, self.cluster))
        return None if isinstance(result, Skip) else result.reasons[0]

    def permit(self, pod: Pod) -> Allow | Wait | Refusal:
        self.services.state.assume(pod, "node", self.services.clock.now())
        result = self.plugin.permit(pod, next(iter(self.cluster.nodes)), a_cycle(pod, self.cluster))
        if isinstance(result, Wait):
            self.services.waiting_pods.put(pod, "node", "Coscheduling", result.seconds)
        return result

    def post_filter(self, pod: Pod, *, is_resolvable: bool = True, helps: bool = True) -> Any:
        """`helps`: whether the pod fits where pods are evicted; if it `is_resolvable`, that is tried."""
        nodes = self.cluster.nodes if is_resolvable else self.cluster.nodes.take(np.empty(0, np.int64))
        what_if = SimpleNamespace(seed=0, without=lambda _node, _pods: nullcontext(), fits=lambda _pod, _node: helps)
        refused = SimpleNamespace(resolvable_nodes=lambda: nodes)
        return self.plugin.post_filter(pod, refused, what_if)

    def unreserve(self, pod: Pod) -> None:
        self.plugin.unreserve(pod, next(iter(self.cluster.nodes)), a_cycle(pod, self.cluster))
        self.services.state.forget(pod.uid)


def two_members(**more: Any) -> list[Pod]:
    return [a_member("a", **more), a_member("b", **more)]


def test_a_pod_without_a_group_is_left_alone():
    world, pod = World(pods=[]), a_pod("web")
    assert world.pre_filter(pod) is None
    assert world.permit(pod) == Allow()
    assert world.post_filter(pod) == Refusal()


def test_members_wait_until_enough_of_them_have_a_node():
    one, other = two_members()
    world = World(a_group(schedule_timeout_seconds=30), pods=[one, other])
    assert world.pre_filter(one) is None
    assert world.permit(one) == Wait(30)
    assert world.services.queue.activated == ["b"]
    assert world.permit(other) == Allow()
    assert world.services.waiting_pods.allowed == ["a"]


TIMES = {
    "the group's own comes first": ({"schedule_timeout_seconds": 30}, {"permit_waiting_time_seconds": 10}, 30, 30),
    "0 of the group is none": ({"schedule_timeout_seconds": 0}, {"permit_waiting_time_seconds": 10}, 10, 10),
    "with both 0 it is a minute": ({"schedule_timeout_seconds": 0}, {"permit_waiting_time_seconds": 0}, 60, 0),
    "with neither it is a minute": ({}, {"permit_waiting_time_seconds": 0}, 60, 60),
}


@pytest.mark.parametrize(("spec", "arguments", "seconds", "compatible_seconds"), TIMES.values(), ids=TIMES.keys())
def test_members_wait_for_so_long(spec, arguments, seconds, compatible_seconds):
    for compatibility, expected in (("mooring", seconds), (COMPATIBLE, compatible_seconds)):
        world = World(a_group(**spec), pods=two_members(), compatibility=compatibility, **arguments)
        assert world.permit(a_member("a")) == Wait(expected)


def test_a_node_that_holds_more_than_it_has_takes_nothing_from_others():
    group = a_group(min_resources={"cpu": "5"})
    for compatibility, is_refused in (("mooring", False), (COMPATIBLE, True)):
        world = World(group, pods=two_members(), compatibility=compatibility)
        crowded = a_node("crowded", cpu="1", running=[a_pod("other", cpu="3")])
        world.cluster = a_cluster(crowded, a_node("small", cpu="1"), services=world.services)
        assert (world.pre_filter(a_member("a")) or "").startswith("resource gap: ") == is_refused


PRE_FILTER = {
    "a group that does not exist is named": (
        World(pods=two_members()),
        "PodGroup default/train does not exist",
    ),
    "members are missing": (
        World(a_group(members=3), pods=two_members()),
        "pre-filter pod a cannot find enough sibling pods, current pods number: 2, minMember of group: 3",
    ),
    "a member that is being deleted is missing": (
        World(a_group(), pods=[a_member("a"), terminating(a_member("b", node="node"))]),
        "pre-filter pod a cannot find enough sibling pods, current pods number: 1, minMember of group: 2",
    ),
    "no nodes have room for so many pods": (
        World(a_group(members=2), pods=two_members(), pod_room=1),
        "PodGroup default/train has minMember 2, and all nodes together run 1 pods",
    ),
    "the nodes lack resources": (
        World(a_group(min_resources={"cpu": "7"}), pods=two_members()),
        "PodGroup default/train needs 3 cpu more than is free on all nodes together",
    ),
    "a resource that no node knows": (
        World(a_group(min_resources={"widgets": 1}), pods=two_members()),
        "PodGroup default/train needs 1 widgets more than is free on all nodes together",
    ),
    "the nodes have enough": (World(a_group(min_resources={"cpu": "4"}), pods=two_members()), None),
}


@pytest.mark.parametrize(("world", "reason"), PRE_FILTER.values(), ids=PRE_FILTER.keys())
def test_a_group_is_tried_when_it_can_be_placed(world, reason):
    assert world.pre_filter(a_member("a")) == reason


def test_gated_members_do_not_count():
    world = World(a_group(), pods=[a_member("a"), a_member("b", gates=["example.com/wait"])])
    assert world.pre_filter(a_member("a")) == ("pre-filter pod a cannot proceed due to gated pods in the same PodGroup")


def test_a_member_that_fits_nowhere_releases_the_others_and_the_group_backs_off():
    one, other = two_members()
    world = World(a_group(), pods=[one, other])
    world.permit(one)
    refusal = world.post_filter(other)
    assert refusal.reasons == (
        "PodGroup default/train gets rejected due to Pod b is unschedulable even after PostFilter",
    )
    assert isinstance(refusal, PostFilterRefusal)
    assert refusal.retry_after == 1.0
    assert world.services.waiting_pods.rejected == [("a", "optimistic rejection in PostFilter")]
    assert world.pre_filter(other) == "podGroup default/train failed recently"
    world.services.clock.advance(1.0)
    assert world.pre_filter(other) is None


@pytest.mark.parametrize(
    ("compatibility", "reason"), [("mooring", None), (COMPATIBLE, "podGroup default/train failed recently")]
)
def test_a_group_whose_spec_is_changed_is_tried_at_once(compatibility, reason):
    one, other = two_members()
    world = World(
        a_group(), pods=[one, other, a_member("c")], compatibility=compatibility, pod_group_backoff_seconds=30
    )
    world.permit(one)
    world.post_filter(other)
    assert world.pre_filter(other) == "podGroup default/train failed recently"
    edited = a_group(members=1)
    force_setattr(edited.metadata, "generation", 1)
    world.services.objects(CoschedulingGroup).put(edited)
    assert world.pre_filter(other) == reason


def test_the_backoff_of_a_group_doubles_up_to_ten_seconds():
    one, other = two_members()
    world = World(a_group(), pods=[one, other])
    seconds = []
    for _ in range(6):
        refusal = world.post_filter(other)
        assert isinstance(refusal, PostFilterRefusal)
        seconds.append(refusal.retry_after)
        world.services.clock.advance(10.0)
    assert seconds == [1, 2, 4, 8, 10, 10]


def test_a_timeout_releases_the_whole_group():
    pods = [a_member(name) for name in "abc"]
    world = World(a_group(members=3), pods=pods)
    world.permit(pods[0])
    world.permit(pods[1])
    world.services.waiting_pods.reject(pods[0].uid, "Coscheduling", "timeout")
    world.unreserve(pods[0])
    assert world.services.waiting_pods.rejected == [("a", "timeout"), ("b", "rejection in Unreserve")]


def test_a_member_of_a_complete_group_that_cannot_be_bound_releases_none():
    pods = [a_member(name) for name in "abc"]
    world = World(a_group(members=2), pods=pods)
    for pod in pods:
        world.permit(pod)
    world.unreserve(pods[2])
    assert world.services.waiting_pods.rejected == []


def two_groups(**arguments: Any) -> tuple[World, dict[str, Pod]]:
    """An older and a younger group of three; two of each wait, and no third fits."""
    pods = {f"{group}-{at}": a_member(f"{group}-{at}", group) for group in ("old", "new") for at in range(3)}
    old, new = a_group("old", members=3), a_group("new", members=3, created="2026-01-01T00:00:01Z")
    world = World(old, new, pods=list(pods.values()), **{"pod_group_reject_percentage": 50, **arguments})
    for name in ("old-0", "new-0", "old-1", "new-1"):
        world.permit(pods[name])
    return world, pods


def test_the_later_of_two_groups_yields_when_it_fails():
    world, pods = two_groups()
    assert world.post_filter(pods["new-2"]).reasons == ("PodGroup default/new yields to PodGroup default/old",)
    assert {name for name, _ in world.services.waiting_pods.rejected} == {"new-0", "new-1"}


def test_the_later_of_two_groups_yields_when_the_first_one_fails():
    world, pods = two_groups()
    assert world.post_filter(pods["old-2"]).reasons == ()
    assert world.services.waiting_pods.rejected == [
        ("new-0", "PodGroup default/new yields to PodGroup default/old"),
        ("new-1", "PodGroup default/new yields to PodGroup default/old"),
    ]


NO_HELP = {
    "the first one fits no node whatever is released": {"is_resolvable": False},
    "the first one would not fit the nodes that are released": {"helps": False},
}


@pytest.mark.parametrize("more", NO_HELP.values(), ids=NO_HELP.keys())
def test_no_group_yields_where(more):
    """And the first one has failed: it comes after the others from now on."""
    world, pods = two_groups(pod_group_reject_percentage=10)
    refusal = world.post_filter(pods["old-2"], **more)
    assert refusal.reasons == (
        "PodGroup default/old gets rejected due to Pod old-2 is unschedulable even after PostFilter",
    )
    assert {name for name, _ in world.services.waiting_pods.rejected} == {"old-0", "old-1"}
    assert key_of(world, pods["old-2"])[1] == world.services.clock.now()


def key_of(world: World, pod: Pod) -> Any:
    return world.plugin.sort_key(QueuedPod(pod, 0.0))


def released(world: World, pods: dict[str, Pod], group: str) -> None:
    for name, pod in pods.items():
        if name.startswith(group) and world.services.state.is_assumed(pod.uid):
            world.unreserve(pod)


def after_yielding() -> tuple[World, dict[str, Pod]]:
    """The younger group has released its nodes for the older one."""
    world, pods = two_groups(pod_group_reject_percentage=10)
    world.post_filter(pods["old-2"])
    released(world, pods, "new")
    world.services.queue.activated.clear()
    return world, pods


def test_a_group_that_yields_waits_until_the_first_one_is_placed():
    world, pods = after_yielding()
    assert world.pre_filter(pods["new-2"]) == "podGroup default/new failed recently"
    world.permit(pods["old-2"])
    assert world.services.queue.activated == ["new-0", "new-1", "new-2"]
    assert world.pre_filter(pods["new-2"]) is None


def test_a_group_that_yielded_is_tried_again_when_the_first_one_fails():
    world, pods = after_yielding()
    refusal = world.post_filter(pods["old-2"])
    assert "gets rejected" in refusal.reasons[0]
    assert world.services.queue.activated == ["new-0", "new-1", "new-2"]
    assert world.pre_filter(pods["new-2"]) is None


def test_a_group_that_yielded_is_tried_again_when_the_first_one_is_deleted():
    world, pods = after_yielding()
    gone = a_group("old")
    [test] = [hint.test for hint in world.plugin.events() if hint.action == Action.DELETE]
    assert test is not None
    assert test(pods["new-2"], gone, None)
    assert not test(pods["old-2"], gone, None)
    world.services.objects(CoschedulingGroup).remove(gone)
    assert world.pre_filter(pods["new-2"]) is None


def test_a_group_that_yielded_is_tried_again_after_some_seconds_at_the_latest():
    world, pods = after_yielding()
    world.services.clock.advance(10)
    assert world.pre_filter(pods["new-2"]) is None


def test_a_group_yields_once_to_one_that_cannot_be_placed():
    world, pods = after_yielding()
    for name in ("new-0", "new-1"):
        world.permit(pods[name])
    world.services.waiting_pods.rejected.clear()
    world.post_filter(pods["old-2"])
    assert {name for name, _ in world.services.waiting_pods.rejected} == {"old-0", "old-1"}


def test_a_group_that_yielded_in_vain_does_not_yield_to_others_of_that_namespace():
    groups = [a_group(f"evil-{at}", members=1, namespace="evil") for at in range(3)]
    victim = a_group("victim", members=3, created="2026-01-01T00:00:01Z")
    hostile = [a_member(f"evil-{at}-0", f"evil-{at}", namespace="evil") for at in range(3)]
    pods = [a_member(f"victim-{at}", "victim") for at in range(3)]
    world = World(*groups, victim, pods=[*hostile, *pods])
    for pod in pods[:2]:
        world.permit(pod)
    world.post_filter(hostile[0])
    assert len(world.services.waiting_pods.rejected) == 2
    for pod in pods[:2]:
        world.unreserve(pod)
    world.post_filter(hostile[0])
    for pod in pods[:2]:
        world.permit(pod)
    for pod in hostile[1:]:
        assert "gets rejected" in world.post_filter(pod).reasons[0]
    assert len(world.services.waiting_pods.rejected) == 2


def test_members_that_are_being_released_count_until_they_are_forgotten():
    """Another group that does not fit beside them has not failed."""
    world, pods = two_groups(pod_group_reject_percentage=10)
    world.post_filter(pods["old-2"], is_resolvable=False)
    for name in ("old-0", "old-1"):
        world.plugin.unreserve(pods[name], next(iter(world.cluster.nodes)), a_cycle(pods[name], world.cluster))
    before = key_of(world, pods["new-2"])
    assert world.post_filter(pods["new-2"]).reasons == ()
    assert key_of(world, pods["new-2"]) == before


def test_with_compatibility_both_groups_go_on_waiting():
    world, pods = two_groups(compatibility=COMPATIBLE)
    assert world.post_filter(pods["old-2"]) == world.post_filter(pods["new-2"]) == Refusal()
    assert world.services.waiting_pods.rejected == []


# Groups of which some members are bound: after a crash between bindings


def test_bound_members_alone_are_evicted_after_the_time_to_wait():
    bound, pending = a_member("a", node="node"), a_member("b")
    world = World(a_group(schedule_timeout_seconds=30), pods=[bound, pending])
    first = world.post_filter(pending)
    assert isinstance(first, PostFilterRefusal)
    assert first.retry_after == 30
    world.services.clock.advance(30)
    plan = world.post_filter(pending)
    assert isinstance(plan, Plan)
    assert [victim.name for victim in plan.evict] == ["a"]
    assert plan.eviction_message == "pod group default/train cannot be completed: 1 of 2 pods bound"


def test_bound_members_are_evicted_for_the_first_that_does_not_fit_only():
    """Each eviction is a request: not one for each pair of a bound and a pending member."""
    pending = [a_member("b"), a_member("c")]
    world = World(a_group(members=3, schedule_timeout_seconds=30), pods=[a_member("a", node="node"), *pending])
    world.post_filter(pending[0])
    world.services.clock.advance(30)
    assert [type(world.post_filter(pod)) for pod in pending] == [Plan, PostFilterRefusal]


LEFT_ALONE = {
    "it has run": ({"status": CoschedulingGroupStatus(phase="Running")}, {}),
    "a member has ended": ({"status": CoschedulingGroupStatus(phase="Scheduling", succeeded=1)}, {}),
    "the arguments demand it": ({}, {"evict_partial_groups": False}),
    "as scheduler-plugins does": ({}, {"compatibility": COMPATIBLE}),
}


@pytest.mark.parametrize(("more", "arguments"), LEFT_ALONE.values(), ids=LEFT_ALONE.keys())
def test_bound_members_are_left_alone(more, arguments):
    group = a_group()
    for name, value in more.items():
        force_setattr(group, name, value)
    pending = a_member("b")
    world = World(group, pods=[a_member("a", node="node"), pending], **arguments)
    for _ in range(2):
        assert not isinstance(world.post_filter(pending), Plan)
        world.services.clock.advance(600)


@pytest.mark.parametrize(("minutes", "is_evicted"), [(1, True), (11, False)])
def test_members_that_have_run_for_long_are_left_alone_after_a_restart(minutes: int, is_evicted: bool):
    world = World(a_group(schedule_timeout_seconds=30), pods=[])
    started = world.services.clock.now() - minutes * 60
    pending = a_member("b", created=started - 1)
    world.services.state.set_pending(pending)
    world.services.state.set_pod(msgspec.structs.replace(placed(a_member("a"), "node"), started=started))
    world.post_filter(pending)
    world.services.clock.advance(30)
    assert isinstance(world.post_filter(pending), Plan) is is_evicted


@pytest.mark.parametrize(("seconds", "is_evicted"), [(-1, True), (1, False)])
def test_a_member_that_replaces_another_is_not_one_that_a_crash_left(seconds: int, is_evicted: bool):
    """It was created before or after the bound one ran: all members of a group exist before any is bound."""
    world = World(a_group(schedule_timeout_seconds=30), pods=[])
    started = world.services.clock.now() - 60
    pending = a_member("b", created=started + seconds)
    world.services.state.set_pod(msgspec.structs.replace(placed(a_member("a"), "node"), started=started))
    world.services.state.set_pending(pending)
    world.post_filter(pending)
    world.services.clock.advance(30)
    assert isinstance(world.post_filter(pending), Plan) is is_evicted


def test_members_that_are_being_evicted_do_not_complete_the_group():
    """They hold their nodes until they end. Room that appears meanwhile must not bind others beside them."""
    pending = a_member("b")
    world = World(a_group(schedule_timeout_seconds=30), pods=[a_member("a", node="node"), pending])
    world.post_filter(pending)
    world.services.clock.advance(30)
    assert isinstance(world.post_filter(pending), Plan)
    assert isinstance(world.permit(pending), Wait)


def test_explain_shows_how_long_bound_members_stay():
    pending = a_member("b")
    world = World(a_group(schedule_timeout_seconds=30), pods=[a_member("a", node="node"), pending])
    world.post_filter(pending)
    world.services.clock.advance(10)
    assert "1 of 2 pods bound; evicted in 20 s unless the others fit by then" in list(world.plugin.explain(pending))


def test_a_group_that_was_complete_keeps_its_members_when_one_is_lost():
    one, other = two_members()
    world = World(a_group(), pods=[one, other])
    world.permit(one)
    world.permit(other)
    world.services.state.set_pod(placed(one, "node"))
    world.services.state.forget(other.uid)
    replacement = a_member("c")
    for _ in range(2):
        assert not isinstance(world.post_filter(replacement), Plan)
        world.services.clock.advance(600)


def test_a_group_that_was_complete_at_a_restart_keeps_its_members_when_one_is_lost():
    """With more members than it needs: the pending ones are as old as those that run, and replace none."""
    running, pending = [a_member(name, node="node") for name in "ab"], [a_member(name) for name in "cd"]
    world = World(a_group(schedule_timeout_seconds=30), pods=[*running, *pending])
    world.post_filter(pending[0])
    world.services.state.remove_pod(running[0].uid)
    for _ in range(2):
        assert not isinstance(world.post_filter(pending[0]), Plan)
        world.services.clock.advance(600)


def test_pending_members_are_activated_although_one_is_bound():
    pods = [a_member("bound", node="node"), a_member("a"), a_member("b")]
    world = World(a_group(members=3), pods=pods)
    world.permit(pods[1])
    assert world.services.queue.activated == ["b"]


# The queue


def key(world: World, pod: Pod, at: float, first: float = 0.0) -> Any:
    return world.plugin.sort_key(QueuedPod(pod, at, initial_attempt=first))


def test_members_of_groups_of_one_second_stay_together():
    pods = [a_member("1", "x"), a_member("2", "y"), a_member("3", "x")]
    world = World(a_group("x"), a_group("y"), pods=pods)
    assert [pod.name for pod in sorted(pods, key=lambda pod: key(world, pod, 0))] == ["1", "3", "2"]


def test_a_pod_without_a_group_waits_behind_those_that_wait_longer():
    world = World(pods=[])
    retried, newer = a_pod("retried"), a_pod("newer")
    assert key(world, newer, at=10, first=10) < key(world, retried, at=20, first=1)
    world = World(pods=[], compatibility=COMPATIBLE)
    assert key(world, retried, at=20, first=1) < key(world, newer, at=10, first=10)


def test_a_group_that_failed_is_tried_after_others():
    pods = [a_member("a", "x"), a_member("b", "y")]
    later = a_group("y", created="2026-01-02T00:00:00Z")
    world = World(a_group("x"), later, pods=pods)
    world.services.clock.advance(1e9)
    assert key(world, pods[0], 0) < key(world, pods[1], 0)
    world.post_filter(pods[0])
    assert key(world, pods[1], 0) < key(world, pods[0], 0)


# What people see


def test_explain_shows_what_the_group_lacks():
    pods = two_members()
    world = World(a_group(members=4), pods=pods)
    world.permit(pods[0])
    assert list(world.plugin.explain(pods[1])) == [
        "pod group default/train: 2 of 4 members exist, 1 have a node",
        "1 of them wait on permit for the others, 60 s at most",
    ]
    assert list(World(pods=[]).plugin.explain(pods[0])) == ["pod group default/train does not exist"]


ARGUMENTS = {
    "permit_waiting_time_seconds": (-1, "must be greater than 0"),
    "pod_group_backoff_seconds": (-1, "must be greater than 0"),
    "pod_group_reject_percentage": (101, "must be between 0 and 100"),
}


@pytest.mark.parametrize(("name", "value", "why"), [(name, *case) for name, case in ARGUMENTS.items()], ids=ARGUMENTS)
def test_impossible_arguments_are_refused(name, value, why):
    with pytest.raises(OperatorMistake, match=f"Invalid value: {value}: {why}"):
        a_plugin(Coscheduling, Services(), **{name: value})
