"""A workload's objects as an API server accepts them in a create.

The objects of `workloads` hold what a scheduler reads. A create has no uid and no version, and a few fields more: those
that validation requires, a grace period of zero so that no kubelet is needed for a deletion, and a PriorityClass in
place of a priority, which admission sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from mooring.bench.workloads import Workload
from mooring.objects import Kind, Node, Pod
from mooring.objects.meta import KubeObject

Document = dict[str, Any]
NAMESPACE = "mooring-bench"
OURS = "mooring.dev/bench"
"""The label of nodes and PriorityClasses of a benchmark, and of the pods that are there before: they outlive a run."""
PRIORITY_CLASSES = Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False)


def node_manifest(workload: Workload, number: int) -> Document:
    document = _document(workload.node(number))
    document["metadata"]["labels"] |= {OURS: "", "kubernetes.io/os": "linux"}
    return document


def incoming_manifest(workload: Workload, number: int) -> Document:
    return pod_manifest(workload.incoming(number), f"pod-{number:06d}")


def running_manifest(workload: Workload, number: int, nodes: int) -> Document:
    """A pod that is created on its node; the nodes take turns."""
    document = pod_manifest(workload.running(number), f"running-{number:06d}")
    document["metadata"].setdefault("labels", {})[OURS] = "running"
    document["spec"]["nodeName"] = workload.node(number % nodes).name
    return document


def pod_manifest(pod: Pod, name: str) -> Document:
    document = _document(pod)
    document["metadata"] |= {"name": name, "namespace": NAMESPACE}
    del document["status"]
    spec = document["spec"]
    spec["terminationGracePeriodSeconds"] = 0
    if (priority := spec.pop("priority", None)) is not None:
        spec["priorityClassName"] = priority_class_name(priority)
    for constraint in spec.get("topologySpreadConstraints", ()):
        constraint.setdefault("whenUnsatisfiable", "DoNotSchedule")
    return document


def other_manifests(workload: Workload) -> Iterator[tuple[Kind, Document]]:
    """What the workload needs besides nodes and pods: PriorityClasses, Services, claims, …"""
    priorities = {each.spec.priority for each in (workload.incoming(0), workload.running(0))}
    for priority in sorted(each for each in priorities if each is not None):
        yield PRIORITY_CLASSES, priority_class(priority)
    for item in workload.objects():
        document = _document(item)
        if item.KIND.namespaced:
            document["metadata"]["namespace"] = NAMESPACE
        if "claimRef" in document.get("spec", {}):
            document["spec"]["claimRef"]["namespace"] = NAMESPACE
        match item.KIND.kind:
            case "Service":
                document["spec"]["clusterIP"] = "None"
            case "CSINode":
                for driver in document["spec"]["drivers"]:
                    driver["nodeID"] = document["metadata"]["name"]
        yield item.KIND, document


def group_manifests(workload: Workload, pods: int) -> Iterator[tuple[Kind, Document]]:
    """The PodGroups of so many incoming pods."""
    for group in workload.groups(pods):
        document = _document(group)
        document["metadata"]["namespace"] = NAMESPACE
        yield group.KIND, document


def priority_class(priority: int) -> Document:
    name = priority_class_name(priority)
    kind = PRIORITY_CLASSES
    metadata = {"name": name, "labels": {OURS: ""}}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "value": priority}


def priority_class_name(priority: int) -> str:
    return f"{NAMESPACE}-{priority}"


def _document(item: KubeObject) -> Document:
    document: Document = {"apiVersion": item.KIND.api_version, "kind": item.KIND.kind, **msgspec.to_builtins(item)}
    for field in ("uid", "resourceVersion"):
        document["metadata"].pop(field, None)
    if not isinstance(item, Node | Pod):
        document.pop("status", None)
    return document
