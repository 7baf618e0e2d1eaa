"""What a StatefulSet wants done: which ordinals to create, which pods to remove, and its status. Pure.

One pass gives one step; the controller carries it out and asks again when the cluster has moved. Ordered sets wait for
every pod before the next, parallel ones do not. An update replaces one pod at a time, from the highest ordinal down to
the partition.
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
    """What to do now."""

    create: tuple[int, ...] = ()
    """Ordinals."""
    remove: tuple[PodRecord, ...] = ()


def ordinal_of(owner: StatefulSet, pod: PodRecord) -> int | None:
    """The pod's place in the set; None: its name has none."""
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
    remove: list[PodRecord] = []
    for ordinal in owner.ordinals:
        pod = placed.get(ordinal)
        if pod is None:
            create.append(ordinal)
        elif pod.is_finished and not pod.is_terminating:
            remove.append(pod)
        if is_ordered and (pod is None or _is_unavailable(owner, pod, now)):
            return StatefulStep(tuple(create), tuple(remove))
        if len(create) == BURST:  # the rest when these are there: a set may want billions
            break

    condemned = [placed[ordinal] for ordinal in sorted(placed, reverse=True) if ordinal not in owner.ordinals]
    if condemned and is_ordered:
        return StatefulStep(remove=_next_condemned(owner, condemned, now))
    remove += [pod for pod in condemned if not pod.is_terminating]
    if (outdated := _next_outdated(owner, placed, update, now)) is not None and outdated not in remove:
        remove.append(outdated)
    return StatefulStep(tuple(create), tuple(remove))


def _next_condemned(owner: StatefulSet, condemned: Sequence[PodRecord], now: float) -> tuple[PodRecord, ...]:
    """The highest ordinal goes first; while another pod is unavailable, only that one may go."""
    highest = condemned[0]
    unavailable = [pod for pod in reversed(condemned) if _is_unavailable(owner, pod, now)]
    is_blocked = highest.is_terminating or (highest in unavailable and highest is not unavailable[0])
    return () if is_blocked else (highest,)


def _next_outdated(owner: StatefulSet, placed: dict[int, PodRecord], update: str, now: float) -> PodRecord | None:
    """The pod that an update replaces next; None while one that was replaced is not available."""
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
    """Pods below the partition are made as they were before the update."""
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
    """The labels that say which pod of the set it is."""
    return {POD_NAME: f"{owner.name}-{ordinal}", POD_INDEX: str(ordinal)}


def stateful_set_status(
    owner: StatefulSet, pods: Sequence[PodRecord], current: str, update: str, collisions: int, now: float
) -> Document:
    """The status the StatefulSet should have; `current` and `update` name revisions."""
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
