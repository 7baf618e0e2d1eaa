"""PodTopologySpread: which nodes hard constraints refuse, and what soft ones prefer."""

from __future__ import annotations

import pytest
from msgspec.structs import force_setattr
from tests.plugins.verdicts import normalized

from mooring.framework import UNRESOLVABLE, UNSCHEDULABLE, Skip
from mooring.objects.selectors import LabelSelector, LabelSelectorRequirement
from mooring.plugins.default.pod_topology_spread import NO_LABEL, NOT_SPREAD, PodTopologySpread
from mooring.testing import (
    Services,
    a_cluster,
    a_constraint,
    a_cycle,
    a_node,
    a_plugin,
    a_pod,
    a_taint,
    a_toleration,
    refused_at_once,
    refused_one_by_one,
    requires,
    scored_at_once,
    scored_one_by_one,
)

WEB = {"app": "web"}
FULL = (UNSCHEDULABLE, (NOT_SPREAD,))
LACKING = (UNRESOLVABLE, (NO_LABEL,))


def web(*, of: str = "web", leaving: bool = False, namespace: str = "default", **more):
    pod = a_pod(labels={"app": of}, namespace=namespace, **more)
    if leaving:
        force_setattr(pod.metadata, "deletion_timestamp", "2026-01-01T00:00:00Z")
    return pod


def nodes(**pods):
    """`a1=2`: a node a1 in zone a with two pods of `web`; a name that begins with x has no zone."""
    return [
        a_node(name, labels={} if name[0] == "x" else {"zone": name[0]}, running=[web() for _ in range(count)])
        for name, count in pods.items()
    ]


def refused(pod, *cluster, services=None):
    plugin, world = a_plugin(PodTopologySpread, services or Services()), a_cluster(*cluster)
    verdicts = refused_one_by_one(plugin, pod, world)
    assert refused_at_once(plugin, pod, world) == verdicts
    return verdicts


def incoming(*constraints, labels=WEB, **more):
    return a_pod(labels=labels, spread=constraints, **more)


HARD = {
    "an even spread takes the pod anywhere": (a_constraint(labels=WEB), nodes(a1=1, b1=1), {}),
    "a domain that would be too far above the emptiest is refused":
        (a_constraint(labels=WEB), nodes(a1=1, b1=0), {"a1": FULL}),
    "all nodes of a domain count together":
        (a_constraint(labels=WEB), nodes(a1=1, a2=0, b1=0), {"a1": FULL, "a2": FULL}),
    "more skew allows more": (a_constraint(labels=WEB, skew=2), nodes(a1=1, b1=0), {}),
    "a node without the label is refused for good": (a_constraint(labels=WEB), nodes(a1=0, x1=0), {"x1": LACKING}),
    "pods on such a node do not count": (a_constraint(labels=WEB), nodes(a1=0, b1=0, x1=9), {"x1": LACKING}),
    "without a selector no pod is counted, not even the pod itself": (a_constraint(), nodes(a1=5, b1=0), {}),
    "an empty selector counts no pod but the pod itself": (a_constraint(labels={}), nodes(a1=5, b1=0), {}),
    "fewer domains than minDomains: the emptiest counts as empty":
        (a_constraint(labels=WEB, min_domains=3), nodes(a1=1, b1=1), {"a1": FULL, "b1": FULL}),
    "as many domains as minDomains": (a_constraint(labels=WEB, min_domains=2), nodes(a1=1, b1=1), {}),
}  # fmt: skip


@pytest.mark.parametrize(("constraint", "cluster", "expected"), HARD.values(), ids=HARD.keys())
def test_hard_constraints(constraint, cluster, expected):
    assert refused(incoming(constraint), *cluster) == expected


def test_a_pod_that_its_selector_does_not_select_counts_only_the_others():
    others = a_constraint(labels=WEB)
    assert refused(incoming(others, labels={}), *nodes(a1=1, b1=0)) == {}
    assert refused(incoming(others, labels={}), *nodes(a1=2, b1=0)) == {"a1": FULL}


NOT_COUNTED = {
    "pods of other namespaces": web(namespace="shop"),
    "pods that are being deleted": web(leaving=True),
    "pods that the selector does not select": web(of="db"),
}


@pytest.mark.parametrize("other", NOT_COUNTED.values(), ids=NOT_COUNTED.keys())
def test_who_is_not_counted(other):
    cluster = [a_node("a1", labels={"zone": "a"}, running=[other]), a_node("b1", labels={"zone": "b"})]
    assert refused(incoming(a_constraint(labels=WEB)), *cluster) == {}


def test_the_first_constraint_that_fails_gives_the_reason():
    cluster = [
        a_node("no rack and full", labels={"zone": "a"}, running=[web()]),
        a_node("no zone", labels={"rack": "1"}),
        a_node("fits", labels={"zone": "b", "rack": "2"}),
    ]
    by_zone, by_rack = a_constraint("zone", labels=WEB), a_constraint("rack", labels=WEB)
    # The pod on the node without a rack does not count: nodes must have the keys of all hard constraints.
    assert refused(incoming(by_zone, by_rack), *cluster) == {"no rack and full": LACKING, "no zone": LACKING}
    counted = [a_node("full", labels={"zone": "a"}, running=[web()]), *cluster[1:]]
    assert refused(incoming(by_zone), *counted) == {"full": FULL, "no zone": LACKING}


def test_labels_of_the_pod_narrow_the_selector():
    running = [a_pod(labels={"app": "web", "pod-template-hash": "old"}) for _ in range(3)]
    cluster = [a_node("a1", labels={"zone": "a"}, running=running), a_node("b1", labels={"zone": "b"})]
    constraint = a_constraint(labels=WEB, match_label_keys=["pod-template-hash", "absent"])
    pod = incoming(constraint, labels={"app": "web", "pod-template-hash": "new"})
    assert refused(pod, *cluster) == {}
    off = Services(gates={"MatchLabelKeysInPodTopologySpread": False})
    assert refused(pod, *cluster, services=off) == {"a1": FULL}


def test_nodes_that_node_affinity_leaves_out_are_no_domains():
    cluster = nodes(a1=1, b1=1, c1=0)
    affinity = requires([("zone", "In", ["a", "b"])])
    assert refused(incoming(a_constraint(labels=WEB), affinity=affinity), *cluster) == {}
    assert refused(incoming(a_constraint(labels=WEB), node_selector={"zone": "a"}), *cluster) == {}
    ignoring = a_constraint(labels=WEB, node_affinity="Ignore")
    assert refused(incoming(ignoring, affinity=affinity), *cluster) == {"a1": FULL, "b1": FULL}


TAINTS = {
    "taints are ignored": ("Ignore", "gpu:NoSchedule", [], True),
    "unless the policy honours them: a tainted node is no domain": ("Honor", "gpu:NoSchedule", [], False),
    "where the taint is tolerated it is": ("Honor", "gpu:NoSchedule", ["gpu"], True),
    "a soft taint leaves no node out": ("Honor", "gpu:PreferNoSchedule", [], True),
}


@pytest.mark.parametrize(("policy", "taint", "tolerated", "is_domain"), TAINTS.values(), ids=TAINTS.keys())
def test_tainted_nodes(policy, taint, tolerated, is_domain):
    cluster = [*nodes(a1=1), a_node("b1", labels={"zone": "b"}, taints=[a_taint(taint)])]
    pod = incoming(a_constraint(labels=WEB, node_taints=policy), tolerations=[a_toleration(text) for text in tolerated])
    assert refused(pod, *cluster) == ({"a1": FULL} if is_domain else {})


def test_a_pod_without_hard_constraints_is_not_looked_at():
    plugin = a_plugin(PodTopologySpread)
    for pod in (a_pod(), incoming(a_constraint(soft=True, labels=WEB))):
        assert isinstance(plugin.pre_filter(pod, a_cycle(pod)), Skip)


def test_a_pod_without_soft_constraints_is_not_scored():
    plugin, cluster = a_plugin(PodTopologySpread), a_cluster(*nodes(a1=0))
    for pod in (a_pod(), incoming(a_constraint(labels=WEB))):
        assert isinstance(plugin.pre_score(pod, cluster.nodes, a_cycle(pod, cluster)), Skip)


BROKEN = LabelSelector(match_expressions=(LabelSelectorRequirement(key="app", operator="Near"),))


@pytest.mark.parametrize(
    ("soft", "expected"),
    [
        (
            False,
            'running PreFilter plugin "PodTopologySpread": get constraints from pod: obtaining pod\'s hard topology'
            ' spread constraints: "Near" is not a valid label selector operator',
        ),
        (
            True,
            'running PreScore plugin "PodTopologySpread": calculating preScoreState: obtaining pod\'s soft topology'
            ' spread constraints: "Near" is not a valid label selector operator',
        ),
    ],
)
def test_a_selector_that_cannot_be_read_is_an_error(soft, expected):
    cluster = a_cluster(*nodes(a1=0, b1=0), plugins=[a_plugin(PodTopologySpread)])
    assert str(cluster.decide(incoming(a_constraint(soft=soft, labels=BROKEN))).fault) == expected


def scored(pod, *cluster, services=None, **arguments):
    """Raw scores in both forms, and normalised ones."""
    plugin = a_plugin(PodTopologySpread, services or Services(), **arguments)
    world = a_cluster(*cluster, plugins=[plugin])
    raw = scored_one_by_one(plugin, pod, world)
    assert scored_at_once(plugin, pod, world) == raw
    return raw, normalized(world.decide(pod), "PodTopologySpread")


SOFT = {
    "fewer pods are better: each weighs the logarithm of the number of domains and two":
        (a_constraint(soft=True, labels=WEB), nodes(a1=3, b1=1), ({"a1": 4, "b1": 1}, {"a1": 25, "b1": 100})),
    "no pods anywhere: all are best":
        (a_constraint(soft=True, labels=WEB), nodes(a1=0, b1=0), ({"a1": 0, "b1": 0}, {"a1": 100, "b1": 100})),
    "allowed skew waters differences down":
        (a_constraint(soft=True, skew=5, labels=WEB), nodes(a1=3, b1=1), ({"a1": 8, "b1": 5}, {"a1": 62, "b1": 100})),
    "a node without the key gets nothing":
        (a_constraint(soft=True, labels=WEB), nodes(a1=1, b1=0, x1=0),
         ({"a1": 1, "b1": 0, "x1": 0}, {"a1": 0, "b1": 100, "x1": 0})),
    "per host, pods are counted on each node":
        (a_constraint("kubernetes.io/hostname", soft=True, labels=WEB), nodes(a1=2, a2=0),
         ({"a1": 3, "a2": 0}, {"a1": 0, "a2": 100})),
}  # fmt: skip


@pytest.mark.parametrize(("constraint", "cluster", "expected"), SOFT.values(), ids=SOFT.keys())
def test_soft_constraints(constraint, cluster, expected):
    assert scored(incoming(constraint), *cluster) == expected


def test_two_nodes_with_one_host_name_count_their_own_pods():
    twins = [
        a_node("a", labels={"kubernetes.io/hostname": "twin"}, running=[web(), web()]),
        a_node("b", labels={"kubernetes.io/hostname": "twin"}),
    ]
    raw, _ = scored(incoming(a_constraint("kubernetes.io/hostname", soft=True, labels=WEB)), *twins)
    assert raw == {"a": 3, "b": 0}


def test_only_domains_of_feasible_nodes_weigh_but_all_pods_in_them_count():
    hard = a_constraint("rack", labels={"app": "db"})
    soft = a_constraint("zone", soft=True, labels=WEB)
    cluster = a_cluster(
        a_node("a1", labels={"zone": "a", "rack": "1"}, running=[web()]),
        a_node("a2", labels={"zone": "a"}, running=[web(), web()]),
        a_node("b1", labels={"zone": "b", "rack": "2"}),
        a_node("c1", labels={"zone": "c"}),
        plugins=[a_plugin(PodTopologySpread)],
    )
    columns = cluster.decide(incoming(hard, soft)).columns()
    assert columns is not None
    # 3 pods × ln(2 domains + 2) = 4.16; three domains would make it 4.83.
    assert dict(zip(columns.nodes, columns.raw["PodTopologySpread"].tolist(), strict=True)) == {"a1": 4, "b1": 0}
