"""Queueing hints: which changes of pods and nodes may make a pod rejected for (anti-)affinity schedulable.

As kube-scheduler's hints, these do not look namespaces up: a namespace selector is matched against no labels. One that
would need them may miss a change; the pod is then retried at the next flush.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mooring.base.bounded import BoundedCache
from mooring.framework import Node, PlacedPod, Pod, TermKind
from mooring.objects.core import Affinity, PodAffinityTerm
from mooring.objects.pod_affinity import WeightedTerm, named_namespaces, terms_of, unreadable

Terms = Sequence[PodAffinityTerm] | None
"""None: they cannot be read."""
FEW = 16


def pod_may_help(pod: Pod, before: Pod | PlacedPod | None, after: Pod | PlacedPod | None) -> bool:
    """Whether a pod that was added, relabelled or deleted may make this one schedulable; or this one was relabelled."""
    if before is not None and after is not None and after.uid == pod.uid:
        return True
    if not all(_counts(each) for each in (before, after) if each is not None):
        return False
    near, away = (_of(pod, kind) for kind in (TermKind.REQUIRED_AFFINITY, TermKind.REQUIRED_ANTI_AFFINITY))
    if near is None or away is None:
        return True
    if before is not None and after is not None:
        return (not _matches_all(near, pod, before) and _matches_all(near, pod, after)) or (
            _matches_all(away, pod, before) and not _matches_all(away, pod, after)
        )
    if after is not None:
        return _matches_all(near, pod, after)
    if before is None or _matches_all(away, pod, before):
        return True
    theirs = _of(before, TermKind.REQUIRED_ANTI_AFFINITY)
    return theirs is None or _matches_all(theirs, before, pod)


def node_may_help(pod: Pod, before: Node | None, after: Node) -> bool:
    """Whether a node that was added or relabelled may be in a domain where the pod fits."""
    near = _of(pod, TermKind.REQUIRED_AFFINITY)
    if near is None:
        return True
    for term in near:
        then, now = _domain(before, term), _domain(after, term)
        if now is not None and now != then:
            return True
    away = _of(pod, TermKind.REQUIRED_ANTI_AFFINITY)
    if away is None:
        return True
    for term in away:
        # A node without the key accepts any pod with anti-affinity: gaining the key helps no pod, losing it may.
        then, now = _domain(before, term), _domain(after, term)
        if before is None or (then is not None and now != then):
            return True
    return False


def _of(pod: Pod | PlacedPod, kind: TermKind) -> Terms:
    """The pod's required terms. Many are read once: every event is compared with every unschedulable pod."""
    terms = terms_of(_affinity(pod), kind)
    if len(terms) <= FEW:
        return _read(terms)
    if isinstance(pod, Pod):
        read = pod.notes.get(kind)
        if read is None:
            read = _read(terms)
            pod.notes.keep(kind, read)
        return cast(Terms, read)
    read = _deleted_pods.get((pod.uid, kind))
    if read is None or read[0] is not pod.affinity:
        read = _deleted_pods.put((pod.uid, kind), (pod.affinity, _read(terms)), len(terms))
    return read[1]


def _read(terms: Sequence[WeightedTerm]) -> Terms:
    return None if unreadable(terms) else [term for _, term in terms]


_deleted_pods: BoundedCache[tuple[str, TermKind], tuple[Affinity | None, Terms]] = BoundedCache(10_000)
"""Terms of deleted pods, by uid: each is compared with every unschedulable pod."""


def _domain(node: Node | None, term: PodAffinityTerm) -> str | None:
    return node.labels.get(term.topology_key) if node is not None else None


def _counts(pod: Pod | PlacedPod) -> bool:
    """Whether the pod is on a node or nominated to one."""
    return isinstance(pod, PlacedPod) or bool(pod.spec.node_name or pod.status.nominated_node_name)


def _affinity(pod: Pod | PlacedPod) -> Affinity | None:
    return pod.affinity if isinstance(pod, PlacedPod) else pod.spec.affinity


def _matches_all(terms: Sequence[PodAffinityTerm], carrier: Pod | PlacedPod, other: Pod | PlacedPod) -> bool:
    """Whether all the carrier's terms select the other pod; no terms select no pod."""
    return bool(terms) and all(_matches(term, carrier.namespace, other) for term in terms)


def _matches(term: PodAffinityTerm, own: str, other: Pod | PlacedPod) -> bool:
    if term.label_selector is None or not term.label_selector.matches(other.labels):
        return False
    by_labels = term.namespace_selector is not None and term.namespace_selector.matches({})
    return by_labels or other.namespace in named_namespaces(term, own)
