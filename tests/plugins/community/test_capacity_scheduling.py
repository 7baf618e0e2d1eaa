"""CapacityScheduling: namespaces stay within their quotas, and get back what they are guaranteed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import force_setattr
from tests.plugins.verdicts import requeues

from mooring.framework import Plan, Pod, Refusal
from mooring.objects.meta import ObjectMeta
from mooring.plugins.community.capacity_scheduling import CapacityScheduling
from mooring.plugins.community.capacity_scheduling.plugin import BEING_EVICTED
from mooring.plugins.community.capacity_scheduling.quotas import ElasticQuota, ElasticQuotaSpec, ElasticQuotaStatus
from mooring.plugins.default.node_affinity import NodeAffinity
from mooring.plugins.default.node_resources_fit import NodeResourcesFit
from mooring.testing import Services, a_cluster, a_cycle, a_node, a_plugin, a_pod

COMPATIBLE = "scheduler-plugins"


def a_quota(namespace: str, name: str = "quota", created: str = "2026-01-01T00:00:00Z", **spec: Any) -> ElasticQuota:
    return ElasticQuota(
        metadata=ObjectMeta(name=name, namespace=namespace, creation_timestamp=created), spec=ElasticQuotaSpec(**spec)
    )


class World:
    """A node with 20 CPUs, quotas and running pods."""

    def __init__(self, *quotas: ElasticQuota, running: list[Pod] | None = None, **arguments: Any) -> None:
        self.services = Services(objects={ElasticQuota: list(quotas)})
        self.plugin = a_plugin(CapacityScheduling, self.services, **arguments)
        fit = a_plugin(NodeResourcesFit, self.services)
        node = a_node("node", cpu="20", memory="64Gi", running=running or [])
        full = a_node("full", cpu="0")
        self.cluster = a_cluster(node, full, plugins=[fit, self.plugin], services=self.services)

    def pre_filter(self, pod: Pod) -> str | None:
        result = self.plugin.pre_filter(pod, a_cycle(pod, self.cluster))
        return result.reasons[0] if isinstance(result, Refusal) else None

    def victims(self, pod: Pod) -> list[str] | None:
        plan = self.cluster.decide(pod).post_filtered.plan
        return [victim.name for victim in plan.evict] if isinstance(plan, Plan) else None


def a_pod_of(team: str, name: str = "pod", cpu: int = 2, **more: Any) -> Pod:
    return a_pod(name, namespace=team, cpu=str(cpu), **more)


TWO = (a_quota("a", min={"cpu": 10}, max={"cpu": 16}), a_quota("b", min={"cpu": 10}, max={"cpu": 20}))
OVER_MAX = "Pod a/pod is rejected in PreFilter because ElasticQuota a is more than Max"
OVER_TOTAL = "Pod a/pod is rejected in PreFilter because total ElasticQuota used is more than min"

CASES: dict[str, tuple[Any, dict[str, int], Pod, str | None]] = {
    "within its min": (TWO, {"a": 8}, a_pod_of("a"), None),
    "borrowing what the other does not use": (TWO, {"a": 12, "b": 4}, a_pod_of("a"), None),
    "beyond its max": (TWO, {"a": 16}, a_pod_of("a"), OVER_MAX),
    "beyond what all are guaranteed": (TWO, {"a": 10, "b": 10}, a_pod_of("a"), OVER_TOTAL),
    "without a quota": (TWO, {"a": 10, "b": 10}, a_pod_of("c"), None),
    "of a resource that no quota names": (TWO, {}, a_pod_of("a", memory="1Gi"), None),
    "that requests nothing of what is used up": (TWO, {"a": 10, "b": 10}, a_pod("pod", namespace="a"), None),
    "of a number of pods": ((a_quota("a", max={"pods": 1}),), {"a": 2}, a_pod_of("a"), OVER_MAX),
}


def pods_using(used: dict[str, int]) -> list[Pod]:
    return [a_pod_of(team, f"{team}-{at}") for team, cpus in used.items() for at in range(cpus // 2)]


@pytest.mark.parametrize(("quotas", "used", "pod", "reason"), CASES.values(), ids=CASES.keys())
def test_a_pod(quotas, used, pod, reason):
    assert World(*quotas, running=pods_using(used)).pre_filter(pod) == reason


RECORDED: dict[str, tuple[Any, dict[str, int], Pod, str | None]] = {
    "what max does not name is forbidden": (TWO, {}, a_pod_of("a", memory="1Gi"), OVER_MAX),
    "pods are not counted": ((a_quota("a", min={"cpu": 10}),), {"a": 2}, a_pod_of("a"), None),
}


@pytest.mark.parametrize(("quotas", "used", "pod", "reason"), RECORDED.values(), ids=RECORDED.keys())
def test_with_compatibility(quotas, used, pod, reason):
    assert World(*quotas, running=pods_using(used), compatibility=COMPATIBLE).pre_filter(pod) == reason


NOT_HELPFUL = "0/2 nodes are available: 2 Preemption is not helpful for scheduling."
INVALID = {
    "negative": ({"min": {"cpu": -1}}, "spec.min.cpu is -1: it must not be negative"),
    "unreadable": ({"max": {"cpu": "many"}}, "spec.max.cpu: 'many' is not a quantity"),
    "contradictory": ({"min": {"cpu": 4}, "max": {"cpu": 2}}, "spec.min.cpu is 4, more than spec.max.cpu 2"),
}


@pytest.mark.parametrize(("spec", "why"), INVALID.values(), ids=INVALID.keys())
def test_an_impossible_quota_is_named_and_concerns_its_namespace_alone(spec, why):
    world = World(a_quota("a", **spec), a_quota("b", min={"cpu": 10}))
    reason = world.pre_filter(a_pod_of("a"))
    assert reason is not None
    assert reason.startswith(f"ElasticQuota a/quota is invalid: {why}")
    assert world.cluster.decide(a_pod_of("a")).post_filtered.message == NOT_HELPFUL
    assert world.pre_filter(a_pod_of("b")) is None
    assert next(iter(world.plugin.explain(a_pod_of("a")))).startswith(f"quota a/quota is invalid: {why}")


@pytest.mark.parametrize(("spec", "why"), INVALID.values(), ids=INVALID.keys())
def test_what_an_impossible_quota_guarantees_is_not_lent_and_what_its_namespace_uses_is_not_taken(spec, why):
    world = World(a_quota("a", **spec), a_quota("b", min={"cpu": 4}), running=pods_using({"a": 18}))
    assert world.pre_filter(a_pod_of("b", cpu=4)) is None
    assert world.pre_filter(a_pod_of("b", cpu=6)) is not None, "there is nothing to borrow"
    assert world.victims(a_pod_of("b", cpu=4, priority=10)) is None


# Preemption


def test_a_namespace_within_its_min_takes_back_what_another_borrows_whatever_its_priority():
    world = World(*TWO, running=[a_pod_of("b", f"b-{at}", priority=100) for at in range(10)])
    assert world.victims(a_pod_of("a", cpu=4, priority=0)) == ["b-1", "b-0"]


def test_it_takes_no_more_than_is_borrowed():
    world = World(*TWO, running=[*pods_using({"b": 10}), *pods_using({"a": 10})])
    assert world.victims(a_pod_of("a", cpu=4, priority=1000)) == ["a-1", "a-0"]


def test_pods_of_a_namespace_that_borrows_something_else_are_left_alone():
    lists = {"cpu": 20, "memory": "1Gi", "ephemeral-storage": "1Gi"}
    quotas = (a_quota("a", min=lists), a_quota("b", min=lists | {"memory": "9Gi"}))
    running = [a_pod_of("b", "b", cpu=18, memory="9500Mi")]
    assert World(*quotas, running=running).victims(a_pod_of("a", cpu=4)) is None
    assert World(*quotas, running=running, compatibility=COMPATIBLE).victims(a_pod_of("a", cpu=4)) == ["b"]


def across_nodes(*running: Pod, **arguments: Any) -> list[str] | None:
    """The victims of a pod of team A that needs four CPUs: the pods run on a node each, which has room enough."""
    services = Services(objects={ElasticQuota: list(TWO)})
    plugins = [a_plugin(NodeResourcesFit, services), a_plugin(CapacityScheduling, services, **arguments)]
    nodes = [a_node(f"node-{at}", cpu="20", running=[pod]) for at, pod in enumerate(running)]
    plan = (
        a_cluster(*nodes, plugins=plugins, services=services)
        .decide(a_pod_of("a", cpu=4, priority=5))
        .post_filtered.plan
    )
    return sorted(victim.name for victim in plan.evict) if isinstance(plan, Plan) else None


def test_what_is_borrowed_comes_back_from_several_nodes():
    borrowed = pods_using({"b": 20})
    for pod in (borrowed[3], borrowed[7]):
        force_setattr(pod.spec, "priority", -1)
    assert across_nodes(*borrowed) == ["b-3", "b-7"]
    assert across_nodes(*borrowed, compatibility=COMPATIBLE) is None
    assert across_nodes(*pods_using({"b": 10, "a": 8})) == ["a-0"], "of its own namespace, which would borrow"
    assert across_nodes(*pods_using({"b": 12}), *(a_pod_of("a", f"a-{at}", priority=9) for at in range(4))) is None


def test_what_is_borrowed_comes_back_to_a_pod_that_must_run_elsewhere():
    services = Services(objects={ElasticQuota: list(TWO)})
    plugins = [a_plugin(each, services) for each in (NodeAffinity, CapacityScheduling)]
    nodes = [a_node("plain", cpu="20", running=pods_using({"b": 20})), a_node("gpu", cpu="20", labels={"gpu": "yes"})]
    plan = (
        a_cluster(*nodes, plugins=plugins, services=services).decide(a_pod_of("a", node_selector={"gpu": "yes"})).plan
    )
    assert plan is not None
    assert (plan.nominate, [victim.name for victim in plan.evict]) == ("gpu", ["b-0"])


def test_pods_without_a_quota_preempt_each_other_by_priority():
    world = World(*TWO, running=[a_pod_of("c", "low", 10), a_pod_of("a", "a", 10)])
    assert world.victims(a_pod_of("c", "high", 4, priority=10)) == ["low"]
    assert world.victims(a_pod_of("c", "equal", 4)) is None


def test_a_pod_that_never_preempts_does_not():
    pod = a_pod_of("a", cpu=4)
    force_setattr(pod.spec, "preemption_policy", "Never")
    assert World(*TWO, running=pods_using({"b": 20})).victims(pod) is None


def test_nominated_pods_count():
    world = World(*TWO, running=pods_using({"a": 14}))
    nominated = a_pod_of("a", "nominated")
    world.services.state.nominations.set(nominated, "node")
    assert world.pre_filter(a_pod_of("a")) == OVER_MAX


@pytest.mark.parametrize("arguments", [{}, {"compatibility": COMPATIBLE}])
def test_pods_nominated_to_a_node_that_is_gone_do_not_count(arguments):
    world = World(*TWO, running=pods_using({"a": 14}), **arguments)
    world.services.state.nominations.set(a_pod_of("a", "nominated"), "gone")
    assert world.pre_filter(a_pod_of("a")) is None


def test_victims_that_are_being_deleted_do_not_count_beside_the_pod_that_preempted_them():
    victim = a_pod_of("a", "victim", cpu=4)
    force_setattr(victim.metadata, "deletion_timestamp", "2026-01-01T00:00:00Z")
    nominated = a_pod_of("a", "nominated", cpu=4)
    for arguments, reason in (({}, None), ({"compatibility": COMPATIBLE}, OVER_MAX)):
        world = World(*TWO, running=[*pods_using({"a": 10}), victim], **arguments)
        world.services.state.nominations.set(nominated, "node")
        assert world.pre_filter(a_pod_of("a")) == reason


def being_evicted(world: World, *names: str, preemptor: Pod) -> None:
    """The preemptor waits for these pods, which are not terminating yet."""
    node = world.services.state.nodes.at(0)
    world.services.preemptions.victims = [pod for pod in node.pods if pod.name in names]
    world.services.state.nominations.set(preemptor, "node")


def test_pods_that_are_being_evicted_do_not_count_beside_the_pod_that_preempts_them():
    world = World(*TWO, running=pods_using({"a": 12}))
    being_evicted(world, "a-0", preemptor=a_pod_of("a", "nominated"))
    assert world.pre_filter(a_pod_of("a")) is None


def test_a_pod_that_fits_only_without_pods_being_evicted_waits_for_them_and_evicts_none():
    world = World(*TWO, running=pods_using({"b": 20}))
    being_evicted(world, "b-0", "b-1", "b-2", preemptor=a_pod_of("a", "nominated"))
    post_filtered = world.cluster.decide(a_pod_of("a")).post_filtered
    assert (post_filtered.plan, post_filtered.message) == (None, BEING_EVICTED)
    assert [remedy.retry_after for remedy in post_filtered.remedies] == [1.0]


def test_pods_that_are_being_evicted_are_no_victims_of_another_pod():
    world = World(*TWO, running=pods_using({"b": 20}))
    assert world.victims(a_pod_of("a")) == ["b-0"]
    being_evicted(world, "b-0", preemptor=a_pod_of("a", "nominated"))
    assert world.victims(a_pod_of("a")) == ["b-1"]


def test_a_pod_whose_victims_terminate_keeps_its_nomination_and_evicts_none():
    victim = a_pod_of("b", "victim", cpu=4)
    force_setattr(victim.metadata, "deletion_timestamp", "2026-01-01T00:00:00Z")
    world = World(*TWO, running=[*pods_using({"b": 16}), victim])
    post_filtered = world.cluster.decide(a_pod_of("a", cpu=4)).post_filtered
    assert (post_filtered.plan, post_filtered.nominate) == (None, "node")


def test_a_pod_does_not_evict_where_nominated_pods_leave_no_room_within_the_quota():
    running = [*pods_using({"a": 4}), a_pod_of("a", "low", priority=-10)]
    for arguments, victims in (({}, None), ({"compatibility": COMPATIBLE}, ["low"])):
        world = World(*TWO, running=running, **arguments)
        for at in range(6):
            world.services.state.nominations.set(a_pod_of("a", f"nominated-{at}"), "full")
        assert world.victims(a_pod_of("a")) == victims


def test_a_pod_that_borrows_does_not_take_what_was_freed_for_another_namespace_that_borrows():
    quotas = (*TWO, a_quota("c", min={"cpu": 0}))
    world = World(*quotas, running=pods_using({"b": 8, "c": 10}))
    world.services.state.nominations.set(a_pod_of("c", "nominated"), "full")
    assert world.pre_filter(a_pod_of("b", cpu=4)) is not None, "b would borrow"
    assert world.pre_filter(a_pod_of("a")) is None, "a is guaranteed what c would borrow"


# What people see


def test_explain_shows_use_and_what_is_borrowed():
    world = World(*TWO, running=pods_using({"a": 12, "b": 4}))
    assert list(world.plugin.explain(a_pod_of("a"))) == [
        "quota a/quota: 12 of 10 cpu in use, 2 borrowed, 16 at most",
    ]
    assert list(world.plugin.explain(a_pod_of("b"))) == ["quota b/quota: 4 of 10 cpu in use, 20 at most"]
    assert list(world.plugin.explain(a_pod_of("c"))) == []


def test_explain_shows_what_a_pending_pod_lacks():
    world = World(*TWO, running=pods_using({"a": 12, "b": 8}))
    assert list(world.plugin.explain(a_pod_of("b", cpu=2)))[1:] == [
        "all quotas together: 20 of 20 cpu in use, and the pod requests 2 cpu",
    ]
    assert list(world.plugin.explain(a_pod_of("a", cpu=5)))[1:] == [
        "the pod requests 5 cpu, 1 more than quota a/quota allows",
    ]
    bound = a_pod_of("b", cpu=2)
    force_setattr(bound.spec, "node_name", "node")
    assert len(list(world.plugin.explain(bound))) == 1


def test_the_oldest_quota_of_a_namespace_counts_and_the_others_are_named():
    newer = a_quota("a", "also", created="2026-01-02T00:00:00Z", max={"cpu": 1})
    world = World(newer, a_quota("a", max={"cpu": 4}))
    assert world.pre_filter(a_pod_of("a")) is None
    assert list(world.plugin.explain(a_pod_of("a"))) == [
        "quota a/quota: 0 of 0 cpu in use, 4 at most",
        "quota a/also does not count: the namespace has an older one",
    ]


WITH_USE = msgspec.structs.replace(TWO[0], status=ElasticQuotaStatus(used={"cpu": "2"}))
WITH_MORE = a_quota("a", min={"cpu": 12}, max={"cpu": 16})

CHANGES: dict[str, tuple[ElasticQuota | None, ElasticQuota | None, bool]] = {
    "a quota that is added": (None, TWO[0], True),
    "one that is deleted": (TWO[0], None, True),
    "one with other limits": (TWO[0], WITH_MORE, True),
    "what is used of it": (TWO[0], WITH_USE, False),
}


@pytest.mark.parametrize(("before", "after", "helps"), CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("team", ["a", "b"])
def test_a_rejected_pod_is_requeued_when_limits_change_and_not_when_a_status_does(team, before, after, helps):
    assert requeues(World(*TWO).plugin, a_pod_of(team), before, after) == helps
    assert requeues(World(*TWO, compatibility=COMPATIBLE).plugin, a_pod_of(team), before, after)
