"""`mooring controllers` in a cluster: it keeps the status of PodGroups and ElasticQuotas, reports objects that cannot
work, and has an account and rights of its own.

Two replicas, one of which holds the lease and writes.
"""

from __future__ import annotations

from mooring.config import LeaderElection
from mooring.deploy.manifests import PORT, Deployed, access, apart, health_probes, locked_down
from mooring.deploy.rights import Right, election_rights
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
REPLICAS = 2
_NEEDED_BY = frozenset({"mooring controllers"})


def controllers_name(scheduler: str) -> str:
    """Of the Deployment, its account and its lease."""
    return f"{scheduler}-controllers"


def controller_flags(scheduler: str) -> tuple[str, ...]:
    return f"--secure-port={PORT}", f"--leader-elect-resource-name={controllers_name(scheduler)}", "--v=2"


def controller_rights(scheduler: str) -> tuple[Right, ...]:
    wanted = [(group, resource, verb) for group, resource in READ for verb in ("list", "watch")]
    wanted += [("", "events", verb) for verb in ("create", "patch")]
    wanted += [(GROUP, f"{resource}/status", "patch") for resource in RESOURCES]
    rights = [Right(group, resource, verb, needed_by=_NEEDED_BY) for group, resource, verb in wanted]
    return *rights, *election_rights(LeaderElection(resource_name=controllers_name(scheduler)))


def controller_resources(deployed: Deployed) -> Document:
    return {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": deployed.memory.limit}}


def controller_manifests(deployed: Deployed) -> list[Document]:
    """Beside this scheduler: an account, its rights, and a Deployment."""
    name = controllers_name(deployed.name)
    selector = deployed.selector | {"app.kubernetes.io/instance": name}
    labels = selector | {"app.kubernetes.io/component": "controllers"}
    metadata = {"name": name, "namespace": deployed.namespace, "labels": labels}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": deployed.namespace}
    container = {
        "name": "controllers",
        "image": deployed.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["mooring", "controllers"],
        "args": list(controller_flags(deployed.name)),
        "ports": [{"name": "https", "containerPort": PORT}],
        **health_probes(),
        "resources": controller_resources(deployed),
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    tmp = {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}
    spec = {
        "replicas": REPLICAS,
        "selector": {"matchLabels": selector},
        "template": {
            "metadata": {"labels": labels},
            "spec": locked_down(name, container) | {"affinity": apart(selector), "volumes": [tmp]},
        },
    }
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    return [
        account | {"automountServiceAccountToken": False},
        *access(f"mooring:{name}", controller_rights(deployed.name), subject, labels),
        deployment,
    ]
