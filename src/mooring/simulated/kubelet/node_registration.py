"""Node registration: the Node object of a simulated node, as its kubelet would create it.

`node_document` builds one; `registered_node` adds to a Node that was written by hand what its kubelet would have
added, and changes no field that is set.
"""

from __future__ import annotations

import ipaddress
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from mooring.base.clock import timestamp
from mooring.simulated.records import SIMULATED, Document

KUBELET_VERSION = "v1.36.4"
ZONES = ("zone-a", "zone-b", "zone-c")
REGION = "simulated"

_FIRST_NODE_ADDRESS = ipaddress.IPv4Address("172.16.0.2")
_POD_RANGE = ipaddress.IPv4Network("10.128.0.0/9")
_PODS_PER_RANGE = 256

DEFAULT_CAPACITY: Mapping[str, str] = {
    "cpu": "4",
    "ephemeral-storage": "100Gi",
    "hugepages-1Gi": "0",
    "hugepages-2Mi": "0",
    "memory": "16Gi",
    "pods": "110",
}


def node_document(
    name: str,
    *,
    ordinal: int = 0,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, Any]] = (),
    allocatable: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    zones: Sequence[str] = ZONES,
    now: float,
) -> Document:
    """A simulated Node. The ordinal determines its addresses and, round robin, its zone."""
    resources = {**DEFAULT_CAPACITY, "cpu": cpu, "memory": memory, "pods": str(pods), **(allocatable or {})}
    topology = {"topology.kubernetes.io/region": REGION}
    if zones:
        topology["topology.kubernetes.io/zone"] = zones[ordinal % len(zones)]
    node: Document = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": topology | dict(labels or {}), "annotations": dict(annotations or {})},
        "spec": {"taints": [dict(taint) for taint in taints]} if taints else {},
        "status": {"allocatable": resources},
    }
    return registered_node(node, ordinal=ordinal, now=now)


def registered_node(node: Document, *, ordinal: int, now: float) -> Document:
    """The Node with what its kubelet adds: labels, addresses, capacity, conditions, system information."""
    metadata = dict(node.get("metadata") or {})
    spec = dict(node.get("spec") or {})
    status = dict(node.get("status") or {})
    name = metadata.get("name", "")

    metadata["labels"] = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
    } | (metadata.get("labels") or {})
    metadata["annotations"] = {
        SIMULATED: "true",
        "node.alpha.kubernetes.io/ttl": "0",
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
    } | (metadata.get("annotations") or {})

    if not spec.get("podCIDR"):
        spec["podCIDR"] = pod_range(ordinal)
        spec["podCIDRs"] = [spec["podCIDR"]]

    resources = status.get("allocatable") or status.get("capacity") or DEFAULT_CAPACITY
    status["allocatable"] = dict(status.get("allocatable") or resources)
    status["capacity"] = dict(status.get("capacity") or resources)
    status.setdefault(
        "addresses",
        [{"type": "InternalIP", "address": node_address(ordinal)}, {"type": "Hostname", "address": name}],
    )
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 10250}})
    status.setdefault("nodeInfo", node_info(name))
    given = list(status.get("conditions") or [])
    named = {condition.get("type") for condition in given}
    status["conditions"] = given + [each for each in node_conditions(now) if each["type"] not in named]
    return {**node, "metadata": metadata, "spec": spec, "status": status}


def node_conditions(now: float) -> list[Document]:
    """A healthy node's conditions, in kubectl's order."""
    stamp = timestamp(now)
    return [
        {
            "type": type_,
            "status": status,
            "lastHeartbeatTime": stamp,
            "lastTransitionTime": stamp,
            "reason": reason,
            "message": message,
        }
        for type_, status, reason, message in (
            ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
            ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
            ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
        )
    ]


def node_info(name: str) -> Document:
    """System information: the version that is simulated, marked as such."""
    identity = uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}.simulated.mooring.dev")
    return {
        "machineID": identity.hex,
        "systemUUID": str(identity),
        "bootID": str(uuid.uuid5(identity, "boot")),
        "kernelVersion": "6.12.0-simulated",
        "osImage": "Simulated by Mooring",
        "containerRuntimeVersion": "containerd://2.1.0-simulated",
        "kubeletVersion": f"{KUBELET_VERSION}-simulated",
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }


def node_address(ordinal: int) -> str:
    return str(_FIRST_NODE_ADDRESS + ordinal)


def pod_range(ordinal: int) -> str:
    """The node's pod CIDR of 256 addresses. They repeat after 32,768 nodes, more than Kubernetes supports."""
    ranges = _POD_RANGE.num_addresses // _PODS_PER_RANGE
    first = _POD_RANGE.network_address + ordinal % ranges * _PODS_PER_RANGE
    return f"{first}/24"
