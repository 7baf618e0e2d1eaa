"""InterPodAffinity: which pods are in the way, or which are missing."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from mooring.framework import PlacedPod, TermKind
from mooring.objects.core import Namespace, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from mooring.objects.pod_affinity import terms_of
from mooring.plugins.default.inter_pod_affinity.affinity_terms import IncomingPodTermReader, IncomingPodTerms
from mooring.plugins.default.inter_pod_affinity.plugin import NOT_AWAY, NOT_NEAR, NOT_WANTED
from mooring.why.changes import ProposedChange, with_spec
from mooring.why.proposals import evictions
from mooring.why.proposals.rejected_node import Gap, RejectedNode

PREFERRED_WEIGHT = 100
MOST_NAMED = 3


def gap(case: RejectedNode) -> Gap:
    reasons = case.refusal.reasons
    if NOT_NEAR in reasons:
        return _missing(case)
    if NOT_AWAY in reasons:
        return _in_the_way(case, _repelled(case), "which the pod's anti-affinity avoids")
    if NOT_WANTED in reasons:
        return _in_the_way(case, _repelling(case), "whose anti-affinity avoids the pod")
    return evictions.gap(case)


def changes(case: RejectedNode) -> Iterator[ProposedChange]:
    reasons = case.refusal.reasons
    if NOT_AWAY in reasons:
        yield from evictions.deletions(case, _repelled(case))
        yield _preferred(case, "pod_anti_affinity", "its required anti-affinity")
    elif NOT_WANTED in reasons:
        yield from evictions.deletions(case, _repelling(case))
    elif NOT_NEAR in reasons:
        yield _preferred(case, "pod_affinity", "its required affinity")


def _terms(case: RejectedNode) -> IncomingPodTerms:
    return IncomingPodTermReader(case.recomputation.objects(Namespace)).of(case.pod)


def _missing(case: RejectedNode) -> Gap:
    terms = _terms(case)
    lacking = [key for key in terms.near_keys if case.view.domain(key) is None]
    if lacking:
        return Gap(f"lacks the label {' and '.join(lacking)}", 1000.0)
    there = case.recomputation.state.placed(terms.near)
    empty = [
        f"{key}={case.view.domain(key)}"
        for key in terms.near_keys
        if not any(_domain(case, pod, key) == case.view.domain(key) for pod in there)
    ]
    where = " and ".join(empty)
    count = "no pod in the cluster matches it" if not there else f"{len(there)} elsewhere do"
    return Gap(f"is in {where}, where no pod matches the pod's affinity ({count})", len(empty))


def _in_the_way(case: RejectedNode, pods: list[PlacedPod], how: str) -> Gap:
    named = ", ".join(pod.key for pod in pods[:MOST_NAMED])
    more = f" and {len(pods) - MOST_NAMED} more" if len(pods) > MOST_NAMED else ""
    return Gap(f"shares a topology domain with {named}{more}, {how}", len(pods)) if pods else evictions.gap(case)


def _domain(case: RejectedNode, pod: PlacedPod, key: str) -> str | None:
    view = case.recomputation.view(pod.node)
    return None if view is None else view.domain(key)


def _repelled(case: RejectedNode) -> list[PlacedPod]:
    """Pods in the node's domains that the pod's anti-affinity selects."""
    found: dict[str, PlacedPod] = {}
    for where, key in _terms(case).away:
        domain = case.view.domain(key)
        for pod in case.recomputation.state.placed(where) if domain is not None else ():
            if _domain(case, pod, key) == domain:
                found[pod.uid] = pod
    return list(found.values())


def _repelling(case: RejectedNode) -> list[PlacedPod]:
    """Pods in the node's domains whose own anti-affinity selects the pod."""
    state = case.recomputation.state
    labels = IncomingPodTermReader(case.recomputation.objects(Namespace)).namespace_labels(case.pod)

    def carriers() -> int:
        terms = state.existing_affinity_terms(case.pod, TermKind.REQUIRED_ANTI_AFFINITY, labels)
        return sum(counts.at(case.view) or 0 for _, counts in terms)

    def is_carrier(pod: PlacedPod) -> bool:
        """Whether one of its terms selects the pod: without it, the plugin counts fewer."""
        before = carriers()
        with case.recomputation.applied(ProposedChange("", deleted=(pod.uid,))):
            return carriers() < before

    records = (state.pod(uid) for uid in case.recomputation.pods)
    near = [pod for pod in records if pod is not None and _shares_domain(case, pod)]
    return [pod for pod in near if is_carrier(pod)]


def _shares_domain(case: RejectedNode, pod: PlacedPod) -> bool:
    keys = [term.topology_key for _, term in terms_of(pod.affinity, TermKind.REQUIRED_ANTI_AFFINITY)]
    return any(case.view.domain(key) is not None and _domain(case, pod, key) == case.view.domain(key) for key in keys)


def _preferred(case: RejectedNode, which: str, named: str) -> ProposedChange:
    """The terms of the pod as preferences."""
    affinity = case.pod.spec.affinity
    assert affinity is not None, "it has terms"
    rules: PodAffinity = getattr(affinity, which)
    preferred = [*rules.preferred, *map(_weighted, rules.required)]
    soft = msgspec.structs.replace(affinity, **{which: PodAffinity(preferred=tuple(preferred))})
    manifest = {"spec": {"affinity": msgspec.to_builtins(soft)}}
    return ProposedChange(f"make {named} a preference", pod=with_spec(case.pod, affinity=soft), manifest=manifest)


def _weighted(term: PodAffinityTerm) -> WeightedPodAffinityTerm:
    return WeightedPodAffinityTerm(weight=PREFERRED_WEIGHT, pod_affinity_term=term)
