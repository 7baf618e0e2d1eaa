"""Hypothesis strategies: pods and clusters of few values that meet often.

Import this module only where hypothesis is installed; the rest of `mooring.testing` does without. Parts are sampled
from small tables rather than built from the ground: a cluster takes a few milliseconds, and still shrinks.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from mooring.objects.selectors import LabelSelector, LabelSelectorRequirement
from mooring.testing.builders import a_constraint, a_pod, a_term, pod_rules
from mooring.testing.cluster import Cluster, a_cluster, a_node

KEYS = ["zone", "tier"]
VALUES = ["", "a", "1", "10"]
EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"]
EXTENDED = ["example.com/gpu", "hugepages-2Mi"]
IMAGES = {"registry.example/app:1": 500_000_000, "other": 7_000_000}
HOST_PORTS = [[], [], [80], [80, 81]]
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
        NodeSelectorRequirement(key=key, operator=operator, values=tuple(values))
        for key, operator, values in product(KEYS, ["In", "NotIn"], [["a"], ["", "1", "10"]])
    ),
    *(
        NodeSelectorRequirement(key=key, operator=operator)
        for key, operator in product(KEYS, ["Exists", "DoesNotExist"])
    ),
    *(
        NodeSelectorRequirement(key=key, operator=operator, values=(bound,))
        for key, operator, bound in product(KEYS, ["Gt", "Lt"], ["5", "0"])
    ),
]
UNREADABLE = [
    NodeSelectorRequirement(key="zone", operator="Gt", values=("many",)),
    NodeSelectorRequirement(key="tier", operator="NotIn", values=("a b",)),
    NodeSelectorRequirement(key="tier", operator="Near", values=("a",)),
]
BY_NAME = [
    NodeSelectorRequirement(key="metadata.name", operator=operator, values=(name,))
    for operator, name in product(["In", "NotIn"], NODES[:2])
]
POD_SELECTORS = [
    None,
    LabelSelector(),
    *(LabelSelector(match_labels=labels) for labels in LABELS[1:4]),
    *(
        LabelSelector(
            match_expressions=(LabelSelectorRequirement(key="zone", operator=operator, values=tuple(values)),)
        )
        for operator, values in [("In", ["a", "1"]), ("NotIn", ["a"]), ("Exists", [])]
    ),
]
POD_TERMS = [
    *(a_term(selector, key) for selector, key in product(POD_SELECTORS, KEYS)),
    *(
        a_term(LabelSelector(), "zone", namespaces=namespaces, namespace_selector=selector)
        for namespaces, selector in product([[], ["shop"]], [LabelSelector(), LabelSelector(match_labels={"a": "b"})])
    ),
]
SPREADS = [
    *(
        a_constraint(key, soft=soft, labels=selector, skew=skew)
        for key, soft, selector, skew in product(
            [*KEYS, "kubernetes.io/hostname"], [False, True], POD_SELECTORS, [1, 3]
        )
    ),
    *(
        a_constraint(
            "zone", soft=soft, labels={}, match_label_keys=["tier"], node_affinity=affinity, node_taints=taints
        )
        for soft, affinity, taints in product([False, True], ["Honor", "Ignore"], ["Honor", "Ignore"])
    ),
    *(a_constraint("tier", labels=LABELS[1], min_domains=domains) for domains in (1, 3)),
]
REQUESTS: dict[str, list[QuantityText]] = {
    "cpu": ["0", "1m", "500m", "1", "9"],
    "memory": ["0", "1Mi", "1Gi", "15000M", "20Gi"],
    "ephemeral-storage": ["1Gi"],
    **{resource: [0, 1, 5] for resource in EXTENDED},
}


DISKS = [
    {"awsElasticBlockStore": {"volumeID": "vol-1"}},
    *({"gcePersistentDisk": {"pdName": "disk", "readOnly": read_only}} for read_only in (False, True)),
]
"""Of the sort that a node must not mount twice."""


def node_terms(expressions: Sequence[NodeSelectorRequirement] = REQUIREMENTS) -> SearchStrategy[NodeSelectorTerm]:
    return st.builds(
        NodeSelectorTerm,
        match_expressions=st.lists(st.sampled_from(expressions), max_size=2),
        match_fields=st.lists(st.sampled_from(BY_NAME), max_size=1),
    )


def pod_affinities() -> SearchStrategy[Affinity]:
    """Pod affinity and anti-affinity, required and preferred: some of each."""
    terms = st.lists(st.sampled_from(POD_TERMS), max_size=2)
    preferences = st.lists(st.tuples(st.integers(1, 100), st.sampled_from(POD_TERMS)), max_size=2)
    return st.builds(pod_rules, near=terms, away=terms, rather_near=preferences, rather_away=preferences)


def affinities() -> SearchStrategy[Affinity]:
    """Node affinity: required terms, preferred ones, both or neither."""
    terms = st.lists(node_terms([*REQUIREMENTS, *UNREADABLE]), min_size=1, max_size=2)
    required = st.builds(NodeSelector, node_selector_terms=terms)
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
    """Pods that request this and that, with selectors, affinity and tolerations."""
    return st.builds(
        a_pod,
        st.sampled_from(["web", "db"]),
        namespace=st.sampled_from(["default", "shop"]),
        labels=st.sampled_from(LABELS),
        requests=requests(),
        priority=st.sampled_from([None, -5, 5]),
        tolerations=st.lists(st.sampled_from(TOLERATIONS), max_size=2),
        node_selector=st.sampled_from(LABELS[:9]),
        affinity=st.none() | affinities() | pod_affinities(),
        spread=st.lists(st.sampled_from(SPREADS), max_size=2),
        ports=st.sampled_from(HOST_PORTS),
        volumes=st.lists(st.sampled_from(DISKS), max_size=1),
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
        images=st.sampled_from([{}, IMAGES, {"registry.example/app:1": 900_000_000}]),
        running=st.lists(
            st.builds(
                a_pod,
                labels=st.sampled_from(LABELS),
                requests=requests(),
                affinity=st.none() | pod_affinities(),
                ports=st.sampled_from(HOST_PORTS),
                volumes=st.lists(st.sampled_from(DISKS), max_size=1),
            ),
            max_size=1,
        ),
    )


@st.composite
def clusters(draw: DrawFn, max_nodes: int = 4) -> Cluster:
    """Clusters of a few nodes, `node-1` and on."""
    return a_cluster(*(draw(nodes(name)) for name in NODES[: draw(st.integers(0, max_nodes))]))
