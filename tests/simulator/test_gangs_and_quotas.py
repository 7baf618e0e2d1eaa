"""Random histories of gangs and quotas: none is bound in part, none blocks another, no quota is exceeded."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import force_setattr

from mooring.framework import Pod
from mooring.objects.meta import ObjectMeta
from mooring.plugins.community.capacity_scheduling.quotas import ElasticQuota, ElasticQuotaSpec
from mooring.plugins.community.coscheduling.pod_groups import GROUP_LABEL, CoschedulingGroup, CoschedulingGroupSpec
from mooring.simulator import Arrival, Cluster, SimulationResult, simulate
from mooring.testing import a_pod
from mooring.testing.builders import a_node_object

EXAMPLES = 25
TIMEOUT_SECONDS = 20


def configuration(*plugins: str, queue_sort: str = "PrioritySort", **args: Any) -> dict[str, Any]:
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {
            "multiPoint": {"enabled": [{"name": plugin} for plugin in plugins]},
            "queueSort": {"enabled": [{"name": queue_sort}], "disabled": [{"name": "*"}]},
            "postFilter": {"enabled": [{"name": plugin} for plugin in plugins], "disabled": [{"name": "*"}]},
        },
        "pluginConfig": [{"name": plugin, "args": args} for plugin in plugins if args],
    }
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return kind | {"profiles": [profile]}


GANGS = configuration("Coscheduling", queue_sort="Coscheduling")
ELASTIC = configuration("CapacityScheduling")


def nodes(count: int, cpu: int) -> list[Any]:
    return [a_node_object(f"node-{at}", cpu=str(cpu)) for at in range(count)]


@dataclass
class Gang:
    name: str
    members: int
    cpu: int
    arrives: list[float]
    duration: float
    priority: int = 0

    def group(self, created: int) -> CoschedulingGroup:
        return CoschedulingGroup(
            metadata=ObjectMeta(
                name=self.name,
                namespace="default",
                uid=self.name,
                creation_timestamp=f"2026-01-01T00:00:{created % 60:02}Z",
            ),
            spec=CoschedulingGroupSpec(min_member=self.members, schedule_timeout_seconds=TIMEOUT_SECONDS),
        )

    def pod(self, at: int, **more: Any) -> Pod:
        labels = {GROUP_LABEL: self.name}
        name = f"{self.name}-{at}"
        return a_pod(name, uid=name, cpu=str(self.cpu), labels=labels, priority=self.priority, **more)

    def arrivals(self) -> list[Arrival]:
        return [Arrival(moment, self.pod(at), self.duration) for at, moment in enumerate(self.arrives)]

    def fits(self, count: int, cpu: int) -> bool:
        """Into the empty cluster."""
        return count * (cpu // self.cpu) >= self.members


@dataclass
class Bindings:
    """When how many pods of each group were bound."""

    at: dict[str, Counter[float]] = field(default_factory=lambda: defaultdict(Counter))

    def bound(self, pod: Pod, seconds: float) -> None:
        self.at[pod.labels[GROUP_LABEL]][round(seconds, 3)] += 1


@st.composite
def gangs(draw: st.DrawFn) -> tuple[int, int, list[Gang]]:
    count, cpu = draw(st.integers(1, 4)), draw(st.integers(2, 6))
    found = []
    for at in range(draw(st.integers(1, 5))):
        members = draw(st.integers(1, 5))
        begin = draw(st.integers(0, 5))
        arrives = [float(begin + draw(st.sampled_from([0, 0, 0, 1, 7]))) for _ in range(members)]
        gang = Gang(f"gang-{at}", members, draw(st.integers(1, cpu)), arrives, float(draw(st.integers(5, 100))))
        gang.priority = draw(st.sampled_from([0, 0, 10]))
        found.append(gang)
    return count, cpu, found


@settings(max_examples=EXAMPLES, deadline=None)
@given(gangs())
def test_gangs_are_bound_whole_and_every_gang_that_fits_is_bound(history):
    count, cpu, found = history
    bindings = Bindings()
    cluster = Cluster(nodes(count, cpu), objects=[gang.group(at) for at, gang in enumerate(found)])
    workload = [arrival for gang in found for arrival in gang.arrivals()]
    result = simulate(cluster, workload, GANGS, influence=False, attempt_timeout=0, on_bound=bindings.bound)

    assert len(result.pods) == len(workload), "no pod is lost"
    for gang in found:
        moments = bindings.at[gang.name]
        if gang.fits(count, cpu):
            assert sum(moments.values()) == gang.members, f"{gang} fits, and all pods before it end"
        else:
            assert not moments, f"{gang} fits nowhere, and none of it may be bound"
        assert all(number == gang.members for number in moments.values()), f"{gang} is bound at one moment"
    assert all(pod.bound_at is not None or pod.message for pod in result.pods), "a pending pod has a reason"


def partly_bound(nodes_of: int, bound: int, members: int) -> tuple[Gang, SimulationResult]:
    """A gang of which some members are bound, as after a crash between bindings."""
    gang = Gang("train", members, 1, [], 0)
    pods = [gang.pod(at, node=f"node-{at % nodes_of}" if at < bound else "") for at in range(members)]
    cluster = Cluster(nodes(nodes_of, 2), pods=pods, objects=[gang.group(0)])
    return gang, simulate(cluster, [], GANGS, influence=False, attempt_timeout=0)


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 3), st.data())
def test_a_gang_that_a_crash_left_partly_bound_is_completed_or_released(nodes_of, data):
    members = data.draw(st.integers(2, 8))
    bound = data.draw(st.integers(1, min(members - 1, 2 * nodes_of)))
    gang, result = partly_bound(nodes_of, bound, members)
    ours = {pod.name: pod for pod in result.pods}
    if gang.fits(nodes_of, 2):
        assert all(pod.node for pod in ours.values())
        assert not result.evictions
    else:
        assert len(result.evictions) == bound
        assert all(eviction.at >= TIMEOUT_SECONDS for eviction in result.evictions)


@st.composite
def teams(draw: st.DrawFn) -> tuple[dict[str, tuple[int, int]], list[Arrival]]:
    names = ["a", "b", "c"][: draw(st.integers(1, 3))]
    quotas = {}
    for name in names:
        least = draw(st.integers(0, 8))
        quotas[name] = (least, least + draw(st.integers(0, 8)))
    arrivals = []
    for at in range(draw(st.integers(1, 25))):
        namespace = draw(st.sampled_from([*names, "free"]))
        cpu, priority = draw(st.integers(1, 4)), draw(st.sampled_from([0, 0, 100]))
        pod = a_pod(f"p-{at}", uid=f"p-{at}", namespace=namespace, cpu=str(cpu), priority=priority)
        arrivals.append(Arrival(float(draw(st.integers(0, 30))), pod, draw(st.sampled_from([None, 5.0, 50.0]))))
    return quotas, arrivals


@settings(max_examples=EXAMPLES, deadline=None)
@given(teams())
def test_no_quota_is_exceeded_and_no_pod_is_lost(history):
    quotas, workload = history
    used: Counter[str] = Counter()
    total = sum(least for least, _ in quotas.values())

    def bound(pod: Pod, seconds: float) -> None:
        used[pod.namespace] += pod.requests.amounts["cpu"] // 1000
        if pod.namespace in quotas:
            assert used[pod.namespace] <= quotas[pod.namespace][1], f"{pod.key} exceeds the max at {seconds} s"
            assert sum(used[name] for name in quotas) <= total, f"{pod.key} exceeds what all are guaranteed"

    def ended(pod: Pod, _seconds: float) -> None:
        used[pod.namespace] -= pod.requests.amounts["cpu"] // 1000

    objects = [
        ElasticQuota(
            metadata=ObjectMeta(name="quota", namespace=name),
            spec=ElasticQuotaSpec(min={"cpu": least}, max={"cpu": most}),
        )
        for name, (least, most) in quotas.items()
    ]
    result = simulate(
        Cluster(nodes(3, 6), objects=objects),
        workload,
        ELASTIC,
        influence=False,
        attempt_timeout=0,
        on_bound=bound,
        on_ended=ended,
    )
    assert len(result.pods) == len(workload)
    assert all(pod.bound_at is not None or pod.message for pod in result.pods)


# What cannot be placed keeps no other pod waiting


def a_gang(members: int, min_member: int, cpu: int = 1) -> tuple[list[Any], list[Arrival]]:
    gang = Gang("impossible", members, cpu, [0.0] * members, 1000.0)
    group = gang.group(0)
    force_setattr(group.spec, "min_member", min_member)
    return [group], gang.arrivals()


def a_team(**spec: dict[str, Any]) -> tuple[list[Any], list[Arrival]]:
    quotas = [
        ElasticQuota(metadata=ObjectMeta(name="quota", namespace=name), spec=ElasticQuotaSpec(**each))
        for name, each in {"impossible": spec, "default": {"min": {"cpu": 6}}}.items()
    ]
    pods = [a_pod(f"p-{at}", uid=f"p-{at}", namespace="impossible", cpu="1") for at in range(4)]
    return quotas, [Arrival(0.0, pod) for pod in pods]


IMPOSSIBLE: dict[str, tuple[Any, tuple[list[Any], list[Arrival]]]] = {
    "a gang of more members than there are": (GANGS, a_gang(members=4, min_member=1_000_000)),
    "a gang of more members than nodes run pods": (GANGS, a_gang(members=250, min_member=250)),
    "a gang that needs more than all nodes have": (GANGS, a_gang(members=8, min_member=8)),
    "a gang of pods that fit no node": (GANGS, a_gang(members=2, min_member=2, cpu=100)),
    "a quota with min above max": (ELASTIC, a_team(min={"cpu": 8}, max={"cpu": 2})),
    "a quota with a negative number": (ELASTIC, a_team(min={"cpu": -4})),
    "a quota that is no quantity": (ELASTIC, a_team(max={"cpu": "many"})),
}


@pytest.mark.parametrize(("profile", "impossible"), IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_other_pods_are_bound_at_once_beside(profile, impossible):
    objects, first = impossible
    others = [Arrival(at / 2, a_pod(f"other-{at}", uid=f"other-{at}", cpu="1")) for at in range(6)]
    result = simulate(
        Cluster(nodes(2, 3), objects=objects), [*first, *others], profile, influence=False, attempt_timeout=0
    )
    for pod in result.pods:
        if pod.name.startswith("other-"):
            assert pod.bound_at is not None, pod.message
            assert pod.bound_at - pod.arrived_at < 1, pod.name
        else:
            assert (pod.bound_at, bool(pod.message)) == (None, True)
    assert not result.evictions
