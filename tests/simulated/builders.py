"""Objects as the simulated cluster sees them; a case states only what matters to it."""

from __future__ import annotations

from typing import Any

import msgspec

from mooring.base.clock import timestamp
from mooring.simulated.controllers.workload_records import Deployment, ReplicaSet
from mooring.simulated.records import NodeRecord, PodRecord

NOW = 1_700_000_000.0


def a_pod(name: str = "web", *, ready: bool | None = None, node: str = "", phase: str = "", **more: Any) -> PodRecord:
    conditions = []
    if ready is not None:
        stamp = timestamp(more.get("ready_at", NOW))
        conditions.append({"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": stamp})
    document: dict[str, Any] = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": more.get("uid", f"uid-{name}"),
            "generation": more.get("generation", 0),
            "resourceVersion": more.get("version", "1"),
            "labels": more.get("labels", {"app": "web"}),
            "annotations": more.get("annotations", {}),
            "ownerReferences": more.get("owners", []),
            "creationTimestamp": timestamp(more.get("created_at", NOW)),
        },
        "spec": {
            "nodeName": node,
            "containers": more.get("containers", [{"name": "app", "image": "nginx:1.27"}]),
            "initContainers": more.get("init_containers", []),
            "restartPolicy": more.get("restart_policy", "Always"),
            "hostNetwork": more.get("host_network", False),
            "readinessGates": [{"conditionType": gate} for gate in more.get("gates", ())],
        },
        "status": {"phase": phase, "conditions": conditions + more.get("conditions", [])} | more.get("status", {}),
    }
    if more.get("terminating"):
        document["metadata"]["deletionTimestamp"] = timestamp(NOW)
    return msgspec.convert(document, PodRecord)


def a_node(name: str = "node-1", **more: Any) -> NodeRecord:
    document = {
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {"podCIDR": more.get("pod_cidr", "10.128.0.0/24")},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "172.16.0.2"}],
            "images": [{"names": [image], "sizeBytes": 1} for image in more.get("images", ())],
        },
    }
    return msgspec.convert(document, NodeRecord)


TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "app", "image": "nginx:1.27"}]},
}


def a_replica_set(name: str = "web", replicas: int = 1, available: int | None = None, **more: Any) -> ReplicaSet:
    template = more.get("template", TEMPLATE)
    running = replicas if available is None else more.get("running", available)
    document = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "generation": 1,
            "labels": more.get("labels", {}),
            "annotations": more.get("annotations", {}),
            "creationTimestamp": timestamp(more.get("created_at", NOW)),
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template,
            "minReadySeconds": more.get("min_ready_seconds", 0),
        },
        "status": {"replicas": running, "availableReplicas": running if available is None else available},
    }
    return msgspec.convert(document, ReplicaSet)


def a_deployment(name: str = "web", replicas: int = 1, **more: Any) -> Deployment:
    document = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "generation": more.get("generation", 1),
            "annotations": more.get("annotations", {}),
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": more.get("template", TEMPLATE),
            "paused": more.get("paused", False),
            "revisionHistoryLimit": more.get("history", 10),
            "strategy": more.get("strategy", {"type": "RollingUpdate"}),
        },
        "status": more.get("status", {}),
    }
    return msgspec.convert(document, Deployment)
