"""Kinds of nodes that could be added to a cluster, and the DaemonSet pods that would run on them.

| text | kind |
| --- | --- |
| `like:NAME` | as that node of the cluster: labels, taints, allocatable, CSI limits, devices |
| `cpu=8,memory=32Gi,nvidia.com/gpu=2` | of these resources, in each zone of the cluster in turn, or in `zone=NAME` |
| a file | one Node, or a SimulatedNodes document, as in a cluster file |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mooring.base.documents import written
from mooring.base.errors import OperatorMistake, Problem, did_you_mean
from mooring.base.missing_files import why_absent
from mooring.base.nesting import Decoder
from mooring.objects import Node, Pod
from mooring.objects.core import NodeCondition
from mooring.objects.requests import is_counted
from mooring.simulated.cluster_file import ClusterFile
from mooring.simulated.controllers.daemon_sets import Eligibility, daemon_pod
from mooring.simulated.controllers.workload_records import DaemonSet
from mooring.simulated.records import NodeRecord, controller_of
from mooring.simulator.scenario import Cluster, KindKey
from mooring.simulator.virtual_time import START

ZONE, REGION, HOSTNAME = "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "kubernetes.io/hostname"
LIKE = "like:"
_CONDITION_TAINTS = "node.kubernetes.io/"
_SHORT = re.compile(r"[^=,/\s]+(/[^=,\s]+)?=[^,]*(,|$)")
_NODES = "a template is one Node, or one SimulatedNodes document without names and count"
_nodes: Decoder[Node] = Decoder(Node)
_pods: Decoder[Pod] = Decoder(Pod)

Document = dict[str, Any]
MakeNode = Callable[[str, int], Node]
"""A node of this name, and of this number among those that are added."""


class NodeKind:
    """A kind of node that could be added, any number of times."""

    def __init__(self, name: str, make: MakeNode, documents: Callable[[str], Mapping[KindKey, Document]]) -> None:
        self.name = name
        self._make = make
        self._documents = documents

    def __repr__(self) -> str:
        return f"<node kind {self.name}>"

    def added_to(self, cluster: Cluster, count: int) -> Cluster:
        """The cluster with so many more of these nodes, each with the DaemonSet pods that would run on it."""
        taken = {node.name for node in cluster.nodes}
        nodes: list[Node] = []
        number = 0
        while len(nodes) < count:
            number += 1
            name = f"{_slug(self.name)}-new-{number}"
            if name not in taken:
                nodes.append(self._make(name, len(nodes)))
        documents = {key: list(group) for key, group in cluster.documents.items()}
        for node in nodes:
            for key, document in self._documents(node.name).items():
                documents.setdefault(key, []).append(document)
        return msgspec.structs.replace(
            cluster,
            nodes=[*cluster.nodes, *nodes],
            pods=[*cluster.pods, *daemons_on(nodes, cluster)],
            documents=documents,
        )


def read_node_kind(text: str, cluster: Cluster) -> NodeKind:
    """The kind that a text describes: `like:NAME`, resources, or the path of a file."""
    if text.startswith(LIKE):
        return node_kind_like(text.removeprefix(LIKE), cluster)
    if _SHORT.match(text) and not Path(text).exists():
        return _of_resources(text, cluster)
    return _of_file(text)


def _slug(name: str) -> str:
    """A part of node names."""
    return re.sub(r"[^a-z0-9]+", "-", Path(name).stem.lower()).strip("-")[:40].strip("-") or "node"


def _renamed(node: Node, name: str, labels: Mapping[str, str]) -> Node:
    metadata = msgspec.structs.replace(
        node.metadata, name=name, uid=name, resource_version="1", labels={**node.labels, **labels, HOSTNAME: name}
    )
    return Node(metadata=metadata, spec=node.spec, status=node.status)


def _nothing_more(_: str) -> Mapping[KindKey, Document]:
    return {}


def node_kind_like(name: str, cluster: Cluster) -> NodeKind:
    """Nodes as one that there is."""
    found = next((node for node in cluster.nodes if node.name == name), None)
    if found is None:
        known = [node.name for node in cluster.nodes]
        raise OperatorMistake(f'--node {LIKE}{name}: the cluster has no node "{name}".{did_you_mean(name, known)}')
    taints = tuple(taint for taint in found.spec.taints if not taint.key.startswith(_CONDITION_TAINTS))
    template = Node(
        metadata=found.metadata,
        spec=msgspec.structs.replace(found.spec, taints=taints, unschedulable=False, provider_id=""),
        # A new node is healthy, and has no images yet.
        status=msgspec.structs.replace(
            found.status, images=(), conditions=(NodeCondition(type="Ready", status="True"),)
        ),
    )

    def documents(new: str) -> Mapping[KindKey, Document]:
        return _of_node(cluster, name, new)

    return NodeKind(name, lambda new, _: _renamed(template, new, {}), documents)


def _of_node(cluster: Cluster, name: str, new: str) -> dict[KindKey, Document]:
    """What describes the node besides its Node, for the new one: what its CSI drivers and its device drivers report."""
    made: dict[KindKey, Document] = {}
    for key, document in ((key, dict(each)) for key, group in cluster.documents.items() for each in group):
        metadata = document["metadata"]
        if key[1] == "CSINode" and metadata.get("name") == name:
            made[key] = document | {"metadata": metadata | {"name": new, "uid": f"{new}-csi"}}
        elif key[1] == "ResourceSlice" and document["spec"].get("nodeName") == name:
            spec = document["spec"]
            pool = spec.get("pool", {}) | {"name": new}
            copied = metadata | {"name": f"{metadata['name']}-{new}", "uid": f"{metadata['name']}-{new}"}
            made[key] = document | {"metadata": copied, "spec": spec | {"nodeName": new, "pool": pool}}
    return made


def _of_resources(text: str, cluster: Cluster) -> NodeKind:
    given: dict[str, str] = {}
    problems = []
    for part in text.split(","):
        resource, equals, amount = (each.strip() for each in part.partition("="))
        if not equals or not amount:
            problems.append(Problem(part, "must be RESOURCE=AMOUNT, as in cpu=8"))
        elif resource not in ("zone", "pods") and not is_counted(resource):
            known = ("cpu", "memory", "ephemeral-storage", "pods", "zone")
            problems.append(Problem(part, f'"{resource}" is no resource of nodes.{did_you_mean(resource, known)}'))
        else:
            given[resource] = amount
    problems += [
        Problem(each, f"is missing: give it as in {each}={example}")
        for each, example in (("cpu", "8"), ("memory", "32Gi"))
        if each not in given
    ]
    if problems:
        raise OperatorMistake.found_in(f"--node {text}", problems)
    zones = _zones(cluster)
    if (zone := given.pop("zone", None)) is not None:
        zones = [next((each for each in zones if each[ZONE] == zone), {ZONE: zone})]
    document = {"apiVersion": "mooring.dev/v1alpha1", "kind": "SimulatedNodes", "allocatable": given, "zones": []}
    template = _template(written(document), f"--node {text}")
    labels = {key: value for key, value in template.labels.items() if key != REGION}  # that of simulated nodes
    template = msgspec.structs.replace(template, metadata=msgspec.structs.replace(template.metadata, labels=labels))

    def make(name: str, number: int) -> Node:
        return _renamed(template, name, zones[number % len(zones)] if zones else {})

    return NodeKind(text, make, _nothing_more)


def _zones(cluster: Cluster) -> list[dict[str, str]]:
    """The labels of the zones that the cluster has, by name."""
    found = {
        node.labels[ZONE]: {key: node.labels[key] for key in (ZONE, REGION) if key in node.labels}
        for node in cluster.nodes
        if ZONE in node.labels
    }
    return [found[zone] for zone in sorted(found)]


def _of_file(path: str) -> NodeKind:
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        how = f"A template is a file, resources (cpu=8,memory=32Gi) or {LIKE}NODE."
        raise OperatorMistake(f"--node {path} cannot be read: {error.strerror}.{why_absent(path)} {how}") from error
    return node_kind_of(text, path)


def node_kind_of(manifest: str | bytes, source: str) -> NodeKind:
    """Nodes as one of a manifest; `source` is its name in messages."""
    template = _template(manifest, source)
    return NodeKind(source, lambda name, _: _renamed(template, name, {}), _nothing_more)


_MOST_LOOKED_AT = 100
"""Nodes of a file that should have one."""


def _template(text: str | bytes, source: str) -> Node:
    file = ClusterFile(text, source, now=START, most_nodes=_MOST_LOOKED_AT)
    file.refuse(file.problems)
    initial = file.initial
    documents = [*initial.nodes, *(each for each in initial.restored if each["kind"] == "Node")]
    others = len(initial.in_order()) + len(initial.restored) - len(documents)
    if len(documents) != 1 or others:
        found = f"{len(documents)} nodes" + (f" and {others} other objects" if others else "")
        raise OperatorMistake(f"{source}: {_NODES}; found {found}.")
    return _nodes.decode(msgspec.json.encode(documents[0]))


def daemons_on(nodes: Sequence[Node], cluster: Cluster) -> list[Pod]:
    """The pods that the DaemonSets of the cluster would run on these nodes."""
    pods = []
    running = {
        (pod.namespace, controller[1]): pod
        for pod in cluster.pods
        if (controller := controller_of(pod)) is not None and controller[0] == "DaemonSet"
    }
    for document in cluster.documents.get(("apps/v1", "DaemonSet"), ()):
        owner = msgspec.convert(document, DaemonSet, strict=False)
        eligibility = Eligibility(owner)
        like = running.get((owner.namespace, owner.name))
        for node in nodes:
            should_run, _ = eligibility.of(msgspec.convert(msgspec.to_builtins(node), NodeRecord, strict=False))
            if should_run:
                pods.append(_daemon(owner, node.name, like))
    return pods


def _daemon(owner: DaemonSet, node: str, like: Pod | None) -> Pod:
    """Like one that runs, which has been admitted, or else by the template."""
    if like is None:
        like = _pods.decode(msgspec.json.encode(daemon_pod(owner, node, "")))
    name = f"{owner.name}-{node}"
    uid = f"{owner.namespace}/{name}"
    metadata = msgspec.structs.replace(like.metadata, name=name, namespace=owner.namespace, uid=uid)
    return Pod(metadata=metadata, spec=msgspec.structs.replace(like.spec, node_name=node))
