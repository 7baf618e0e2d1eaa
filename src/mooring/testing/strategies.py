"""Hypothesis strategies: pods and clusters of few values that meet often.

Import this module only where hypothesis is installed; the rest of `mooring.testing` does without. Parts are sampled
from small tables rather than built from the ground: a cluster takes a few milliseconds, and still shrinks.
"""

from __future__ import annotations

from itertools import product

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

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
from mooring.objects.quantity import QuantityText
from mooring.testing.builders import a_pod
from mooring.testing.cluster import Cluster, a_cluster, a_node

KEYS = ["zone", "tier"]
VALUES = ["", "a", "1", "10"]
EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"]
EXTENDED = ["example.com/gpu", "hugepages-2Mi"]
NODES = [f"node-{number}" for number in range(1, 7)]

LABELS = [{}, *({key: value} for key, value in product(KEYS, VALUES)), {"zone": "a", "tier": "10"}]
TAINTS = [
    *(Taint(key=key, value=value, effect=effect) for key, value, effect in product(KEYS, ["", "1"], EFFECTS)),
    Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule"),
]
TOLERATIONS = [
    *(
        Toleration(key=key, operator=operator, value="1", effect=effect)
        for key, operator, effect in product(KEYS, ["", "Equal", "Exists"], ["", *EFFECTS])
    ),
    Toleration(operator="Exists"),
    Toleration(operator="Exists", effect="NoExecute"),
    Toleration(key="node.kubernetes.io/unschedulable", operator="Exists"),
]
REQUIREMENTS = [
    *(
        NodeSelectorRequirement(key=key, operator=operator, values=values)
        for key, operator, values in product(KEYS, ["In", "NotIn"], [["a"], ["", "1", "10"]])
    ),
    *(
        NodeSelectorRequirement(key=key, operator=operator)
        for key, operator in product(KEYS, ["Exists", "DoesNotExist"])
    ),
    *(
        NodeSelectorRequirement(key=key, operator=operator, values=[bound])
        for key, operator, bound in product(KEYS, ["Gt", "Lt"], ["5", "many"])
    ),
]
BY_NAME = [
    NodeSelectorRequirement(key="metadata.name", operator=operator, values=[name])
    for operator, name in product(["In", "NotIn"], NODES[:2])
]
REQUESTS: dict[str, list[QuantityText]] = {
    "cpu": ["0", "1m", "500m", "1", "9"],
    "memory": ["0", "1Mi", "1Gi", "15000M", "20Gi"],
    "ephemeral-storage": ["1Gi"],
    **{resource: [0, 1, 5] for resource in EXTENDED},
}


def node_terms() -> SearchStrategy[NodeSelectorTerm]:
    return st.builds(
        NodeSelectorTerm,
        match_expressions=st.lists(st.sampled_from(REQUIREMENTS), max_size=2),
        match_fields=st.lists(st.sampled_from(BY_NAME), max_size=1),
    )


def affinities() -> SearchStrategy[Affinity]:
    """Node affinity: required terms, preferred ones, both or neither."""
    required = st.builds(NodeSelector, node_selector_terms=st.lists(node_terms(), min_size=1, max_size=2))
    preferred = st.builds(PreferredSchedulingTerm, weight=st.integers(1, 100), preference=node_terms())
    return st.builds(
        Affinity,
        node_affinity=st.builds(NodeAffinity, required=st.none() | required, preferred=st.lists(preferred, max_size=2)),
    )


@st.composite
def requests(draw: DrawFn) -> dict[str, QuantityText]:
    """Amounts of up to three resources."""
    chosen = draw(st.lists(st.sampled_from(sorted(REQUESTS)), unique=True, max_size=3))
    return {resource: draw(st.sampled_from(REQUESTS[resource])) for resource in chosen}


def pods() -> SearchStrategy[Pod]:
    """Pods that ask for this and that, with selectors, affinity and tolerations."""
    return st.builds(
        a_pod,
        st.sampled_from(["web", "db"]),
        namespace=st.sampled_from(["default", "shop"]),
        labels=st.sampled_from(LABELS),
        requests=requests(),
        priority=st.sampled_from([None, -5, 5]),
        tolerations=st.lists(st.sampled_from(TOLERATIONS), max_size=2),
        node_selector=st.sampled_from(LABELS[:9]),
        affinity=st.none() | affinities(),
    )


def nodes(name: str) -> SearchStrategy[NodeView]:
    """A node of this name, perhaps tainted, cordoned or full."""
    return st.builds(
        a_node,
        st.just(name),
        cpu=st.sampled_from(["8", "0", "1", "3900m"]),
        memory=st.sampled_from(["16Gi", "1Gi"]),
        pods=st.sampled_from([110, 0, 1]),
        resources=st.sampled_from([{}, {EXTENDED[0]: 4}, {EXTENDED[0]: 1, EXTENDED[1]: 8, "ephemeral-storage": "2Gi"}]),
        labels=st.sampled_from(LABELS),
        taints=st.lists(st.sampled_from(TAINTS), max_size=2),
        unschedulable=st.booleans(),
        running=st.lists(st.builds(a_pod, requests=requests()), max_size=1),
    )


@st.composite
def clusters(draw: DrawFn, max_nodes: int = 4) -> Cluster:
    """Clusters of a few nodes, `node-1` and on."""
    return a_cluster(*(draw(nodes(name)) for name in NODES[: draw(st.integers(0, max_nodes))]))
