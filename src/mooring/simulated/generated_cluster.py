"""Nodes that follow from a seed: a GeneratedCluster document.

    apiVersion: mooring.dev/v1alpha1
    kind: GeneratedCluster
    seed: 7
    nodes: 200
    zones: [zone-a, zone-b]
    kinds:
    - name: general
      weight: 3
      allocatable: {cpu: "32", memory: 128Gi}
    - name: gpu
      weight: 1                     # or count: 50
      labels: {rack: [r1, r2, r3]}  # one of a list is drawn for each node
      taints: [{key: gpu, effect: NoSchedule}]
      allocatable: {cpu: "64", memory: 512Gi, nvidia.com/gpu: "8"}

Kinds with a count have so many nodes, the others share the rest by their weights. The seed decides the order of the
nodes, and so their zones, and what is drawn from lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mooring.base.memory import refuse_without_memory
from mooring.simulated.document_fields import DocumentFields, Mistake, check_taints
from mooring.simulated.kubelet.node_registration import ZONES, node_document
from mooring.simulated.records import Document
from mooring.simulated.seeded_random import SeededRandom

GENERATED_CLUSTER = "GeneratedCluster"
MOST_NODES = 1_000_000
NODE_BYTES = 4_000
"""About what a node takes that is made of a count."""
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
"""A label: the name of the node's kind."""


@dataclass(frozen=True)
class _NodeKind:
    name: str
    count: int | None
    weight: float
    labels: Mapping[str, tuple[str, ...]]
    taints: Sequence[Mapping[str, Any]]
    allocatable: Mapping[str, str]


def generated_nodes(
    document: Mapping[str, Any], mistakes: list[Mistake], *, now: float, first: int = 0, most: int = MOST_NODES
) -> list[Document]:
    """The nodes of a document, `most` at most; none if there are mistakes. `first` is the ordinal of the first one."""
    fields = DocumentFields(document, mistakes)
    for name in ("apiVersion", "kind"):
        fields.get(name)
    seed = fields.whole("seed", 0, least=-(2**63)) or 0
    total = fields.whole("nodes", most=MOST_NODES)
    zones = fields.texts("zones")
    kinds = [_kind(each) for each in fields.items("kinds")]
    if document.get("kinds") is None:
        kinds = [_NodeKind("node", None, 1.0, {}, (), {})]
    elif not kinds and not mistakes:
        fields.mistake("kinds", "is empty: at least one kind of node is needed")
    names = [kind.name for kind in kinds]
    for name in sorted({name for name in names if name and names.count(name) > 1}):
        fields.mistake("kinds", f'has two kinds "{name}"; their names must differ')
    counts = _counts(fields, kinds, total)
    if sum(counts) > most:
        fields.mistake("nodes", too_many_nodes(sum(counts), most))
    fields.finish(GENERATED_CLUSTER)
    if mistakes:
        return []
    refuse_without_memory("nodes", sum(counts), NODE_BYTES)
    order = [(kind, index + 1) for kind, count in zip(kinds, counts, strict=True) for index in range(count)]
    drawn = SeededRandom(seed, "labels of nodes")
    return [
        node_document(
            f"{kind.name}-{number}",
            ordinal=ordinal,
            labels={INSTANCE_TYPE: kind.name} | {key: drawn.one_of(values) for key, values in kind.labels.items()},
            taints=kind.taints,
            allocatable=kind.allocatable,
            zones=ZONES if zones is None else zones,
            now=now,
        )
        for ordinal, (kind, number) in enumerate(SeededRandom(seed, "order of nodes").shuffled(order), start=first)
    ]


def too_many_nodes(count: int, most: int) -> str:
    """A mistake."""
    return f"makes {count:,} nodes, and at most {most:,} are made here"


def _kind(fields: DocumentFields) -> _NodeKind:
    kind = _NodeKind(
        name=fields.name_part("name"),
        count=fields.whole("count", most=MOST_NODES),
        weight=fields.number("weight", 1.0, is_positive=True),
        labels=fields.labels("labels", are_lists=True),
        taints=fields.check("taints", check_taints) or (),
        allocatable=fields.quantities("allocatable"),
    )
    if not kind.name and fields.get("name") in (None, ""):
        fields.mistake("name", "is missing: it begins the names of the nodes")
    if fields.get("count") is not None and fields.get("weight") is not None:
        fields.mistake("weight", "stands for a share of the nodes that have no count; give one or the other")
    fields.finish("a kind of node")
    return kind


def _counts(fields: DocumentFields, kinds: Sequence[_NodeKind], total: int | None) -> list[int]:
    """How many nodes each kind has: the rest is shared by the largest remainders."""
    counts = [kind.count or 0 for kind in kinds]
    sharing = [index for index, kind in enumerate(kinds) if kind.count is None]
    if total is None:
        if sharing and fields.get("nodes") is None:
            fields.mistake("nodes", "is missing: how many nodes there are, for kinds without a count")
        return counts
    rest = total - sum(counts)
    if rest < 0 or (rest and not sharing):
        fields.mistake("nodes", f"is {total:,}, but the counts of the kinds add up to {sum(counts):,}")
        return counts
    weights = sum(kinds[index].weight for index in sharing)
    exact = {index: rest * kinds[index].weight / weights for index in sharing}
    for index, share in exact.items():
        counts[index] = int(share)
    left = total - sum(counts)
    for index in sorted(sharing, key=lambda index: (counts[index] - exact[index], index))[:left]:
        counts[index] += 1
    return counts
