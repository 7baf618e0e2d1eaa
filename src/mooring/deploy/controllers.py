"""`mooring controllers` in a cluster: one pod that keeps the status of PodGroups and ElasticQuotas, and its rights.

One replica, and the old one ends before the new one starts. Two at once would do no harm: each write of a status
requires the version that was read.
"""

from __future__ import annotations

from dataclasses import replace

from mooring.deploy.manifests import Deployed, access, locked_down
from mooring.deploy.rights import Right
from mooring.deploy.writing import Document

GROUP = "scheduling.x-k8s.io"
RESOURCES = ("podgroups", "elasticquotas")
"""Those with a status that is kept."""
READ = (
    ("", "pods"),
    ("", "nodes"),
    *((GROUP, resource) for resource in RESOURCES),
    ("scheduling.k8s.io", "podgroups"),
    ("topology.node.k8s.io", "noderesourcetopologies"),
)
_NEEDED_BY = frozenset({"mooring controllers"})


def controller_rights() -> tuple[Right, ...]:
    wanted = [(group, resource, verb) for group, resource in READ for verb in ("list", "watch")]
    wanted += [("", "events", verb) for verb in ("create", "patch")]
    wanted += [(GROUP, f"{resource}/status", "patch") for resource in RESOURCES]
    return tuple(Right(group, resource, verb, needed_by=_NEEDED_BY) for group, resource, verb in wanted)


def controller_manifests(deployed: Deployed) -> list[Document]:
    """Beside this scheduler: an account, its rights, and a Deployment."""
    deployed = replace(deployed, name=f"{deployed.name}-controllers")
    labels = deployed.selector | {"app.kubernetes.io/component": "controllers"}
    metadata = {"name": deployed.name, "namespace": deployed.namespace, "labels": labels}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    subject = {"kind": "ServiceAccount", "name": deployed.name, "namespace": deployed.namespace}
    container = {
        "name": "controllers",
        "image": deployed.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["mooring", "controllers"],
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": deployed.memory.limit}},
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    pod = locked_down(deployed.name, container) | {"volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "16Mi"}}]}
    spec = {
        "replicas": 1,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": deployed.selector},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    return [
        account | {"automountServiceAccountToken": False},
        *access(f"mooring:{deployed.name}", controller_rights(), subject, labels),
        deployment,
    ]
