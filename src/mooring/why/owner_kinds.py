"""Owners of pods: the kinds whose pods are explained together, and which one a pod has."""

from __future__ import annotations

from mooring.framework import Pod

OWNER_KINDS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("deployment", "deployments", "deploy"), ("apps/v1", "Deployment")),
    **dict.fromkeys(("replicaset", "replicasets", "rs"), ("apps/v1", "ReplicaSet")),
    **dict.fromkeys(("statefulset", "statefulsets", "sts"), ("apps/v1", "StatefulSet")),
    **dict.fromkeys(("daemonset", "daemonsets", "ds"), ("apps/v1", "DaemonSet")),
    **dict.fromkeys(("job", "jobs"), ("batch/v1", "Job")),
    **dict.fromkeys(("cronjob", "cronjobs", "cj"), ("batch/v1", "CronJob")),
    **dict.fromkeys(("replicationcontroller", "replicationcontrollers", "rc"), ("v1", "ReplicationController")),
}
"""apiVersion and kind, by the names that kubectl takes."""
STAYS = ("DaemonSet", "Node")
"""Pods of these owners come back at once, on the same node."""


def owner_of(pod: Pod) -> str | None:
    """`Deployment/web`: its controller; of a ReplicaSet that a Deployment made, the Deployment."""
    for reference in pod.metadata.owner_references:
        if reference.controller:
            # The Deployment's controller names its ReplicaSets so, and labels their pods with what follows the dash.
            suffix = f"-{pod.labels.get('pod-template-hash', '')}"
            if reference.kind == "ReplicaSet" and len(suffix) > 1 and reference.name.endswith(suffix):
                return f"Deployment/{reference.name.removesuffix(suffix)}"
            return f"{reference.kind}/{reference.name}"
    return None
