"""Hypothesis strategies: pods and clusters of few values that meet often.

Import this module only where hypothesis is installed; the rest of `mooring.testing` does without.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from mooring.framework import NodeView, Pod
from mooring.objects.core import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    Taint,
    Toleration,
)
from mooring.testing.builders import a_pod
from mooring.testing.cluster import Cluster, a_cluster, a_node

KEYS = ["zone", "disk", "tier", "score-by-label", "cpu"]
VALUES = ["", "a", "b", "1", "10", "true", "-3"]
EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"]
EXTENDED = ["example.com/gpu", "vendor.example/nic", "hugepages-2Mi"]
NODES = [f"node-{number}" for number in range(1, 7)]


def labels() -> SearchStrategy[dict[str, str]]:
    return st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=4)


def taints() -> SearchStrategy[Taint]:
    return st.builds(
        Taint, key=st.sampled_from(KEYS), value=st.sampled_from(VALUES), effect=st.sampled_from(EFFECTS)
    ) | st.just(Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule"))


def tolerations() -> SearchStrategy[Toleration]:
    effects = st.sampled_from(["", *EFFECTS])
    return (
        st.builds(
            Toleration,
            key=st.sampled_from(KEYS),
            operator=st.sampled_from(["", "Equal"]),
            value=st.sampled_from(VALUES),
            effect=effects,
        )
        | st.builds(Toleration, key=st.sampled_from(["", *KEYS]), operator=st.just("Exists"), effect=effects)
        | st.just(Toleration(key="node.kubernetes.io/unschedulable", operator="Exists"))
    )


def requirements() -> SearchStrategy[NodeSelectorRequirement]:
    keys, some = st.sampled_from(KEYS), st.lists(st.sampled_from(VALUES), min_size=1, max_size=3)
    return (
        st.builds(NodeSelectorRequirement, key=keys, operator=st.sampled_from(["In", "NotIn"]), values=some)
        | st.builds(NodeSelectorRequirement, key=keys, operator=st.sampled_from(["Exists", "DoesNotExist"]))
        | st.builds(
            NodeSelectorRequirement,
            key=keys,
            operator=st.sampled_from(["Gt", "Lt"]),
            values=st.lists(st.sampled_from(["-1", "0", "5", "many"]), min_size=1, max_size=1),
        )
    )


def node_terms() -> SearchStrategy[NodeSelectorTerm]:
    by_name = st.builds(
        NodeSelectorRequirement,
        key=st.just("metadata.name"),
        operator=st.sampled_from(["In", "NotIn"]),
        values=st.lists(st.sampled_from(NODES), min_size=1, max_size=1),
    )
    return st.builds(
        NodeSelectorTerm,
        match_expressions=st.lists(requirements(), max_size=3),
        match_fields=st.lists(by_name, max_size=1),
    )


def affinities() -> SearchStrategy[Affinity]:
    required = st.builds(NodeSelector, node_selector_terms=st.lists(node_terms(), min_size=1, max_size=3))
    preferred = st.builds(PreferredSchedulingTerm, weight=st.integers(1, 100), preference=node_terms())
    return st.builds(
        Affinity,
        node_affinity=st.builds(NodeAffinity, required=st.none() | required, preferred=st.lists(preferred, max_size=3)),
    )


def requests() -> SearchStrategy[dict[str, str | int | float]]:
    amounts: dict[str, SearchStrategy[str | int | float]] = {
        "cpu": st.sampled_from(["0", "1m", "500m", "1", "3.3", "9"]),
        "memory": st.sampled_from(["0", "1Mi", "1Gi", "15000M", "20Gi"]),
        "ephemeral-storage": st.sampled_from(["1Gi", "100Gi"]),
        **{resource: st.integers(0, 5) for resource in EXTENDED},
    }
    return st.fixed_dictionaries({}, optional=amounts)


def pods() -> SearchStrategy[Pod]:
    """Pods that ask for this and that, with selectors, affinity and tolerations."""
    return st.builds(
        a_pod,
        st.sampled_from(["web", "db", "batch"]),
        namespace=st.sampled_from(["default", "shop"]),
        labels=labels(),
        requests=requests(),
        priority=st.none() | st.integers(-10, 10),
        tolerations=st.lists(tolerations(), max_size=3),
        node_selector=st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=1),
        affinity=st.none() | affinities(),
        node=st.just(""),
    )


def nodes(name: str) -> SearchStrategy[NodeView]:
    """A node of this name, perhaps tainted, cordoned or full."""
    return st.builds(
        a_node,
        st.just(name),
        cpu=st.sampled_from(["0", "1", "3900m", "8"]),
        memory=st.sampled_from(["1Gi", "16Gi", "15Gi"]),
        pods=st.integers(0, 3),
        resources=st.dictionaries(st.sampled_from([*EXTENDED, "ephemeral-storage"]), st.integers(0, 8), max_size=2),
        labels=labels(),
        taints=st.lists(taints(), max_size=2),
        unschedulable=st.booleans(),
        running=st.lists(pods(), max_size=3),
    )


def clusters(max_nodes: int = len(NODES)) -> SearchStrategy[Cluster]:
    """Clusters of up to six nodes, `node-1` and on."""
    return st.integers(0, max_nodes).flatmap(
        lambda count: st.tuples(*(nodes(name) for name in NODES[:count])).map(lambda made: a_cluster(*made))
    )
