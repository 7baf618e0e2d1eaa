"""A scheduler in a cluster: the objects that run it beside the cluster's own, with the rights it needs and no others.

The same objects serve a second scheduler and shadow mode; they differ in flags and rights. In place of kube-scheduler
it is a static pod: `static_pod`. What is decided here is the shape; `planned` decides names, flags and rights.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from mooring.deploy.network import Ingress
from mooring.deploy.rights import Right
from mooring.deploy.rules import rules_of
from mooring.deploy.writing import Document

RBAC = "rbac.authorization.k8s.io"
PORT = 10259
CONFIG_FOLDER, CONFIG_KEY = "/etc/mooring", "config.yaml"
PLUGINS_FOLDER = "/etc/mooring-plugins"
TEMPORARY_FOLDER = "/tmp"
"""All that can be written: keys on their way into TLS, and the socket that `mooring explain` connects to."""
USER_ID = 65532
"""The unprivileged user of the image."""
AUTHENTICATION_READER = "extension-apiserver-authentication-reader"
"""Every cluster has this role in kube-system: to read which client CAs are trusted."""
SYSTEM_NAMESPACE = "kube-system"
EXISTING_NAMESPACES = (SYSTEM_NAMESPACE, "default", "kube-public", "kube-node-lease")
POD_SECURITY = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
"""Of a namespace that is ours alone: nothing may run there with more rights on its node than the scheduler has."""


@dataclass(frozen=True)
class Memory:
    """Of the container. About 140 MB are used at 5,000 nodes, and a few kilobytes more with each pod."""

    request: str = "256Mi"
    limit: str = "2Gi"


class Mode(Enum):
    """Its relation to the cluster's own scheduler."""

    SECOND_SCHEDULER = "second-scheduler"
    REPLACEMENT = "replacement"
    SHADOW = "shadow"


@dataclass(frozen=True)
class Deployed:
    """All that the objects are made from."""

    name: str
    namespace: str
    image: str
    config: str
    """The configuration's text."""
    flags: tuple[str, ...]
    """After `--config` and `--plugins` of what is mounted."""
    rights: tuple[Right, ...]
    plugins: Mapping[str, str] = field(default_factory=dict)
    """Plugin files that a ConfigMap holds, by name."""
    holds_credentials: bool = False
    """Whether the configuration goes into a Secret: far more people and programs may read ConfigMaps."""
    replicas: int = 1
    elects: bool = False
    reads_authentication: bool = True
    """Whether it authenticates client certificates and tokens by the cluster."""
    memory: Memory = field(default_factory=Memory)
    ingress: Ingress | None = field(default_factory=Ingress)
    """The sources that may connect to the serving port; None: no NetworkPolicy."""

    @property
    def arguments(self) -> list[str]:
        mounted = [f"--plugins={PLUGINS_FOLDER}"] if self.plugins else []
        return [f"--config={CONFIG_FOLDER}/{CONFIG_KEY}", *mounted, *self.flags]

    @property
    def selector(self) -> dict[str, str]:
        return {"app.kubernetes.io/name": "mooring", "app.kubernetes.io/instance": self.name}

    @property
    def labels(self) -> dict[str, str]:
        return self.selector | {"app.kubernetes.io/component": "scheduler"}

    @property
    def checksum(self) -> str:
        """Changes with the mounted files, so that a changed one starts new pods."""
        files = [self.config, *(f"{name}\n{text}" for name, text in sorted(self.plugins.items()))]
        return hashlib.sha256("\n".join(files).encode()).hexdigest()

    @property
    def resources(self) -> Document:
        # No limit of CPU: being throttled would delay every pod in the cluster.
        return {"requests": {"cpu": "100m", "memory": self.memory.request}, "limits": {"memory": self.memory.limit}}


def manifests(deployed: Deployed) -> list[Document]:
    """The objects, in the order in which they can be created."""
    found: list[Document] = []
    if deployed.namespace not in EXISTING_NAMESPACES:
        metadata = {"name": deployed.namespace, "labels": dict(POD_SECURITY)}
        found.append({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    account = _object(deployed, "v1", "ServiceAccount") | {"automountServiceAccountToken": False}
    found += [account, *_access(deployed), *_config_maps(deployed)]
    if deployed.ingress is not None:
        spec = deployed.ingress.spec(deployed.selector, PORT)
        found.append(_object(deployed, "networking.k8s.io/v1", "NetworkPolicy") | {"spec": spec})
    return [*found, _deployment(deployed), _budget(deployed)]


def _object(deployed: Deployed, api_version: str, kind: str, name: str = "") -> Document:
    metadata = {"name": name or deployed.name, "namespace": deployed.namespace, "labels": deployed.labels}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _access(deployed: Deployed) -> list[Document]:
    subject = {"kind": "ServiceAccount", "name": deployed.name, "namespace": deployed.namespace}
    found = access(f"mooring:{deployed.name}", deployed.rights, subject, deployed.labels)
    if deployed.reads_authentication:
        metadata = {
            "name": f"mooring:{deployed.name}:authentication",
            "namespace": SYSTEM_NAMESPACE,
            "labels": deployed.labels,
        }
        found.append(_binding("RoleBinding", metadata, "Role", AUTHENTICATION_READER, subject))
    return found


def access(name: str, rights: tuple[Right, ...], subject: Document, labels: Mapping[str, str]) -> list[Document]:
    """Roles for these rights, each with its binding to the subject: one for the cluster, one for each namespace."""
    found: list[Document] = []
    for namespace, rules in rules_of(rights).items():
        metadata: Document = {"name": name}
        if namespace:
            metadata["namespace"] = namespace
        metadata["labels"] = dict(labels)
        kind = "Role" if namespace else "ClusterRole"
        found.append({"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata, "rules": list(rules)})
        found.append(_binding(f"{kind}Binding", metadata, kind, name, subject))
    return found


def _binding(kind: str, metadata: Document, role_kind: str, role: str, subject: Document) -> Document:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": kind,
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": role_kind, "name": role},
        "subjects": [subject],
    }


def _config_maps(deployed: Deployed) -> list[Document]:
    kind, field = ("Secret", "stringData") if deployed.holds_credentials else ("ConfigMap", "data")
    found = [_object(deployed, "v1", kind) | {field: {CONFIG_KEY: deployed.config}}]
    if deployed.plugins:
        plugins = _object(deployed, "v1", "ConfigMap", f"{deployed.name}-plugins")
        found.append(plugins | {"data": dict(sorted(deployed.plugins.items()))})
    return found


def _deployment(deployed: Deployed) -> Document:
    # Without an election two at a time would both bind pods, so the old one ends first.
    strategy = "RollingUpdate" if deployed.elects else "Recreate"
    template = {
        "metadata": {"labels": deployed.labels, "annotations": {"checksum/config": deployed.checksum}},
        "spec": _pod(deployed),
    }
    spec = {
        "replicas": deployed.replicas,
        "strategy": {"type": strategy},
        "selector": {"matchLabels": deployed.selector},
        "template": template,
    }
    return _object(deployed, "apps/v1", "Deployment") | {"spec": spec}


def _pod(deployed: Deployed) -> Document:
    source = {"secret": {"secretName": deployed.name}} if deployed.holds_credentials else None
    volumes: list[Document] = [{"name": "config", **(source or {"configMap": {"name": deployed.name}})}]
    if deployed.plugins:
        volumes.append({"name": "plugins", "configMap": {"name": f"{deployed.name}-plugins"}})
    volumes.append({"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}})
    return {
        "serviceAccountName": deployed.name,
        "automountServiceAccountToken": True,
        "priorityClassName": "system-cluster-critical",
        "affinity": apart(deployed.selector),
        "securityContext": dict(_POD_CONTEXT),
        "containers": [_container(deployed)],
        "volumes": volumes,
    }


def apart(selector: Mapping[str, str]) -> Document:
    """Replicas on different nodes, if that is possible."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": dict(selector)}}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


_POD_CONTEXT: Document = {
    "runAsNonRoot": True,
    "runAsUser": USER_ID,
    "runAsGroup": USER_ID,
    "fsGroup": USER_ID,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_CONTAINER_CONTEXT: Document = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def locked_down(account: str, container: Document) -> Document:
    """A pod with one container, this account and no rights on its node."""
    return {
        "serviceAccountName": account,
        "automountServiceAccountToken": True,
        "securityContext": dict(_POD_CONTEXT),
        "containers": [container | {"securityContext": dict(_CONTAINER_CONTEXT)}],
    }


def _container(deployed: Deployed) -> Document:
    mounts: list[Document] = [{"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True}]
    if deployed.plugins:
        mounts.append({"name": "plugins", "mountPath": PLUGINS_FOLDER, "readOnly": True})
    mounts.append({"name": "tmp", "mountPath": TEMPORARY_FOLDER})
    return {
        "name": "mooring",
        "image": deployed.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["mooring", "run"],
        "args": deployed.arguments,
        # Events about a reloaded configuration are about this pod.
        "env": [_of_the_pod("POD_NAME", "metadata.name"), _of_the_pod("POD_NAMESPACE", "metadata.namespace")],
        "ports": [{"name": "https", "containerPort": PORT}],
        **health_probes(),
        "resources": deployed.resources,
        "securityContext": dict(_CONTAINER_CONTEXT),
        "volumeMounts": mounts,
    }


def _of_the_pod(name: str, field: str) -> Document:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}}


def health_probes() -> dict[str, Any]:
    return {
        "startupProbe": _probe("/livez", period=5, failures=24),
        "livenessProbe": _probe("/livez", period=10, failures=8),
        "readinessProbe": _probe("/readyz", period=5, failures=3),
    }


def _probe(path: str, *, period: int, failures: int) -> dict[str, Any]:
    http_get = {"path": path, "port": "https", "scheme": "HTTPS"}
    return {"httpGet": http_get, "periodSeconds": period, "timeoutSeconds": 15, "failureThreshold": failures}


def _budget(deployed: Deployed) -> Document:
    # At most one away: two of an election stay one at least, and a lone one does not keep a node from being drained.
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": deployed.selector}}
    return _object(deployed, "policy/v1", "PodDisruptionBudget") | {"spec": spec}
