"""Why pods are pending: each decided alone, and grouped by cause. One mechanism for the page's queue and the command.

Pods of one template differ in name only, so one decision is enough for all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from mooring.base.errors import MooringError
from mooring.engine import Decision
from mooring.explain.plain_words import dominant_reason, served_words, unserved_words
from mooring.framework import Pod
from mooring.why.owner_kinds import owner_of
from mooring.why.proposals.resources import absent_resources
from mooring.why.recomputation import Recomputation

FITS = "it fits, and waits for its turn"
MOST_PODS = 200
"""Of a group; `total` counts all."""

Document = dict[str, Any]
Served = Collection[str]
"""The schedulerNames that schedulers here serve; empty: no scheduler is known."""

_encode = msgspec.msgpack.Encoder().encode


class PendingCause(NamedTuple):
    """Why a pod is pending."""

    reason: str
    """In plain words."""
    plugin: str
    """The one that rejects most nodes; "" where none is known."""
    message: str
    """In kube-scheduler's words."""
    decision: Decision | None = None
    is_decided: bool = True
    """False: its scheduler may know more."""


def kind_of(pod: Pod) -> Hashable:
    """Equal for pods that are decided alike."""
    labels = tuple(sorted(pod.labels.items()))
    nominated = pod.status.nominated_node_name
    return pod.namespace, pod.spec.scheduler_name, labels, nominated, _encode(pod.spec)


def is_unserved(pod: Pod, served: Served) -> bool:
    """Whether no scheduler here takes the pod."""
    return bool(served) and not pod.spec.node_name and pod.spec.scheduler_name not in served


def refusal(pod: Pod) -> str:
    """What its scheduler reported about the last attempt; "" for a pod that was not refused."""
    if pod.spec.node_name:
        return ""
    condition = pod.condition("PodScheduled")
    return condition.message if condition is not None and condition.status == "False" else ""


def cause_of(recomputation: Recomputation, pod: Pod, served: Served = ()) -> PendingCause:
    """Decided now."""
    name = pod.spec.scheduler_name
    if is_unserved(pod, served):
        return PendingCause(unserved_words(name), "", served_words(served))
    if (gating := recomputation.gating(pod)) is not None:
        why = "; ".join(gating["reasons"])
        return PendingCause(f"{gating['plugin']} keeps it out of the queue: {why}", gating["plugin"], why)
    try:
        decision = recomputation.decide(pod)
    except MooringError as error:
        return PendingCause(str(error), "", str(error), is_decided=False)
    if decision.node is not None:
        rules = recomputation.profile_of(pod).name
        fits = FITS if rules == name else f'it fits by the rules of {rules}, and waits for its scheduler "{name}"'
        return PendingCause(fits, "", refusal(pod), decision)
    evidence = decision.evidence()
    groups = evidence.get("rejections") or ()
    plugin = max(groups, key=lambda group: int(group["count"]))["plugin"] if groups else ""
    if decision.fault is not None:
        plugin = decision.fault.plugin
    reason = dominant_reason(evidence, absent_resources(recomputation, pod))
    return PendingCause(reason or decision.message, plugin or "", decision.message, decision)


def causes_of(recomputation: Recomputation, pods: Iterable[Pod], served: Served = ()) -> dict[str, PendingCause]:
    """Of pending pods, by key; each kind is decided once."""
    causes: dict[Hashable, PendingCause] = {}
    found = {}
    for pod in pods:
        kind = kind_of(pod)
        if kind not in causes:
            causes[kind] = cause_of(recomputation, pod, served)
        found[pod.key] = causes[kind]
    return found


def explain_pending(
    causes: Mapping[str, PendingCause],
    pods: Iterable[Pod],
    namespace: str | None,
    queued: Mapping[str, Document] | None = None,
) -> Document:
    """Ready for JSON. `namespace`: of these pods; None: they are of all."""
    found = [(pod, causes[pod.key]) for pod in pods]
    return {"namespace": namespace, "pending": len(found), "groups": pending_groups(found, queued)}


def pending_groups(
    found: Iterable[tuple[Pod, PendingCause]], queued: Mapping[str, Document] | None = None, most: int = MOST_PODS
) -> list[Document]:
    """The largest first; in each the pods of highest priority first, then the oldest.

    `queued` is what the queue of a scheduler knows, by uid.
    """
    known = queued or {}
    groups: dict[tuple[str, str], list[tuple[Pod, PendingCause]]] = {}
    for pod, cause in found:
        groups.setdefault((cause.reason, cause.plugin), []).append((pod, cause))
    return [
        {
            "reason": reason,
            "plugin": plugin,
            "message": members[0][1].message,
            "total": len(members),
            "pods": [_waiting(pod, known.get(pod.uid)) for pod, _ in sorted(members, key=_order)[:most]],
        }
        for (reason, plugin), members in sorted(groups.items(), key=lambda each: (-len(each[1]), each[0]))
    ]


def _waiting(pod: Pod, queued: Mapping[str, Any] | None) -> Document:
    found: Document = {
        "namespace": pod.namespace,
        "name": pod.name,
        "priority": pod.spec.priority or 0,
        "since": pod.metadata.creation_timestamp,
        "owner": owner_of(pod),
    }
    if pod.status.nominated_node_name:
        found["nominatedNode"] = pod.status.nominated_node_name
    for field in ("attempts", "nextAttempt"):
        if queued is not None and field in queued:
            found[field] = queued[field]
    return found


def _order(member: tuple[Pod, PendingCause]) -> tuple[int, str, str]:
    pod = member[0]
    return -(pod.spec.priority or 0), pod.metadata.creation_timestamp or "", pod.key
