"""What is decided in the benchmark, after the workloads of kube-scheduler's own (scheduler_perf).

Add one: a `Workload` in `WORKLOADS`, which states how it differs from the plain one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from mooring.objects import Node, ObjectMeta, Pod
from mooring.objects.core import Affinity, PodAffinityTerm, TopologySpreadConstraint
from mooring.objects.meta import KubeObject
from mooring.objects.pod_groups import GangSchedulingPolicy, PodGroup, PodGroupSchedulingPolicy, PodGroupSpec
from mooring.objects.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from mooring.objects.selectors import LabelSelector
from mooring.objects.workloads import Service, ServiceSpec
from mooring.plugins.community.capacity_scheduling.quotas import ElasticQuota, ElasticQuotaSpec
from mooring.plugins.community.coscheduling.pod_groups import GROUP_LABEL, CoschedulingGroup, CoschedulingGroupSpec
from mooring.testing import a_constraint, a_node_object, a_pod, a_term, pod_rules, requires
from mooring.testing.storage import a_claim, a_csi_node, a_storage_class, a_volume, claim_volume

ZONES = 10
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
GROUPS = 50
"""How many groups of pods there are that keep away from their own kind."""
APPS = 20
"""How many Services there are; their pods take turns."""
CLAIMS = 5_000
"""So many pods have a claim of their own; those after them share."""
GANGS, GANG_MEMBERS, TEAMS = 1_000, 10, 20
CSI_NODES, VOLUMES_OF_A_NODE = 5_000, 39


def a_plain_node(number: int) -> Node:
    zone = f"zone-{number % ZONES}"
    return a_node_object(f"node-{number:05d}", cpu="32", memory="128Gi", labels={"zone": zone, ZONE: zone})


def a_plain_pod(number: int) -> Pod:
    return a_pod(f"pod-{number}", cpu="100m", memory="500Mi")


def nothing_else() -> Iterable[KubeObject]:
    return ()


def no_groups(_pods: int) -> Iterable[PodGroup]:
    return ()


@dataclass(frozen=True)
class Workload:
    """A cluster and the pods that come to it; each is made from its number."""

    incoming: Callable[[int], Pod] = a_plain_pod
    running: Callable[[int], Pod] = a_plain_pod
    """The pods that are there before; they stand on the nodes in turn."""
    node: Callable[[int], Node] = a_plain_node
    objects: Callable[[], Iterable[KubeObject]] = nothing_else
    """Whatever else plugins read: Services, claims, …"""
    groups: Callable[[int], Iterable[PodGroup]] = no_groups
    """The PodGroups of so many incoming pods. They come and go with the pods."""
    gates: tuple[str, ...] = ()
    """The feature gates that must be on, of the API server and of the schedulers."""


_IN_TWO_ZONES = requires([("zone", "In", ["zone-1", "zone-2"])])


def _unlike(number: int) -> Pod:
    cpu, memory = 50 + number * 37 % 400, 100 + number * 53 % 900
    return a_pod(f"pod-{number}", cpu=f"{cpu}m", memory=f"{memory}Mi")


def _node_affinity(number: int) -> Pod:
    return a_pod(f"pod-{number}", cpu="100m", memory="500Mi", affinity=_IN_TWO_ZONES)


def _too_big(number: int) -> Pod:
    return a_pod(f"pod-{number}", cpu="64")


def _of_an_app(number: int) -> Pod:
    labels = {"app": f"app-{number % APPS}", "pod-template-hash": f"hash-{number % APPS}"}
    return a_pod(f"pod-{number}", cpu="100m", memory="500Mi", labels=labels)


def _services() -> Iterable[Service]:
    for number in range(APPS):
        yield Service(
            metadata=ObjectMeta(name=f"app-{number}", namespace="default"),
            spec=ServiceSpec(selector={"app": f"app-{number}"}),
        )


def _spread(key: str, *, soft: bool = False) -> Callable[[int], Pod]:
    """Pods of one workload, each in a domain with few of the others."""
    labels = {"color": "blue"}

    def make(number: int) -> Pod:
        constraints: list[TopologySpreadConstraint] = [a_constraint(key, skew=5, soft=soft, labels=labels)]
        return a_pod(f"pod-{number}", cpu="100m", memory="500Mi", labels=labels, spread=constraints)

    return make


def _with_pods(rules: Callable[[PodAffinityTerm], Affinity], key: str, groups: int = 1) -> Callable[[int], Pod]:
    """Pods of groups, each with a rule about the pods of its own group."""

    def make(number: int) -> Pod:
        labels = {"group": f"group-{number % groups}"}
        # A new one for each pod, as it comes from the API server.
        affinity = rules(a_term(labels, key))
        return a_pod(f"pod-{number}", cpu="100m", memory="500Mi", labels=labels, affinity=affinity)

    return make


_affinity = _with_pods(lambda term: pod_rules(near=[term]), ZONE)
_anti_affinity = _with_pods(lambda term: pod_rules(away=[term]), HOSTNAME, GROUPS)
_preferred_affinity = _with_pods(lambda term: pod_rules(rather_near=[(10, term)]), HOSTNAME)
_preferred_anti_affinity = _with_pods(lambda term: pod_rules(rather_away=[(10, term)]), HOSTNAME)
_MIXTURE = (
    a_plain_pod,
    _node_affinity,
    _spread(ZONE),
    _with_pods(lambda term: pod_rules(near=[term]), ZONE, 30),
    _with_pods(lambda term: pod_rules(away=[term]), HOSTNAME, 30),
    _with_pods(lambda term: pod_rules(rather_near=[(10, term)], rather_away=[(5, term)]), ZONE, 30),
)


def _mixed(number: int) -> Pod:
    """Thirty workloads in turn, of six kinds."""
    return _MIXTURE[number % len(_MIXTURE)](number % 30)


def _small_node(number: int) -> Node:
    return a_node_object(f"node-{number:05d}", cpu="4", memory="32Gi", labels={ZONE: f"zone-{number % ZONES}"})


def _evictable(number: int, **more: Any) -> Pod:
    """One leaves too little room on a node, four fill it."""
    return a_pod(f"low-{number}", cpu="900m", memory="500Mi", priority=0, **more)


def _preempting(number: int, **more: Any) -> Pod:
    return a_pod(f"pod-{number}", cpu="3500m", memory="500Mi", priority=10, **more)


def _preempting_spread(number: int) -> Pod:
    """Spread over zones; the victims count too."""
    labels = {"app": "web"}
    return _preempting(number, labels=labels, spread=[a_constraint(ZONE, skew=5, labels=labels)])


def _evictable_spread(number: int) -> Pod:
    return _evictable(number, labels={"app": "web" if number % 2 else "batch"})


def _preempting_anti_affinity(number: int) -> Pod:
    """Not beside another of its group."""
    labels = {"group": f"group-{number % GROUPS}", "tier": "high"}
    away = a_term({"group": labels["group"]}, HOSTNAME)
    return _preempting(number, labels=labels, affinity=pod_rules(away=[away]))


def _evictable_anti_affinity(number: int) -> Pod:
    """Half of the victims let no pod of high tier beside them."""
    rules = {} if number % 2 else {"affinity": pod_rules(away=[a_term({"tier": "high"}, HOSTNAME)])}
    return _evictable(number, labels={"tier": "low"}, **rules)


def _preempting_affinity(number: int) -> Pod:
    """In a zone with another of its group, of which some run already."""
    labels = {"group": f"group-{number % GROUPS}"}
    return _preempting(number, labels=labels, affinity=pod_rules(near=[a_term(labels, ZONE)]))


def _evictable_affinity(number: int) -> Pod:
    return _evictable(number, labels={"group": f"group-{number % GROUPS}"})


def _evictable_of_an_app(number: int) -> Pod:
    return _evictable(number, labels={"app": f"app-{number % APPS}"})


def _budgets() -> Iterable[KubeObject]:
    """Half of the apps may lose a pod."""
    for number in range(APPS):
        yield PodDisruptionBudget(
            metadata=ObjectMeta(name=f"app-{number}", namespace="default"),
            spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": f"app-{number}"})),
            status=PodDisruptionBudgetStatus(disruptions_allowed=number % 2),
        )


def _with_a_volume(number: int) -> Pod:
    volumes = [{"projected": {"sources": []}}, claim_volume(f"claim-{number % CLAIMS}")]
    return a_pod(f"pod-{number}", cpu="100m", memory="500Mi", volumes=volumes)


def _with_another_volume(number: int) -> Pod:
    return _with_a_volume(number + CLAIMS // 2)


def _csi_nodes() -> Iterable[KubeObject]:
    return (a_csi_node(f"node-{number:05d}", csi=VOLUMES_OF_A_NODE) for number in range(CSI_NODES))


def _bound_claims() -> Iterable[KubeObject]:
    """Claims bound to volumes that are each in one zone."""
    yield from _csi_nodes()
    for number in range(CLAIMS):
        yield a_claim(f"claim-{number}", volume=f"volume-{number}")
        yield a_volume(
            f"volume-{number}",
            claim=f"default/claim-{number}",
            phase="Bound",
            on={ZONE: [f"zone-{number % ZONES}"]},
        )


def _waiting_claims() -> Iterable[KubeObject]:
    """Claims for which volumes are made once their pods have nodes, in half of the zones."""
    yield from _csi_nodes()
    yield a_storage_class(allowed=[{ZONE: [f"zone-{number}" for number in range(0, ZONES, 2)]}])
    for number in range(CLAIMS):
        yield a_claim(f"claim-{number}")


def _of_a_gang(number: int) -> Pod:
    return a_pod(f"pod-{number}", cpu="100m", memory="500Mi", group=f"gang-{number // GANG_MEMBERS}")


def _gangs(pods: int) -> Iterable[PodGroup]:
    """Each needs all of its pods."""
    for first in range(0, pods, GANG_MEMBERS):
        policy = PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count=min(GANG_MEMBERS, pods - first)))
        metadata = ObjectMeta(name=f"gang-{first // GANG_MEMBERS}", namespace="default", uid=f"gang-{first}")
        yield PodGroup(metadata=metadata, spec=PodGroupSpec(scheduling_policy=policy))


def _of_a_labelled_gang(number: int) -> Pod:
    labels = {GROUP_LABEL: f"gang-{number // GANG_MEMBERS % GANGS}"}
    return a_pod(f"pod-{number}", cpu="100m", memory="500Mi", labels=labels)


def _coscheduling_groups() -> Iterable[KubeObject]:
    for number in range(GANGS):
        metadata = ObjectMeta(name=f"gang-{number}", namespace="default", uid=f"gang-{number}")
        yield CoschedulingGroup(metadata=metadata, spec=CoschedulingGroupSpec(min_member=GANG_MEMBERS))


def _of_a_team(number: int) -> Pod:
    return a_pod(f"pod-{number}", namespace=f"team-{number % TEAMS}", cpu="100m", memory="500Mi")


def _quotas() -> Iterable[KubeObject]:
    for number in range(TEAMS):
        metadata = ObjectMeta(name="quota", namespace=f"team-{number}")
        spec = ElasticQuotaSpec(min={"cpu": 5_000, "memory": "20Ti"}, max={"cpu": 10_000})
        yield ElasticQuota(metadata=metadata, spec=spec)


WORKLOADS: dict[str, Workload] = {
    "basic": Workload(),
    "hetero": Workload(_unlike),
    "nodeaffinity": Workload(_node_affinity),
    "refused": Workload(_too_big),
    "spread": Workload(_spread(ZONE), running=_spread(ZONE)),
    "preferspread": Workload(_spread(ZONE, soft=True), running=_spread(ZONE, soft=True)),
    "hostspread": Workload(_spread(HOSTNAME), running=_spread(HOSTNAME)),
    "services": Workload(_of_an_app, running=_of_an_app, objects=_services),
    "affinity": Workload(_affinity, running=_affinity),
    "antiaffinity": Workload(_anti_affinity, running=_anti_affinity),
    "preferaffinity": Workload(_preferred_affinity, running=_preferred_affinity),
    "preferanti": Workload(_preferred_anti_affinity, running=_preferred_anti_affinity),
    "mixed": Workload(_mixed, running=_mixed),
    "volumes": Workload(_with_another_volume, running=_with_a_volume, objects=_bound_claims),
    "newvolumes": Workload(_with_another_volume, running=_with_a_volume, objects=_waiting_claims),
    "gangs": Workload(_of_a_gang, groups=_gangs, gates=("GenericWorkload", "GangScheduling")),
    "coscheduling": Workload(_of_a_labelled_gang, objects=_coscheduling_groups),
    "quotas": Workload(_of_a_team, running=_of_a_team, objects=_quotas),
    "preemption": Workload(_preempting, running=_evictable, node=_small_node),
    "preemptspread": Workload(_preempting_spread, running=_evictable_spread, node=_small_node),
    "preemptanti": Workload(_preempting_anti_affinity, running=_evictable_anti_affinity, node=_small_node),
    "preemptaffinity": Workload(_preempting_affinity, running=_evictable_affinity, node=_small_node),
    "preemptbudgets": Workload(_preempting, running=_evictable_of_an_app, node=_small_node, objects=_budgets),
}
END_TO_END = tuple(
    name
    for name in WORKLOADS
    if name not in ("refused", "newvolumes", "coscheduling", "quotas") and not name.startswith("preempt")
)
"""Those whose pods are all bound without a controller: nothing fits `refused`, new volumes are made by a provisioner,
those of community plugins need custom kinds, and a preemption has scenarios of its own."""
