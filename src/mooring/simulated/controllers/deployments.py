"""The rollout of a Deployment: which ReplicaSet is the new one, and how many replicas each should have now. Pure.

A sync computes one step; the controller executes it and syncs again when the cluster has changed. Simpler than upstream
in one point: a Deployment that is scaled during a rollout scales its new ReplicaSet, not all of them in proportion.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field

from mooring.simulated.controllers.pod_templates import template_hash
from mooring.simulated.controllers.workload_records import Deployment, ReplicaSet, scaled_value
from mooring.simulated.records import Document

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True)
class Scaling:
    """One ReplicaSet's next size."""

    replica_set: ReplicaSet
    replicas: int

    @property
    def message(self) -> str:
        """The event's text."""
        before = self.replica_set.spec.replicas
        direction = "up" if self.replicas > before else "down"
        return f"Scaled {direction} replica set {self.replica_set.name} from {before} to {self.replicas}"


@dataclass(frozen=True)
class RolloutStep:
    """What a sync does."""

    create: Document | None = None
    scale: tuple[Scaling, ...] = ()
    annotate: tuple[tuple[ReplicaSet, dict[str, str]], ...] = ()
    revision: str = ""
    clean_up: tuple[ReplicaSet, ...] = field(default=())
    """Old, empty ReplicaSets beyond the revision history limit."""


def split(owner: Deployment, owned: Sequence[ReplicaSet]) -> tuple[ReplicaSet | None, list[ReplicaSet]]:
    """The ReplicaSet of the Deployment's present template, if there is one, and all others, oldest first."""
    expected = template_hash(owner.spec.template, owner.status.collision_count)
    by_age = sorted(owned, key=lambda each: (each.metadata.creation_timestamp or "", each.name))
    new = next((each for each in by_age if _same_template(owner, each, expected)), None)
    return new, [each for each in by_age if each is not new]


def _same_template(owner: Deployment, candidate: ReplicaSet, expected_hash: str) -> bool:
    if candidate.labels.get(HASH_LABEL) == expected_hash:
        return True
    template = copy.deepcopy(candidate.spec.template)
    labels = (template.get("metadata") or {}).get("labels") or {}
    labels.pop(HASH_LABEL, None)
    return template == owner.spec.template


def surge_and_unavailable(owner: Deployment) -> tuple[int, int]:
    """maxSurge and maxUnavailable as numbers: percentages round up and down, and not both may be 0."""
    if owner.spec.strategy.type == "Recreate":
        return 0, 0
    rolling = owner.spec.strategy.rolling_update
    surge = scaled_value(rolling.max_surge if rolling else "25%", owner.spec.replicas, up=True)
    unavailable = scaled_value(rolling.max_unavailable if rolling else "25%", owner.spec.replicas, up=False)
    return (surge, unavailable) if surge or unavailable else (0, 1)


def next_step(owner: Deployment, owned: Sequence[ReplicaSet], pods_of_old: int) -> RolloutStep:
    """The next step of the rollout. `pods_of_old` counts pods of old ReplicaSets that still run, terminating or not."""
    new, old = split(owner, owned)
    if owner.spec.paused:
        return RolloutStep(scale=_scaled_while_paused(owner, new, old), revision=_revision_of(new))
    revision = _next_revision(new, old)
    if new is None:
        return RolloutStep(
            create=_replica_set(owner, revision, _first_size(owner, old, pods_of_old)), revision=revision
        )

    scale = _recreated(owner, new, old, pods_of_old) if _recreates(owner) else _rolled(owner, new, old)
    annotations = _annotations(owner, revision)
    stale = {key: value for key, value in annotations.items() if new.metadata.annotations.get(key) != value}
    return RolloutStep(
        scale=scale,
        annotate=((new, stale),) if stale else (),
        revision=revision,
        clean_up=_beyond_history(owner, old) if is_complete(owner, new, owned) else (),
    )


def is_complete(owner: Deployment, new: ReplicaSet | None, owned: Sequence[ReplicaSet]) -> bool:
    """All replicas are updated and available."""
    wanted = owner.spec.replicas
    return (
        new is not None
        and new.status.replicas == wanted
        and new.status.available_replicas == wanted
        and sum(each.status.replicas for each in owned) == wanted
        and all(each is new or each.spec.replicas == 0 for each in owned)
    )


def _recreates(owner: Deployment) -> bool:
    return owner.spec.strategy.type == "Recreate"


def _first_size(owner: Deployment, old: Sequence[ReplicaSet], pods_of_old: int) -> int:
    """The replicas that a new ReplicaSet starts with, beside the old ones."""
    if _recreates(owner):
        return 0 if pods_of_old or any(each.spec.replicas for each in old) else owner.spec.replicas
    surge, _ = surge_and_unavailable(owner)
    room = owner.spec.replicas + surge - sum(each.spec.replicas for each in old)
    return max(0, min(room, owner.spec.replicas))


def _recreated(owner: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet], pods_of_old: int) -> tuple[Scaling, ...]:
    """Recreate: all old pods are deleted before the first new one is created."""
    shrink = tuple(Scaling(each, 0) for each in old if each.spec.replicas)
    if shrink or pods_of_old or new.spec.replicas == owner.spec.replicas:
        return shrink
    return (Scaling(new, owner.spec.replicas),)


def _rolled(owner: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> tuple[Scaling, ...]:
    """Scale up the new one within maxSurge; otherwise scale down the old ones within maxUnavailable."""
    wanted = owner.spec.replicas
    surge, max_unavailable = surge_and_unavailable(owner)
    total = new.spec.replicas + sum(each.spec.replicas for each in old)
    if new.spec.replicas > wanted:
        return (Scaling(new, wanted),)
    if new.spec.replicas < wanted and (room := wanted + surge - total) > 0:
        return (Scaling(new, min(wanted, new.spec.replicas + room)),)
    return _shrunk(new, old, total, minimum=wanted - max_unavailable)


def _shrunk(new: ReplicaSet, old: Sequence[ReplicaSet], total: int, minimum: int) -> tuple[Scaling, ...]:
    """Scale down old ReplicaSets: first unhealthy replicas, then as many available ones as maxUnavailable allows."""
    sizes = {each.uid: each.spec.replicas for each in old}
    not_yet_new = new.spec.replicas - new.status.available_replicas
    spare = total - minimum - not_yet_new
    for each in old:
        unhealthy = max(0, each.spec.replicas - each.status.available_replicas)
        taken = min(unhealthy, max(0, spare), sizes[each.uid])
        sizes[each.uid] -= taken
        spare -= taken
    available = new.status.available_replicas + sum(
        min(sizes[each.uid], each.status.available_replicas) for each in old
    )
    spare = min(spare, available - minimum)
    for each in old:
        taken = min(max(0, spare), sizes[each.uid])
        sizes[each.uid] -= taken
        spare -= taken
    return tuple(Scaling(each, sizes[each.uid]) for each in old if sizes[each.uid] != each.spec.replicas)


def _scaled_while_paused(owner: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> tuple[Scaling, ...]:
    """A paused Deployment does not roll out but can be scaled, by the ReplicaSet that has its pods."""
    carrying = [each for each in (*old, *((new,) if new else ())) if each.spec.replicas]
    others = sum(each.spec.replicas for each in carrying[:-1])
    if not carrying:
        return (Scaling(new, owner.spec.replicas),) if new and owner.spec.replicas else ()
    size = max(0, owner.spec.replicas - others)
    return (Scaling(carrying[-1], size),) if carrying[-1].spec.replicas != size else ()


def _replica_set(owner: Deployment, revision: str, replicas: int) -> Document:
    """The ReplicaSet of the Deployment's present template."""
    hashed = template_hash(owner.spec.template, owner.status.collision_count)
    template = copy.deepcopy(owner.spec.template)
    metadata = template["metadata"] = dict(template.get("metadata") or {})
    metadata["labels"] = {**(metadata.get("labels") or {}), HASH_LABEL: hashed}
    expressions = [
        {"key": each.key, "operator": each.operator} | ({"values": each.values} if each.values else {})
        for each in owner.spec.selector.match_expressions
    ]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{owner.name}-{hashed}",
            "namespace": owner.namespace,
            "labels": metadata["labels"],
            "annotations": _annotations(owner, revision)
            | {key: value for key, value in owner.metadata.annotations.items() if _is_inherited(key)},
        },
        "spec": {
            "replicas": replicas,
            "minReadySeconds": owner.spec.min_ready_seconds,
            "selector": {"matchLabels": {**owner.spec.selector.match_labels, HASH_LABEL: hashed}}
            | ({"matchExpressions": expressions} if expressions else {}),
            "template": template,
        },
    }


def _is_inherited(annotation: str) -> bool:
    return annotation not in (REVISION, DESIRED_REPLICAS, MAX_REPLICAS, LAST_APPLIED)


def _annotations(owner: Deployment, revision: str) -> dict[str, str]:
    surge, _ = surge_and_unavailable(owner)
    return {
        DESIRED_REPLICAS: str(owner.spec.replicas),
        MAX_REPLICAS: str(owner.spec.replicas + surge),
        REVISION: revision,
    }


def _revision_of(replica_set: ReplicaSet | None) -> str:
    return replica_set.metadata.annotations.get(REVISION, "") if replica_set else ""


def _number(revision: str) -> int:
    return int(revision) if revision.isdecimal() else 0


def _next_revision(new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> str:
    """One more than any old revision; a rollback gets a new number, too."""
    highest_old = max((_number(_revision_of(each)) for each in old), default=0)
    present = _number(_revision_of(new))
    return str(present if present > highest_old else highest_old + 1)


def _beyond_history(owner: Deployment, old: Sequence[ReplicaSet]) -> tuple[ReplicaSet, ...]:
    empty = [
        each
        for each in old
        if not each.spec.replicas and not each.status.replicas and each.metadata.deletion_timestamp is None
    ]
    empty.sort(key=lambda each: _number(_revision_of(each)))
    return tuple(empty[: max(0, len(empty) - owner.spec.revision_history_limit)])
