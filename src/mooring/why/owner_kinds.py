"""The kinds whose pods are explained together, as kubectl takes their names."""

from __future__ import annotations

OWNER_KINDS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("deployment", "deployments", "deploy"), ("apps/v1", "Deployment")),
    **dict.fromkeys(("replicaset", "replicasets", "rs"), ("apps/v1", "ReplicaSet")),
    **dict.fromkeys(("statefulset", "statefulsets", "sts"), ("apps/v1", "StatefulSet")),
    **dict.fromkeys(("daemonset", "daemonsets", "ds"), ("apps/v1", "DaemonSet")),
    **dict.fromkeys(("job", "jobs"), ("batch/v1", "Job")),
    **dict.fromkeys(("cronjob", "cronjobs", "cj"), ("batch/v1", "CronJob")),
    **dict.fromkeys(("replicationcontroller", "replicationcontrollers", "rc"), ("v1", "ReplicationController")),
}
"""apiVersion and kind."""
