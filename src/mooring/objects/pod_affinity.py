"""The terms of pod affinity and anti-affinity, by kind, and kube-scheduler's message for one that cannot be read."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from mooring.objects.core import Affinity, PodAffinityTerm
from mooring.objects.selectors import mistake_in, one_text


class TermKind(Enum):
    """The four kinds of terms by which pods are placed near other pods or away from them."""

    REQUIRED_AFFINITY = "required affinity"
    PREFERRED_AFFINITY = "preferred affinity"
    REQUIRED_ANTI_AFFINITY = "required anti-affinity"
    PREFERRED_ANTI_AFFINITY = "preferred anti-affinity"

    # Called four times per decision: Enum's own is not C, and each member exists once.
    __hash__ = object.__hash__


WeightedTerm = tuple[int, PodAffinityTerm]
"""A required term weighs 0: it is not a matter of more or less."""

_FIELDS = {
    TermKind.REQUIRED_AFFINITY: "requiredAffinityTerms",
    TermKind.REQUIRED_ANTI_AFFINITY: "requiredAntiAffinityTerms",
    TermKind.PREFERRED_AFFINITY: "preferredAffinityTerms",
    TermKind.PREFERRED_ANTI_AFFINITY: "preferredAntiAffinityTerms",
}
"""In the order in which they are read."""


def terms_of(affinity: Affinity | None, kind: TermKind) -> list[WeightedTerm]:
    """The terms of this kind, readable or not."""
    if affinity is None:
        return []
    is_anti = kind in (TermKind.REQUIRED_ANTI_AFFINITY, TermKind.PREFERRED_ANTI_AFFINITY)
    wanted = affinity.pod_anti_affinity if is_anti else affinity.pod_affinity
    if wanted is None:
        return []
    if kind in (TermKind.REQUIRED_AFFINITY, TermKind.REQUIRED_ANTI_AFFINITY):
        return [(0, term) for term in wanted.required]
    return [(preferred.weight, preferred.pod_affinity_term) for preferred in wanted.preferred]


def unreadable(terms: Iterable[WeightedTerm]) -> str | None:
    """What is wrong with the first term whose selectors cannot be read."""
    for _, term in terms:
        if wrong := mistake_in(term.label_selector) or mistake_in(term.namespace_selector):
            return wrong
    return None


def mistakes_in(affinity: Affinity | None) -> str | None:
    """What is wrong with the terms, kind by kind, as one text; None: all can be read."""
    wrong = [f"{name}: {why}" for kind, name in _FIELDS.items() if (why := unreadable(terms_of(affinity, kind)))]
    return one_text(wrong) if wrong else None


def named_namespaces(term: PodAffinityTerm, own: str) -> frozenset[str]:
    """The namespaces that the term names; its pod's own if it has neither names nor a selector."""
    if not term.namespaces and term.namespace_selector is None:
        return frozenset((own,))
    return frozenset(term.namespaces)
