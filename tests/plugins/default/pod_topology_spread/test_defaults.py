"""PodTopologySpread for pods without constraints: when defaults apply, what they count, what can be configured."""

from __future__ import annotations

import pytest
from msgspec.structs import force_setattr

from mooring.base.errors import OperatorMistake
from mooring.framework import UNRESOLVABLE, UNSCHEDULABLE, Skip
from mooring.objects import KubeObject, ObjectMeta, OwnerReference
from mooring.objects.selectors import LabelSelector, LabelSelectorRequirement
from mooring.objects.workloads import (
    ReplicaSet,
    ReplicationController,
    ReplicationControllerSpec,
    Service,
    ServiceSpec,
    StatefulSet,
    WorkloadSpec,
)
from mooring.plugins.default.pod_topology_spread import NO_LABEL, NOT_SPREAD, PodTopologySpread
from mooring.testing import (
    Services,
    a_cluster,
    a_constraint,
    a_cycle,
    a_node,
    a_plugin,
    a_pod,
    refused_at_once,
    refused_one_by_one,
    scored_at_once,
    scored_one_by_one,
)

ZONE = "topology.kubernetes.io/zone"
WEB = {"app": "web", "tier": "front"}


def named(name="it", namespace="default"):
    return ObjectMeta(name=name, namespace=namespace)


def a_service(name="web", namespace="default", **selector):
    return Service(metadata=named(name, namespace), spec=ServiceSpec(selector=selector))


def a_replica_set(selector, kind=ReplicaSet):
    return kind(metadata=named(), spec=WorkloadSpec(selector=selector))


def owned_by(kind, api_version="apps/v1", *, controller=True, labels=WEB):
    pod = a_pod(labels=labels)
    force_setattr(
        pod.metadata,
        "owner_references",
        (OwnerReference(api_version=api_version, kind=kind, name="it", controller=controller),),
    )
    return pod


def with_objects(*objects):
    by_kind: dict[type[KubeObject], list[KubeObject]] = {}
    for one in objects:
        by_kind.setdefault(type(one), []).append(one)
    return Services(objects=by_kind)


def counted(pod, *objects):
    """Which other pods count for this one by default: the labels of each that does. None: no defaults apply."""
    others = [{"app": "web"}, {"app": "web", "tier": "front"}, {"app": "web", "tier": "back"}, {"app": "db"}]
    plugin = a_plugin(PodTopologySpread, with_objects(*objects))
    cluster = a_cluster(
        a_node("empty"), *(a_node(f"n{at}", running=[a_pod(labels=other)]) for at, other in enumerate(others))
    )
    cycle = a_cycle(pod, cluster)
    preferences = plugin.pre_score(pod, cluster.nodes, cycle)
    if isinstance(preferences, Skip):
        return None
    scores = scored_one_by_one(plugin, pod, cluster)
    assert scores is not None
    assert scored_at_once(plugin, pod, cluster) == scores
    return [other for at, other in enumerate(others) if scores[f"n{at}"] > scores["empty"]]


ANY_WEB = [{"app": "web"}, {"app": "web", "tier": "front"}, {"app": "web", "tier": "back"}]
FRONT = [{"app": "web", "tier": "front"}]
BY_APP = LabelSelector(match_labels={"app": "web"})
IN_FRONT = LabelSelector(match_expressions=(LabelSelectorRequirement(key="tier", operator="In", values=("front",)),))
BROKEN = LabelSelector(match_expressions=(LabelSelectorRequirement(key="tier", operator="Near"),))

WHO = {
    "no Service selects the pod and no controller owns it": (a_pod(labels=WEB), [], None),
    "a Service's pods": (a_pod(labels=WEB), [a_service(app="web")], ANY_WEB),
    "a Service of another namespace is none": (a_pod(labels=WEB), [a_service(app="web", namespace="shop")], None),
    "a Service that does not select the pod": (a_pod(labels=WEB), [a_service(app="db")], None),
    "one that wants more than the pod has": (a_pod(labels={"app": "web"}), [a_service(app="web", tier="front")], None),
    "a Service without a selector has no pods": (a_pod(labels=WEB), [a_service()], None),
    "several Services: the pods of all":
        (a_pod(labels=WEB), [a_service("a", app="web"), a_service("b", tier="front")], FRONT),
    "the owner's pods": (owned_by("ReplicaSet"), [a_replica_set(BY_APP)], ANY_WEB),
    "a StatefulSet's": (owned_by("StatefulSet"), [a_replica_set(BY_APP, StatefulSet)], ANY_WEB),
    "a ReplicationController's":
        (owned_by("ReplicationController", "v1"),
         [ReplicationController(metadata=named(), spec=ReplicationControllerSpec(selector={"app": "web"}))], ANY_WEB),
    "the Service's and the owner's": (owned_by("ReplicaSet"), [a_service(app="web"), a_replica_set(IN_FRONT)], FRONT),
    "an owner that is not the controller does not count":
        (owned_by("ReplicaSet", controller=False), [a_replica_set(BY_APP)], None),
    "nor one of another version": (owned_by("ReplicaSet", "apps/v1beta1"), [a_replica_set(BY_APP)], None),
    "nor one that is not there": (owned_by("ReplicaSet"), [], None),
    "nor other kinds of owners": (owned_by("Job", "batch/v1"), [a_replica_set(BY_APP)], None),
    "an owner without a selector adds nothing": (owned_by("ReplicaSet"), [a_replica_set(None)], None),
    "nor one whose selector cannot be read":
        (owned_by("ReplicaSet"), [a_service(app="web"), a_replica_set(BROKEN)], ANY_WEB),
}  # fmt: skip


@pytest.mark.parametrize(("pod", "objects", "expected"), WHO.values(), ids=WHO.keys())
def test_which_pods_the_defaults_of_the_system_count(pod, objects, expected):
    assert counted(pod, *objects) == expected


def test_a_pod_with_constraints_of_its_own_has_no_defaults():
    pod = a_pod(labels=WEB, spread=[a_constraint(labels=WEB)])
    assert counted(pod, a_service(app="web")) is None


def test_services_come_and_go():
    services = with_objects(a_service(app="web"))
    plugin, cluster = a_plugin(PodTopologySpread, services), a_cluster(a_node())
    pod = a_pod(labels=WEB)

    def is_skipped():
        return isinstance(plugin.pre_score(pod, cluster.nodes, a_cycle(pod, cluster)), Skip)

    assert not is_skipped()
    services.objects(Service).put(a_service(app="db"))
    assert is_skipped()
    services.objects(Service).put(a_service(tier="front"))
    assert not is_skipped()
    services.objects(Service).remove(a_service(tier="front"))
    assert is_skipped()


def system_scores(*cluster):
    pod, services = a_pod(labels=WEB), with_objects(a_service(app="web"))
    plugin, world = a_plugin(PodTopologySpread, services), a_cluster(*cluster)
    scores = scored_one_by_one(plugin, pod, world)
    assert scored_at_once(plugin, pod, world) == scores
    return scores


def running(count):
    return [a_pod(labels=WEB) for _ in range(count)]


def test_the_system_prefers_hosts_and_zones_with_fewer_pods():
    scores = system_scores(
        a_node("a1", labels={ZONE: "a"}, running=running(2)),
        a_node("a2", labels={ZONE: "a"}),
        a_node("b1", labels={ZONE: "b"}),
    )
    # Host: 2·ln 5 + 2 = 5.22; zone: 2·ln 4 + 4 = 6.77.
    assert scores == {"a1": 12, "a2": 9, "b1": 6}


def test_where_a_node_has_no_zone_its_host_still_counts():
    scores = system_scores(
        a_node("a1", labels={ZONE: "a"}, running=running(1)),
        a_node("x1", running=running(2)),
        a_node("x2"),
    )
    # Nodes without a zone are together one more zone to divide by, but none of them is in it.
    assert scores == {"a1": 9, "x1": 5, "x2": 2}


def test_nodes_without_a_zone_are_in_the_zone_of_no_name():
    scores = system_scores(
        a_node("empty", labels={ZONE: ""}),
        a_node("a1", labels={ZONE: "a"}),
        a_node("x1", running=running(2)),
    )
    # In "": the two pods on the node without a label. Two zones: "" and a.
    assert scores == {"empty": 9, "a1": 6, "x1": 5}


LIST = {"defaulting_type": "List"}


def listed(*constraints):
    return LIST | {"default_constraints": constraints}


def test_a_list_may_be_hard():
    hard = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    plugin = a_plugin(PodTopologySpread, with_objects(a_service(app="web")), **listed(hard))
    cluster = a_cluster(
        a_node("a1", labels={"zone": "a"}, running=running(1)), a_node("b1", labels={"zone": "b"}), a_node("x1")
    )
    pod = a_pod(labels=WEB)
    expected = {"a1": (UNSCHEDULABLE, (NOT_SPREAD,)), "x1": (UNRESOLVABLE, (NO_LABEL,))}
    assert refused_one_by_one(plugin, pod, cluster) == refused_at_once(plugin, pod, cluster) == expected
    unrelated = a_pod(labels={"app": "db"})
    assert isinstance(plugin.pre_filter(unrelated, a_cycle(unrelated, cluster)), Skip)


def test_a_soft_list_ignores_nodes_that_lack_a_key():
    soft = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    plugin = a_plugin(PodTopologySpread, with_objects(a_service(app="web")), **listed(soft))
    cluster = a_cluster(a_node("a1", labels={"zone": "a"}, running=running(1)), a_node("x1"), plugins=[plugin])
    columns = cluster.decide(a_pod(labels=WEB)).columns()
    assert columns is not None
    assert dict(zip(columns.nodes, columns.normalized[plugin.name].tolist(), strict=True)) == {"a1": 100, "x1": 0}


def test_an_empty_list_means_no_defaults():
    plugin = a_plugin(PodTopologySpread, with_objects(a_service(app="web")), **LIST)
    pod, cluster = a_pod(labels=WEB), a_cluster(a_node())
    assert isinstance(plugin.pre_score(pod, cluster.nodes, a_cycle(pod, cluster)), Skip)


GOOD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
MISTAKES = {
    "the system's defaults go without a list": ({"default_constraints": [GOOD]}, ["defaultingType"]),
    "no type is the system's": ({"defaulting_type": "", "default_constraints": [GOOD]}, ["defaultingType"]),
    "skew": (listed(GOOD | {"maxSkew": 0}), ["defaultConstraints[0].maxSkew"]),
    "all that must be given": (
        listed({}),
        [f"defaultConstraints[0].{name}" for name in ("maxSkew", "topologyKey", "whenUnsatisfiable")],
    ),
    "a key that no label can have": (listed(GOOD | {"topologyKey": "-zone-"}), ["defaultConstraints[0].topologyKey"]),
    "something else than the two": (
        listed(GOOD | {"whenUnsatisfiable": "Never"}),
        ["defaultConstraints[0].whenUnsatisfiable"],
    ),
    "a selector, even an empty one": (listed(GOOD | {"labelSelector": {}}), ["defaultConstraints[0].labelSelector"]),
    "the same twice": (listed(GOOD, GOOD | {"maxSkew": 2}), ["defaultConstraints[1]"]),
}


@pytest.mark.parametrize(("arguments", "paths"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_in_arguments(arguments, paths):
    with pytest.raises(OperatorMistake) as found:
        a_plugin(PodTopologySpread, **arguments)
    assert [problem.path for problem in found.value.problems] == paths


def test_the_same_key_hard_and_soft_is_no_mistake():
    assert a_plugin(PodTopologySpread, **listed(GOOD, GOOD | {"whenUnsatisfiable": "ScheduleAnyway"}))


def test_pods_of_one_template_follow_services_and_owners_that_change() -> None:
    services = with_objects(a_service(app="web"), a_replica_set(LabelSelector(match_labels={"tier": "front"})))
    plugin = a_plugin(PodTopologySpread, services)
    running = [a_pod(labels={"app": "web"}), a_pod(labels=WEB), *(a_pod(labels={"tier": "front"}) for _ in range(3))]
    cluster = a_cluster(a_node("n", labels={ZONE: "a"}, running=running))

    def counted_pods(pod):
        preferences = plugin.pre_score(pod, cluster.nodes, a_cycle(pod, cluster))
        return None if isinstance(preferences, Skip) else preferences.each[-1].tally.total

    assert counted_pods(a_pod(labels=WEB)) == 2
    assert counted_pods(owned_by("ReplicaSet")) == 1
    assert counted_pods(a_pod(labels=WEB)) == 2
    services.objects(Service).discard("default/web")
    assert counted_pods(a_pod(labels=WEB)) is None
    assert counted_pods(owned_by("ReplicaSet")) == 4
    services.objects(ReplicaSet).discard("default/it")
    assert counted_pods(owned_by("ReplicaSet")) is None
