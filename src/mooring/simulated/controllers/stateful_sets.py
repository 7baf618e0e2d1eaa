"""What a sync of a StatefulSet does: which ordinals to create, which pods to delete, and its status. Pure.

A sync computes one step; the controller executes it and syncs again when the cluster has changed. OrderedReady sets
wait for every pod before the next, Parallel ones do not. An update replaces one pod at a time, from the highest ordinal
down to the partition.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mooring.simulated.controllers.controller_history import template_in
from mooring.simulated.controllers.pod_templates import pod_from_template
from mooring.simulated.controllers.replica_sets import BURST, is_available
from mooring.simulated.controllers.stateful_claims import volumes_of
from mooring.simulated.controllers.workload_records import ControllerRevision, StatefulSet
from mooring.simulated.records import Document, PodRecord

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"
REVISION = "controller-revision-hash"
"""The label of a pod that names its revision."""

_NAME = re.compile(r"(.*)-([0-9]{1,10})")


@dataclass(frozen=True)
class StatefulStep:
    """What a sync does."""

    create: tuple[int, ...] = ()
    """Ordinals."""
    delete: tuple[PodRecord, ...] = ()


def ordinal_of(owner: StatefulSet, pod: PodRecord) -> int | None:
    """The pod's ordinal; None: its name has none."""
    match = _NAME.fullmatch(pod.name)
    return int(match[2]) if match is not None and match[1] == owner.name else None


def by_ordinal(owner: StatefulSet, pods: Sequence[PodRecord]) -> dict[int, PodRecord]:
    places = ((ordinal_of(owner, pod), pod) for pod in pods)
    return {ordinal: pod for ordinal, pod in places if ordinal is not None}


def next_step(owner: StatefulSet, pods: Sequence[PodRecord], update: str, now: float) -> StatefulStep:
    """The next step. `update` names the revision of the set's present template."""
    placed = by_ordinal(owner, pods)
    is_ordered = owner.spec.pod_management_policy != "Parallel"
    create: list[int] = []
    delete: list[PodRecord] = []
    for ordinal in owner.ordinals:
        pod = placed.get(ordinal)
        if pod is None:
            create.append(ordinal)
        elif pod.is_finished and not pod.is_terminating:
            delete.append(pod)
        if is_ordered and (pod is None or _is_unavailable(owner, pod, now)):
            return StatefulStep(tuple(create), tuple(delete))
        if len(create) == BURST:  # the rest with later syncs: a set may have billions of replicas
            break

    condemned = [placed[ordinal] for ordinal in sorted(placed, reverse=True) if ordinal not in owner.ordinals]
    if condemned and is_ordered:
        return StatefulStep(delete=_next_condemned(owner, condemned, now))
    delete += [pod for pod in condemned if not pod.is_terminating]
    if (outdated := _next_outdated(owner, placed, update, now)) is not None and outdated not in delete:
        delete.append(outdated)
    return StatefulStep(tuple(create), tuple(delete))


def _next_condemned(owner: StatefulSet, condemned: Sequence[PodRecord], now: float) -> tuple[PodRecord, ...]:
    """The highest ordinal is deleted first; while another pod is unavailable, only that one."""
    highest = condemned[0]
    unavailable = [pod for pod in reversed(condemned) if _is_unavailable(owner, pod, now)]
    is_blocked = highest.is_terminating or (highest in unavailable and highest is not unavailable[0])
    return () if is_blocked else (highest,)


def _next_outdated(owner: StatefulSet, placed: dict[int, PodRecord], update: str, now: float) -> PodRecord | None:
    """The pod that an update deletes next; None while a replaced one is not available."""
    if owner.spec.update_strategy.type == "OnDelete":
        return None
    for ordinal in reversed(owner.ordinals[owner.partition :]):
        pod = placed.get(ordinal)
        if pod is not None and pod.labels.get(REVISION) != update and not pod.is_terminating:
            return pod
        if pod is None or _is_unavailable(owner, pod, now):
            return None
    return None


def _is_unavailable(owner: StatefulSet, pod: PodRecord, now: float) -> bool:
    is_running = pod.status.phase == "Running" and not pod.is_terminating
    return not is_running or not is_available(pod, owner.spec.min_ready_seconds, now)


def revision_for(
    owner: StatefulSet, ordinal: int, current: ControllerRevision, update: ControllerRevision
) -> ControllerRevision:
    """Pods below the partition keep the current revision."""
    return current if ordinal < owner.ordinals.start + owner.partition else update


def stateful_pod(owner: StatefulSet, ordinal: int, revision: ControllerRevision) -> Document:
    """The pod of that ordinal."""
    pod = pod_from_template(owner, template_in(revision))
    name = f"{owner.name}-{ordinal}"
    metadata, spec = pod["metadata"], dict(pod["spec"])
    metadata["name"] = name
    metadata["labels"] = (metadata.get("labels") or {}) | identity(owner, ordinal) | {REVISION: revision.name}
    spec["hostname"] = name
    spec["subdomain"] = owner.spec.service_name
    if volumes := volumes_of(owner, ordinal, spec.get("volumes") or []):
        spec["volumes"] = volumes
    return pod | {"spec": spec}


def identity(owner: StatefulSet, ordinal: int) -> dict[str, str]:
    """The labels that identify a pod of the set."""
    return {POD_NAME: f"{owner.name}-{ordinal}", POD_INDEX: str(ordinal)}


def stateful_set_status(
    owner: StatefulSet, pods: Sequence[PodRecord], current: str, update: str, collisions: int, now: float
) -> Document:
    """The desired status of the StatefulSet; `current` and `update` name revisions."""
    living = [pod.labels.get(REVISION) for pod in pods if not pod.is_terminating]
    ready = [pod for pod in pods if pod.status.phase == "Running" and pod.ready_since is not None]
    status: Document = {
        "observedGeneration": owner.metadata.generation,
        "replicas": len(pods),
        "readyReplicas": len(ready),
        "availableReplicas": sum(is_available(pod, owner.spec.min_ready_seconds, now) for pod in ready),
        "currentReplicas": living.count(current),
        "updatedReplicas": living.count(update),
        "currentRevision": current,
        "updateRevision": update,
        "collisionCount": collisions,
    }
    counts = (status["updatedReplicas"], status["readyReplicas"], status["replicas"])
    if owner.spec.update_strategy.type == "RollingUpdate" and counts == (owner.spec.replicas,) * 3:
        status |= {"currentReplicas": status["updatedReplicas"], "currentRevision": update}
    return status
