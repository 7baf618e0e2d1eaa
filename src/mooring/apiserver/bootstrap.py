"""The objects that exist before the first request."""

from __future__ import annotations

from mooring.apiserver.documents import Document, copied
from mooring.apiserver.registry import ResourceRegistry
from mooring.apiserver.strategies.priority_classes import SYSTEM_CLASSES

SYSTEM_DESCRIPTIONS = {
    "system-cluster-critical": "Used for system critical pods that must run in the cluster, but can be moved to"
    " another node if necessary.",
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
}
KUBERNETES_SERVICE: Document = {
    "metadata": {
        "name": "kubernetes",
        "namespace": "default",
        "labels": {"component": "apiserver", "provider": "kubernetes"},
    },
    "spec": {"ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}]},
}
AUTHENTICATION = "extension-apiserver-authentication"
"""Where other servers read which client authorities to trust. The embedded server has none, so it is empty."""
AUTHENTICATION_READER: Document = {
    "metadata": {"name": f"{AUTHENTICATION}-reader", "namespace": "kube-system"},
    "rules": [
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": [AUTHENTICATION],
            "verbs": ["get", "list", "watch"],
        }
    ],
}
NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


def create_initial_objects(registry: ResourceRegistry) -> None:
    for name in NAMESPACES:
        _create(registry, "v1", "namespaces", {"metadata": {"name": name}})
    _create(registry, "v1", "services", KUBERNETES_SERVICE)
    _create(registry, "v1", "configmaps", {"metadata": {"name": AUTHENTICATION, "namespace": "kube-system"}})
    _create(registry, "v1", "roles", AUTHENTICATION_READER, "rbac.authorization.k8s.io")
    for name, value in SYSTEM_CLASSES.items():
        document = {"metadata": {"name": name}, "value": value, "description": SYSTEM_DESCRIPTIONS[name]}
        _create(registry, "v1", "priorityclasses", document, "scheduling.k8s.io")


def _create(registry: ResourceRegistry, version: str, plural: str, document: Document, group: str = "") -> None:
    row = registry.table.find(group, version, plural)
    assert row is not None
    namespace = document["metadata"].get("namespace", "")
    registry.create(row, namespace, {"apiVersion": row.api_version, "kind": row.kind, **copied(document)})
