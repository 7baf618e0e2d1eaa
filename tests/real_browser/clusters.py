"""Clusters that browser tests look at: a shop with pending pods of many causes, and one with thousands of nodes."""

import json
from pathlib import Path
from typing import Any

ZONES = ("zone-a", "zone-b", "zone-c")

SHOP = """\
apiVersion: mooring.dev/v1alpha1
kind: SimulatedNodes
count: 12
namePrefix: web-
labels: {pool: web}
allocatable: {cpu: "8", memory: 32Gi, pods: "110"}
---
apiVersion: mooring.dev/v1alpha1
kind: SimulatedNodes
count: 6
namePrefix: data-
labels: {pool: data, disk: ssd}
allocatable: {cpu: "32", memory: 256Gi, pods: "110"}
---
apiVersion: mooring.dev/v1alpha1
kind: SimulatedNodes
count: 4
namePrefix: gpu-
labels: {pool: gpu, accelerator: h100}
taints: [{key: gpu, value: "true", effect: NoSchedule}]
allocatable: {cpu: "64", memory: 512Gi, nvidia.com/gpu: "8", pods: "110"}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: important}
value: 1000
---
"""


def deployment(
    namespace: str, name: str, replicas: int, requests: dict[str, str], *, template: dict[str, Any] | None = None
) -> str:
    """A Deployment as a document of a cluster file."""
    spec = {"containers": [{"name": "main", "image": f"{name}:1", "resources": {"requests": requests}}]}
    document = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec | (template or {})},
        },
    }
    return json.dumps(document) + "\n---\n"


def gpus(number: int) -> dict[str, str]:
    """Requests of a pod that trains; its device plugin wants the limit as well."""
    return {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": str(number)}


def _on(pool: str) -> dict[str, Any]:
    return {"nodeSelector": {"pool": pool}}


def _training(number: int) -> dict[str, Any]:
    resources = {"requests": gpus(number), "limits": {"nvidia.com/gpu": str(number)}}
    return {
        "containers": [{"name": "main", "image": "train:1", "resources": resources}],
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    }


SPREAD = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "frontend"}},
        }
    ]
}


def shop() -> str:
    """22 nodes in three zones and pools, about ninety pods; six pods pend, for five causes."""
    return SHOP + "".join(
        [
            deployment("shop", "frontend", 24, {"cpu": "500m", "memory": "1Gi"}, template=SPREAD | _on("web")),
            deployment("shop", "cart", 12, {"cpu": "1", "memory": "2Gi"}, template=_on("web")),
            deployment("shop", "search", 8, {"cpu": "2", "memory": "6Gi"}, template=_on("web")),
            deployment("data", "postgres", 6, {"cpu": "8", "memory": "64Gi"}, template=_on("data")),
            deployment("data", "cache", 12, {"cpu": "2", "memory": "24Gi"}, template=_on("data")),
            deployment("data", "reports", 20, {"cpu": "750m", "memory": "1Gi"}),
            deployment("ml", "train", 5, {}, template=_training(4)),
            deployment("ml", "serve", 2, {}, template=_training(2)),
            # These wait.
            deployment("data", "warehouse", 2, {"cpu": "48", "memory": "384Gi"}),
            deployment("ml", "tune", 1, {}, template=_training(16)),
            deployment("ml", "notebook", 1, {"nvidia.com/gpu": "1"}, template=_untolerated()),
            deployment("shop", "legacy", 1, {"cpu": "100m"}, template={"nodeSelector": {"disk": "hdd"}}),
            deployment(
                "shop", "held", 1, {"cpu": "100m"}, template={"schedulingGates": [{"name": "example.com/approval"}]}
            ),
        ]
    )


def _untolerated() -> dict[str, Any]:
    return {key: value for key, value in _training(1).items() if key != "tolerations"}


def write_many(path: Path, *, nodes: int = 5000, pods: int = 20_000, pending: int = 200) -> Path:
    """A cluster as `kubectl get nodes,pods -A -o json` prints it: pods run on nodes in turn, some fit nowhere."""
    items = [_node(number) for number in range(nodes)]
    items += [_pod(f"web-{number}", number, f"node-{number % nodes}") for number in range(pods)]
    items += [_pod(f"huge-{number}", number, None) for number in range(pending)]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
    return path


def _metadata(name: str, number: int, **more: Any) -> dict[str, Any]:
    created = "2026-01-01T00:00:00Z"
    return {"name": name, "uid": f"{name}-{number}", "creationTimestamp": created, "resourceVersion": "1"} | more


def _node(number: int) -> dict[str, Any]:
    cpu, memory = ((8, 32), (16, 64), (64, 256))[number % 3]
    amounts = {"cpu": str(cpu), "memory": f"{memory}Gi", "pods": "110"}
    labels = {
        "kubernetes.io/hostname": f"node-{number}",
        "topology.kubernetes.io/zone": ZONES[number % 7 % 3],
        "pool": ("web", "data", "batch")[number % 3],
    }
    taints = [{"key": "gpu", "value": "true", "effect": "NoSchedule"}] if number % 50 == 0 else []
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _metadata(f"node-{number}", number, labels=labels),
        "spec": {"taints": taints},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def _pod(name: str, number: int, node: str | None) -> dict[str, Any]:
    cpu = f"{100 + number * 37 % 1900}m" if node else "1000"
    requests = {"cpu": cpu, "memory": f"{1 + number % 5}Gi"}
    container = {"name": "main", "image": "web:1", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(name, number, namespace="shop", labels={"app": name.split("-")[0]}),
        "spec": {"containers": [container]} | ({"nodeName": node} if node else {}),
        "status": {"phase": "Running" if node else "Pending"},
    }
