"""What a sync of a DaemonSet does: on which nodes to create a pod, which pods to delete, and its status. Pure.

A pod targets one node by its affinity, and the scheduler binds it. A failed pod is replaced at once: upstream's backoff
protects against kubelets that reject pods, which ours do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from mooring.objects.core import Pod, PodSpec
from mooring.objects.placement_rules import DO_NOT_SCHEDULE, admits, first_untolerated
from mooring.simulated.controllers.pod_templates import pod_from_template
from mooring.simulated.controllers.replica_sets import is_available
from mooring.simulated.controllers.workload_records import DaemonSet, scaled_value
from mooring.simulated.records import Document, NodeRecord, PodRecord

HASH_LABEL = "controller-revision-hash"
GENERATION_LABEL = "pod-template-generation"
GENERATION = "deprecated.daemonset.template.generation"
"""An annotation of the DaemonSet: the template generation, incremented by the API server."""
BURST = 250
"""Pods that one sync creates or deletes at most, as upstream's burst."""

_NAME_FIELD = "metadata.name"
_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_TOLERATED_ON_HOST_NETWORK = ("node.kubernetes.io/network-unavailable", "NoSchedule")


@dataclass(frozen=True)
class DaemonPlan:
    """What a sync does."""

    create: tuple[str, ...] = ()
    """Names of nodes."""
    delete: tuple[PodRecord, ...] = ()
    finished: tuple[PodRecord, ...] = ()
    """Those of `delete` that have finished, which daemons should not."""

    def __bool__(self) -> bool:
        return bool(self.create or self.delete)


class Eligibility:
    """Which nodes should run a pod of the DaemonSet."""

    def __init__(self, owner: DaemonSet) -> None:
        spec = owner.spec.template.get("spec") or {}
        self._pod = Pod(spec=msgspec.convert(spec | {"tolerations": _tolerations(spec)}, PodSpec))

    def of(self, node: NodeRecord) -> tuple[bool, bool]:
        """`shouldRun` and `shouldContinueRunning` of upstream."""
        spec = self._pod.spec
        if spec.node_name not in ("", node.name) or not admits(self._pod, node.name, node.labels):
            return False, False
        if first_untolerated(node.spec.taints, spec.tolerations, DO_NOT_SCHEDULE) is None:
            return True, True
        return False, first_untolerated(node.spec.taints, spec.tolerations, ("NoExecute",)) is None


def daemon_pod(owner: DaemonSet, node: str, hashed: str) -> Document:
    """The pod for that node."""
    pod = pod_from_template(owner, owner.spec.template)
    metadata, spec = pod["metadata"], pod["spec"]
    labels = {HASH_LABEL: hashed}
    if generation := owner.metadata.annotations.get(GENERATION):
        labels[GENERATION_LABEL] = generation
    metadata["labels"] = (metadata.get("labels") or {}) | labels
    affinity = spec.get("affinity") or {}
    term = {"matchFields": [{"key": _NAME_FIELD, "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    affinity = affinity | {"nodeAffinity": (affinity.get("nodeAffinity") or {}) | required}
    return pod | {"spec": spec | {"tolerations": _tolerations(spec), "affinity": affinity}}


def _tolerations(spec: Document) -> list[Document]:
    """The template's tolerations, and those of every daemon pod."""
    added = [*_TOLERATED, *((_TOLERATED_ON_HOST_NETWORK,) if spec.get("hostNetwork") else ())]
    ours = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in added]
    named = {(each["key"], each["effect"]) for each in ours}
    present = [each for each in spec.get("tolerations") or [] if not _is_replaced(each, named)]
    return present + ours


def _is_replaced(toleration: Document, named: set[tuple[str, str]]) -> bool:
    """Whether a toleration of every daemon pod covers it; that of a template may have `tolerationSeconds`."""
    is_whole = toleration.get("operator") == "Exists" and not toleration.get("value")
    return is_whole and (toleration.get("key"), toleration.get("effect")) in named


def target_node(pod: PodRecord) -> str:
    """The node that the pod is bound to, or targets by affinity."""
    if pod.spec.node_name:
        return pod.spec.node_name
    required: Any = pod.spec.affinity
    for name in ("nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"):
        required = (required or {}).get(name)
    for term in (required or {}).get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field["key"] == _NAME_FIELD and field["operator"] == "In" and len(field["values"]) == 1:
                return str(field["values"][0])
    return ""


def on_nodes(pods: Iterable[PodRecord]) -> dict[str, list[PodRecord]]:
    """The pods by node: bound ones first, then the oldest."""
    found: dict[str, list[PodRecord]] = {}
    for pod in sorted(pods, key=_age):
        is_over = pod.is_finished and pod.is_terminating
        if not is_over and (name := target_node(pod)):
            found.setdefault(name, []).append(pod)
    return found


def _age(pod: PodRecord) -> tuple[bool, str, str]:
    return not pod.spec.node_name, pod.metadata.creation_timestamp or "", pod.name


def is_updated(owner: DaemonSet, pod: PodRecord, hashed: str) -> bool:
    """Whether the pod has the present template."""
    generation = owner.metadata.annotations.get(GENERATION)
    return pod.labels.get(HASH_LABEL) == hashed or (
        generation is not None and pod.labels.get(GENERATION_LABEL) == generation
    )


def plan_daemons(
    owner: DaemonSet, nodes: Sequence[NodeRecord], pods: Sequence[PodRecord], hashed: str, now: float
) -> DaemonPlan:
    """One pod on every eligible node and none elsewhere; during an update with surge, an old one beside a new one."""
    eligibility, placed = Eligibility(owner), on_nodes(pods)
    create: list[str] = []
    delete: list[PodRecord] = []
    finished: list[PodRecord] = []
    for node in nodes:
        present = placed.get(node.name, [])
        living = [pod for pod in present if not pod.is_terminating]
        should_run, may_stay = eligibility.of(node)
        if not may_stay:
            delete += living
            continue
        ended = [pod for pod in living if pod.is_finished]
        running = [pod for pod in living if not pod.is_finished]
        finished += ended
        delete += ended
        if should_run and not (running if _surges(owner) else present):
            create.append(node.name)
        delete += _surplus(owner, running, hashed, now) if _surges(owner) else running[1:]
    known = {node.name for node in nodes}
    delete += [
        pod
        for name, meant in placed.items()
        for pod in meant
        if name not in known and not pod.spec.node_name and not pod.is_terminating
    ]
    return DaemonPlan(tuple(create[:BURST]), tuple(delete[:BURST]), tuple(finished))


def _surges(owner: DaemonSet) -> bool:
    surge, _ = surge_and_unavailable(owner, 1)
    return surge > 0


def _surplus(owner: DaemonSet, running: Sequence[PodRecord], hashed: str, now: float) -> list[PodRecord]:
    """All but the oldest new and the oldest old pod, and the old one too when it is no longer needed."""
    new = [pod for pod in running if pod.labels.get(HASH_LABEL) == hashed]
    old = [pod for pod in running if pod.labels.get(HASH_LABEL) != hashed]
    surplus = new[1:] + old[1:]
    if new and old and (old[0].ready_since is None or is_available(new[0], owner.spec.min_ready_seconds, now)):
        surplus.append(old[0])
    return surplus


def surge_and_unavailable(owner: DaemonSet, desired: int) -> tuple[int, int]:
    """maxSurge and maxUnavailable as numbers of nodes."""
    rolling = owner.spec.update_strategy.rolling_update
    if owner.spec.update_strategy.type != "RollingUpdate" or rolling is None:
        return 0, 0
    return scaled_value(rolling.max_surge, desired, up=True), scaled_value(rolling.max_unavailable, desired, up=True)


def plan_update(
    owner: DaemonSet, nodes: Sequence[NodeRecord], pods: Sequence[PodRecord], hashed: str, now: float
) -> DaemonPlan:
    """The next step of a rolling update, once every eligible node has its pod."""
    if owner.spec.update_strategy.type != "RollingUpdate":
        return DaemonPlan()
    eligibility = Eligibility(owner)
    should_run = {node.name: eligibility.of(node)[0] for node in nodes}
    placed = on_nodes(pods)
    names = placed.keys() | {name for name, wanted in should_run.items() if wanted}
    states = {name: _NodeState.of(owner, placed.get(name, ()), hashed, now) for name in sorted(names)}
    surge, unavailable = surge_and_unavailable(owner, sum(should_run.values()))
    if surge:
        return _surge(states, should_run, surge)
    return _replace(states, unavailable or 1)


@dataclass(frozen=True)
class _NodeState:
    """The pods of one node during an update; crowded: more than one of a kind."""

    new: PodRecord | None
    old: PodRecord | None
    is_crowded: bool
    new_is_available: bool
    old_is_available: bool

    @classmethod
    def of(cls, owner: DaemonSet, pods: Sequence[PodRecord], hashed: str, now: float) -> _NodeState:
        living = [pod for pod in pods if not pod.is_terminating]
        new = [pod for pod in living if is_updated(owner, pod, hashed)]
        old = [pod for pod in living if not is_updated(owner, pod, hashed)]

        def available(some: list[PodRecord]) -> bool:
            return bool(some) and is_available(some[0], owner.spec.min_ready_seconds, now)

        return cls(
            new[0] if new else None,
            old[0] if old else None,
            len(new) > 1 or len(old) > 1,
            available(new),
            available(old),
        )


def _replace(states: Mapping[str, _NodeState], max_unavailable: int) -> DaemonPlan:
    """Delete unavailable old pods, and available ones within maxUnavailable."""
    unavailable = 0
    delete: list[PodRecord] = []
    candidates: list[PodRecord] = []
    for state in states.values():
        if state.is_crowded or (state.new is None) == (state.old is None):
            unavailable += 1
        elif state.old is None:
            unavailable += not state.new_is_available
        elif state.old_is_available:
            candidates.append(state.old)
        else:
            unavailable += 1
            delete.append(state.old)
    return DaemonPlan(delete=tuple((delete + candidates[: max(0, max_unavailable - unavailable)])[:BURST]))


def _surge(states: Mapping[str, _NodeState], should_run: Mapping[str, bool], max_surge: int) -> DaemonPlan:
    """Create new pods beside old ones within maxSurge, and delete an old one when its new one is available."""
    surging = available = 0
    delete: list[PodRecord] = []
    misplaced: list[PodRecord] = []
    create: list[str] = []
    candidates: list[str] = []
    for name, state in states.items():
        if state.is_crowded:
            surging += 1
            continue
        available += state.old_is_available if state.old is not None else state.new_is_available
        if state.old is None:
            continue
        if state.new is not None:
            if state.new_is_available:
                delete.append(state.old)
            else:
                surging += 1
        elif not should_run.get(name):
            (misplaced if state.old_is_available else delete).append(state.old)
        else:
            (candidates if state.old_is_available else create).append(name)
    # A misscheduled pod stays until enough scheduled ones are available.
    delete += misplaced[: max(0, available - sum(should_run.values()))]
    create += candidates[: max(0, max_surge - surging)]
    return DaemonPlan(tuple(create[:BURST]), tuple(delete[:BURST]))


def daemon_set_status(
    owner: DaemonSet,
    nodes: Sequence[NodeRecord],
    pods: Sequence[PodRecord],
    hashed: str,
    collisions: int,
    now: float,
) -> Document:
    """The desired status of the DaemonSet."""
    eligibility, placed = Eligibility(owner), on_nodes(pods)
    desired = misscheduled = 0
    oldest: list[PodRecord] = []
    for node in nodes:
        present = placed.get(node.name)
        if eligibility.of(node)[0]:
            desired += 1
            oldest += present[:1] if present else []
        else:
            misscheduled += bool(present)
    available = sum(is_available(pod, owner.spec.min_ready_seconds, now) for pod in oldest)
    return {
        "observedGeneration": owner.metadata.generation,
        "desiredNumberScheduled": desired,
        "currentNumberScheduled": len(oldest),
        "numberMisscheduled": misscheduled,
        "numberReady": sum(pod.ready_since is not None for pod in oldest),
        "numberAvailable": available,
        "numberUnavailable": desired - available,
        "updatedNumberScheduled": sum(is_updated(owner, pod, hashed) for pod in oldest),
        "collisionCount": collisions,
    }
