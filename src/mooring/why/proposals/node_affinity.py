"""NodeAffinity: which label of the node the pod's selector or affinity misses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from mooring.objects.core import Affinity, NodeSelectorRequirement, NodeSelectorTerm
from mooring.objects.placement_rules import fields_match, is_readable, required_node_selector, selector_matches
from mooring.objects.selectors import requirement_matches
from mooring.why.changes import ProposedChange, command, with_node_fields, with_spec
from mooring.why.proposals import evictions
from mooring.why.proposals.rejected_node import Gap, RejectedNode
from mooring.why.similar import similar, similar_words

OF_THE_NODE = (
    *("kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch", "node.kubernetes.io/instance-type"),
    *("topology.kubernetes.io/zone", "topology.kubernetes.io/region"),
    *("beta.kubernetes.io/os", "beta.kubernetes.io/arch", "beta.kubernetes.io/instance-type"),
    *("failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"),
)
"""Labels that describe the node: another value would be a lie, and the kubelet sets its own again."""


class _Unmet(NamedTuple):
    """What the node does not match."""

    selector: dict[str, str]
    """Of nodeSelector."""
    requirements: Sequence[NodeSelectorRequirement]
    """Of the term of the required affinity that is nearest."""
    is_named: bool
    """That term names other nodes."""


def gap(case: RejectedNode) -> Gap:
    unmet = _unmet(case)
    labels = case.view.labels
    parts = [
        f"{_difference(labels, key, f'{key}={value}')}{_nowhere(case, key, value)}"
        for key, value in unmet.selector.items()
    ]
    parts += [_difference(labels, each.key, _text(each)) for each in unmet.requirements]
    if unmet.is_named:
        parts.append(f"is not among the nodes that the affinity names{_gone(case)}")
    return Gap(" and ".join(parts), len(parts)) if parts else evictions.gap(case)


def changes(case: RejectedNode) -> Iterator[ProposedChange]:
    unmet = _unmet(case)
    if not unmet.selector and not unmet.requirements and not unmet.is_named:
        return  # the scheduler's own affinity: that of its configuration
    if (renamed := _renamed(case, unmet)) is not None:
        yield renamed
    if not unmet.is_named and (labelled := _labelled(case, unmet)) is not None:
        yield labelled
    yield _unselective(case, unmet)


def _unmet(case: RejectedNode) -> _Unmet:
    labels, name = case.view.labels, case.view.name
    selector = {key: value for key, value in case.pod.spec.node_selector.items() if labels.get(key) != value}
    required = required_node_selector(case.pod)
    if required is None or selector_matches(required, name, labels):
        return _Unmet(selector, (), False)
    terms = [term for term in required.node_selector_terms if is_readable(term)]
    if not terms:
        return _Unmet(selector, (), False)
    nearest = min(terms, key=lambda term: (not fields_match(term, name), len(_unmatched(term, labels))))
    return _Unmet(selector, _unmatched(nearest, labels), not fields_match(nearest, name))


def _unmatched(term: NodeSelectorTerm, labels: Mapping[str, str]) -> list[NodeSelectorRequirement]:
    return [
        part for part in term.match_expressions if not requirement_matches(part.key, part.operator, part.values, labels)
    ]


def _difference(labels: Mapping[str, str], key: str, wanted: str) -> str:
    return f"has {key}={labels[key]}, not {wanted}" if key in labels else f"lacks the label {wanted}"


def _text(requirement: NodeSelectorRequirement) -> str:
    key, values = requirement.key, requirement.values
    match requirement.operator:
        case "In" if len(values) == 1:
            return f"{key}={values[0]}"
        case "Exists":
            return key
        case "DoesNotExist":
            return f"without {key}"
    return f"{key} {requirement.operator} ({', '.join(values)})"


def _labelled(case: RejectedNode, unmet: _Unmet) -> ProposedChange | None:
    """The node gets the labels that are missing, and loses those that must not be there."""
    node = case.view.object
    wanted: dict[str, str | None] = dict(unmet.selector)
    for each in unmet.requirements:
        match each.operator:
            case "In":
                wanted[each.key] = each.values[0]
            case "Exists":
                wanted[each.key] = "true"
            case "NotIn" | "DoesNotExist":
                wanted[each.key] = None
            case _:
                return None
    if not wanted or any(key in OF_THE_NODE for key in wanted):
        return None
    labels = {key: value for key, value in {**node.labels, **wanted}.items() if value is not None}
    arguments = [f"{key}={value}" if value is not None else f"{key}-" for key, value in wanted.items()]
    overwrite = ["--overwrite"] if any(key in node.labels for key in wanted) else []
    return ProposedChange(
        f"label {node.name} with {' and '.join(arguments)}"
        if None not in wanted.values()
        else f"change the labels of {node.name}",
        nodes=(with_node_fields(node, labels=labels),),
        command=command("kubectl", "label", "nodes", node.name, *arguments, *overwrite),
    )


def _values(case: RejectedNode, key: str) -> set[str]:
    """Of a label, on all nodes."""
    return {value for view in case.recomputation.state.nodes if (value := view.labels.get(key)) is not None}


def _nowhere(case: RejectedNode, key: str, value: str) -> str:
    """Whether no node has the label, and which ones look like it."""
    values = _values(case, key)
    if value in values:
        return ""
    if values:
        return f", which no node has{similar_words(value, values)}"
    keys = {key for view in case.recomputation.state.nodes for key in view.labels}
    return f", and no node has a label {key}{similar_words(key, keys)}"


def _gone(case: RejectedNode) -> str:
    """Names in the affinity that no node has: as that of a deleted node."""
    required = required_node_selector(case.pod)
    terms = required.node_selector_terms if required is not None else []
    named = {value for term in terms for field in term.match_fields if field.operator == "In" for value in field.values}
    gone = sorted(name for name in named if case.recomputation.view(name) is None)
    return f": {', '.join(gone)} {'does' if len(gone) == 1 else 'do'} not exist" if gone else ""


def _renamed(case: RejectedNode, unmet: _Unmet) -> ProposedChange | None:
    """The selector with a label that nodes have, in place of one that looks like it and that none has."""
    selector = dict(case.pod.spec.node_selector)
    words = []
    for key, value in unmet.selector.items():
        values = _values(case, key)
        if value in values:
            return None
        if values and (near := similar(value, values)):
            selector[key] = near[0]
            words.append(f"{key}={near[0]} in place of {key}={value}")
    if not words:
        return None
    return ProposedChange(
        f"select nodes by {' and '.join(words)}",
        pod=with_spec(case.pod, node_selector=selector),
        manifest={"spec": {"nodeSelector": selector}},
    )


def _unselective(case: RejectedNode, unmet: _Unmet) -> ProposedChange:
    """The pod without what the node does not match."""
    spec = case.pod.spec
    selector = {key: value for key, value in spec.node_selector.items() if key not in unmet.selector}
    dropped = [f"{key}={value}" for key, value in unmet.selector.items()]
    affinity = spec.affinity
    if unmet.requirements or unmet.is_named:
        affinity = _without_required(affinity)
        dropped.append("its required node affinity")
    manifest = {"spec": {"nodeSelector": selector or None}} if unmet.selector else None
    return ProposedChange(
        f"create the pod without {' and '.join(dropped)}",
        pod=with_spec(case.pod, node_selector=selector, affinity=affinity),
        manifest=manifest,
    )


def _without_required(affinity: Affinity | None) -> Affinity | None:
    if affinity is None or affinity.node_affinity is None:
        return affinity
    return msgspec.structs.replace(
        affinity, node_affinity=msgspec.structs.replace(affinity.node_affinity, required=None)
    )
