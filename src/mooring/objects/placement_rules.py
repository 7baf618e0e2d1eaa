"""The rules by which a pod's spec admits or avoids a node: node selectors, affinity terms, tolerations.

Several plugins and the tallies read them, so they stand with the objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mooring.objects.core import NodeSelector, NodeSelectorTerm, Pod, Taint, Toleration
from mooring.objects.selectors import Labels, requirement_matches

DO_NOT_SCHEDULE = ("NoSchedule", "NoExecute")
"""The effects that keep a pod off a node."""


def term_matches(term: NodeSelectorTerm, name: str, labels: Labels) -> bool:
    """One term: all its expressions and fields hold. An empty term matches nothing."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": name}
    return all(
        requirement_matches(part.key, part.operator, part.values, labels) for part in term.match_expressions
    ) and all(
        part.operator in ("In", "NotIn") and requirement_matches(part.key, part.operator, part.values, fields)
        for part in term.match_fields
    )


def selector_matches(selector: NodeSelector, name: str, labels: Labels) -> bool:
    """Any term will do; no terms match nothing."""
    return any(term_matches(term, name, labels) for term in selector.node_selector_terms)


def required_node_selector(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity
    return affinity.node_affinity.required if affinity and affinity.node_affinity else None


def admits(pod: Pod, name: str, labels: Labels) -> bool:
    """Whether the pod's nodeSelector and required node affinity let it onto the node."""
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    required = required_node_selector(pod)
    return required is None or selector_matches(required, name, labels)


def tolerates(toleration: Toleration, taint: Taint, *, compare_numbers: bool = False) -> bool:
    """Whether this toleration covers this taint. An empty key needs Exists; an empty effect covers all effects.

    `compare_numbers` (the gate TaintTolerationComparisonOperators) lets Gt and Lt cover taints whose value is a
    greater or a smaller number than the toleration's.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return bool(toleration.key) and toleration.value == taint.value
        case "Exists":
            return True
        case "Gt" | "Lt" if compare_numbers:
            return requirement_matches(taint.key, toleration.operator, [toleration.value], {taint.key: taint.value})
    return False


def first_untolerated(
    taints: Iterable[Taint],
    tolerations: Sequence[Toleration],
    effects: Sequence[str] = DO_NOT_SCHEDULE,
    *,
    compare_numbers: bool = False,
) -> Taint | None:
    """The first taint with one of these effects that nothing tolerates."""
    for taint in taints:
        if taint.effect in effects and not any(
            tolerates(toleration, taint, compare_numbers=compare_numbers) for toleration in tolerations
        ):
            return taint
    return None
