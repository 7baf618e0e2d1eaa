"""Documents for tests: a case states only what matters to it."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"


def a_pod(
    name: str = "web", *, labels: Document | None = None, container: Document | None = None, **spec: Any
) -> Document:
    metadata: Document = {"name": name, "namespace": "default"}
    if labels:
        metadata["labels"] = labels
    containers = [{"name": "main", "image": "registry.test/app:1", **(container or {})}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def a_node(name: str = "node-1", *, labels: Document | None = None, **spec: Any) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec,
        "status": {
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def a_deployment(name: str = "web", **spec: Any) -> Document:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "app:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


def a_config_map(name: str = "settings", *, labels: Document | None = None, **data: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": labels or {}},
        "data": data,
    }


def a_priority_class(name: str, value: int, **fields: Any) -> Document:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **fields,
    }


def a_binding(pod: str = "web", node: str = "node-1", **metadata: Any) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod, **metadata},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
