"""The status that a kubelet reports of a running or completed pod. Pure: a pod, addresses and a time in, a status out.

A status is the body of one strategic merge patch. It has all fields that the kubelet owns and no others: PodScheduled,
the QoS class and the nomination stay as they are.
"""

from __future__ import annotations

import hashlib
from typing import Any

from mooring.base.clock import timestamp
from mooring.simulated.records import RUN_SECONDS, ContainerRecord, Document, PodRecord

COMPLETED = "Completed"
POD_COMPLETED = "PodCompleted"
GATES_NOT_READY = "ReadinessGatesNotReady"


def running_status(pod: PodRecord, *, host_ip: str, pod_ip: str, now: float) -> Document:
    """All containers run and are ready; init containers have completed, sidecars run."""
    stamp = timestamp(now)
    missing = _closed_gates(pod)
    status: Document = _observed(pod) | {
        "phase": "Running",
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "podIP": pod_ip,
        "podIPs": [{"ip": pod_ip}],
        "startTime": pod.status.start_time or stamp,
        "conditions": _conditions(
            pod,
            stamp,
            ("PodReadyToStartContainers", True, "", ""),
            ("Initialized", True, "", ""),
            ("Ready", not missing, GATES_NOT_READY if missing else "", missing),
            ("ContainersReady", True, "", ""),
        ),
        "containerStatuses": [_running(pod, container, stamp) for container in pod.spec.containers],
    }
    if pod.spec.init_containers:
        status["initContainerStatuses"] = [
            _running(pod, container, stamp) if container.is_sidecar else _terminated(pod, container, stamp, stamp)
            for container in pod.spec.init_containers
        ]
    return status


def completed_status(pod: PodRecord, *, now: float) -> Document:
    """All containers of a running pod have completed."""
    stamp = timestamp(now)
    started = pod.status.start_time or stamp
    ended: Document = _observed(pod) | {
        "phase": "Succeeded",
        "conditions": _conditions(
            pod,
            stamp,
            ("PodReadyToStartContainers", False, "", ""),
            ("Initialized", True, POD_COMPLETED, ""),
            ("Ready", False, POD_COMPLETED, ""),
            ("ContainersReady", False, POD_COMPLETED, ""),
        ),
        "containerStatuses": [
            _terminated(pod, container, started, stamp, ready=False) for container in pod.spec.containers
        ],
    }
    if pod.spec.init_containers:
        ended["initContainerStatuses"] = [
            _terminated(pod, container, started, stamp if container.is_sidecar else started)
            for container in pod.spec.init_containers
        ]
    return ended


def needs_start(pod: PodRecord) -> bool:
    """Bound, active, and not yet reported as running."""
    return bool(pod.spec.node_name) and pod.is_active and pod.status.phase in ("", "Pending")


def gates_changed(pod: PodRecord) -> bool:
    """Whether a readiness gate changed since Ready was last reported."""
    if not pod.spec.readiness_gates or pod.status.phase != "Running":
        return False
    return (pod.ready_since is not None) == bool(_closed_gates(pod))


def run_seconds(pod: PodRecord) -> float | None:
    """How long the pod runs before it completes; None: for ever, also where the annotation is not a number."""
    if pod.spec.restart_policy == "Always":
        return None
    try:
        seconds = float(pod.metadata.annotations.get(RUN_SECONDS, ""))
    except ValueError:
        return None
    return seconds if seconds >= 0 else None


def container_id(pod_uid: str, container: str) -> str:
    return "containerd://" + hashlib.sha256(f"{pod_uid}/{container}".encode()).hexdigest()


def image_id(image: str) -> str:
    """The image by digest: the one in the name, or else a stable one that is derived from the name."""
    name, at, digest = image.partition("@")
    if at:
        return f"{name}@{digest}"
    head, colon, tag = name.rpartition(":")
    repository = head if colon and "/" not in tag else name
    return f"{repository}@sha256:{hashlib.sha256(name.encode()).hexdigest()}"


def image_bytes(image: str) -> int:
    """A simulated size between 5 and 205 MB, stable per image."""
    return 5_000_000 + int.from_bytes(hashlib.sha256(image.encode()).digest()[:4], "big") % 200_000_000


def always_pulls(container: ContainerRecord) -> bool:
    """The container's pull policy, or Kubernetes' default: `Always` for `:latest` or no tag."""
    if container.image_pull_policy:
        return container.image_pull_policy == "Always"
    name, at, _ = container.image.partition("@")
    _, colon, tag = name.rpartition(":")
    return not at and (not colon or "/" in tag or tag == "latest")


def _observed(pod: PodRecord) -> Document:
    """The generation that the status was computed from; absent on servers without pod generations."""
    return {"observedGeneration": pod.metadata.generation} if pod.metadata.generation else {}


def _conditions(pod: PodRecord, stamp: str, *stated: tuple[str, bool, str, str]) -> list[Document]:
    """Conditions keep their transition time while their status does not change."""
    known = {condition.type: condition for condition in pod.status.conditions}
    conditions: list[Document] = []
    for type_, holds, reason, message in stated:
        status = "True" if holds else "False"
        before = known.get(type_)
        kept = before is not None and before.status == status and before.last_transition_time
        condition: Document = {"type": type_, "status": status}
        condition["lastTransitionTime"] = before.last_transition_time if kept and before else stamp
        condition |= _observed(pod)
        for field, text, earlier in (
            ("reason", reason, before.reason if before else ""),
            ("message", message, before.message if before else ""),
        ):
            if text or earlier:
                condition[field] = text or None  # null clears in a patch: an earlier reason must not survive
        conditions.append(condition)
    return conditions


def _closed_gates(pod: PodRecord) -> str:
    """The kubelet's message about readiness gates that are not met; empty when all are."""
    conditions = {condition.type: condition.status for condition in pod.status.conditions}
    reasons = []
    for gate in pod.spec.readiness_gates:
        if gate.condition_type not in conditions:
            reasons.append(f'corresponding condition of pod readiness gate "{gate.condition_type}" does not exist.')
        elif conditions[gate.condition_type] != "True":
            status = conditions[gate.condition_type]
            reasons.append(f'the status of pod readiness gate "{gate.condition_type}" is not "True", but {status}')
    return ", ".join(reasons)


def _running(pod: PodRecord, container: ContainerRecord, stamp: str) -> Document:
    return _container(pod, container, {"running": {"startedAt": stamp}}, ready=True, started=True)


def _terminated(pod: PodRecord, container: ContainerRecord, start: str, end: str, *, ready: bool = True) -> Document:
    """A completed container. Init containers count as ready then, regular ones do not."""
    state = {
        "terminated": {
            "exitCode": 0,
            "reason": COMPLETED,
            "startedAt": start,
            "finishedAt": end,
            "containerID": container_id(pod.uid, container.name),
        }
    }
    return _container(pod, container, state, ready=ready, started=False)


def _container(
    pod: PodRecord, container: ContainerRecord, state: dict[str, Any], *, ready: bool, started: bool
) -> Document:
    status: Document = {
        "name": container.name,
        "state": state,
        "lastState": {},
        "ready": ready,
        "started": started,
        "restartCount": 0,
        "image": container.image,
        "imageID": image_id(container.image),
        "containerID": container_id(pod.uid, container.name),
    }
    if container.resources:
        status["resources"] = container.resources
        if requests := container.resources.get("requests"):
            status["allocatedResources"] = requests
    return status
