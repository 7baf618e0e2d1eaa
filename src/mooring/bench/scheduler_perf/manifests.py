"""The objects that operations create, from upstream's templates and defaults."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

from mooring.bench.scheduler_perf.operations import CreateNodes, LabelNodes, NodeAllocatable, UniqueNodeLabel
from mooring.bench.scheduler_perf.templates import Document, Template
from mooring.objects import Kind, Node, Pod

NAMESPACES = Kind("", "v1", "Namespace", "namespaces", namespaced=False)
CLAIMS = Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
VOLUMES = Kind("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)
CSI_NODES = Kind("storage.k8s.io", "v1", "CSINode", "csinodes", namespaced=False)
NODES, PODS = Node.KIND, Pod.KIND

_FREE_FORM = {"labels", "annotations", "matchLabels", "nodeSelector", "limits", "requests", "capacity", "allocatable"}
"""Fields whose keys are the user's own."""
_HOSTNAME = "kubernetes.io/hostname"
_MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
_SIZE = {"pods": "110", "cpu": "4", "memory": "32Gi"}
_REQUESTS = {"cpu": "100m", "memory": "500Mi"}


def default_node() -> Document:
    """The node of an operation without a template."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"generateName": "node-"},
        "status": {
            "capacity": dict(_SIZE),
            "allocatable": dict(_SIZE),
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def default_pod() -> Document:
    """The pod of an operation without a template."""
    container = {
        "name": "pause",
        "image": "registry.k8s.io/pause:3.10.1",
        "ports": [{"containerPort": 80}],
        "resources": {"limits": _REQUESTS, "requests": _REQUESTS},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "pod-"},
        "spec": {"containers": [container]},
    }


def nodes_of(operation: CreateNodes, template: Template | None, index: int) -> Iterator[Document]:
    """Nodes with their names and the labels that the operation of this index gives them."""
    count = operation.count
    for number in range(count):
        node = typed(template.render(number, count)) if template is not None else default_node()
        metadata = dict(node["metadata"])
        # The hostname label must be known before the server could generate a name.
        name = metadata.get("name") or f"{metadata.pop('generateName')}{index}-{number}"
        labels = dict(metadata.get("labels", {})) | {_HOSTNAME: name} | _labels(operation, number)
        node = node | {"metadata": metadata | {"name": name, "labels": labels}}
        if (strategy := operation.node_allocatable_strategy) is not None:
            status = node.get("status", {})
            allocatable = status.get("allocatable", status.get("capacity", {})) | strategy.node_allocatable
            node["status"] = status | {"allocatable": allocatable}
        yield node


def _labels(operation: CreateNodes, number: int) -> dict[str, str]:
    match operation.label_node_prepare_strategy or operation.unique_node_label_strategy:
        case LabelNodes(key, values):
            return {key: values[number % len(values)]}
        case UniqueNodeLabel(key):
            return {key: str(uuid.uuid4())}
    return {}


def csi_node(node: str, strategy: NodeAllocatable) -> Document:
    drivers = [
        {"name": driver, "nodeID": node, "allocatable": allocatable}
        for driver, allocatable in strategy.csi_node_allocatable.items()
    ]
    metadata = {"name": node, "annotations": {_MIGRATED: ",".join(strategy.migrated_plugins)}}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": metadata, "spec": {"drivers": drivers}}


def claim_and_volume(claim: Document, volume: Document, number: int, namespace: str) -> tuple[Document, Document]:
    """A claim and a volume that are bound to each other."""
    claim_name, volume_name = f"pvc-{number}", f"{namespace}-vol-{number}"
    spec = dict(volume["spec"])
    if "csi" in spec:
        spec["csi"] = spec["csi"] | {"volumeHandle": volume_name}
    elif "awsElasticBlockStore" in spec:
        spec["awsElasticBlockStore"] = spec["awsElasticBlockStore"] | {"volumeID": f"vol-{number}"}
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": claim_name}
    bound_claim = claim | {
        "metadata": claim.get("metadata", {}) | {"name": claim_name},
        "spec": claim["spec"] | {"volumeName": volume_name},
    }
    bound_volume = volume | {
        "metadata": volume.get("metadata", {}) | {"name": volume_name},
        "spec": spec | {"claimRef": reference},
    }
    return bound_claim, bound_volume


def with_claim(pod: Document, number: int) -> Document:
    """The pod with the claim of its number as its one volume."""
    volume = {"name": "vol", "persistentVolumeClaim": {"claimName": f"pvc-{number}"}}
    return pod | {"spec": pod["spec"] | {"volumes": [volume]}}


def typed(document: Document) -> Document:
    """Field names as the API has them. Upstream decodes pods and nodes into Go types, which match names regardless of
    case; the API server does not."""
    named: Document = _named_fields(document)
    return named


def _named_fields(value: Any) -> Any:
    if isinstance(value, list):
        return [_named_fields(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name[:1].lower() + name[1:]: part if name in _FREE_FORM else _named_fields(part) for name, part in value.items()
    }
