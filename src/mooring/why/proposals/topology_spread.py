"""PodTopologySpread: which domain has too many pods already, and the skew that would be allowed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from mooring.objects.core import TopologySpreadConstraint
from mooring.plugins.default.pod_topology_spread.plugin import Limit
from mooring.why.changes import ProposedChange, with_spec
from mooring.why.proposals import evictions
from mooring.why.proposals.rejected_node import Gap, RejectedNode

HARD = "DoNotSchedule"


class _Unmet(NamedTuple):
    constraint: TopologySpreadConstraint
    place: int
    """Among all constraints of the pod."""
    there: int | None
    """How many pods are in the node's domain; None: the node lacks the label."""
    most: int
    """How many may be there already."""


def gap(case: RejectedNode) -> Gap:
    unmet = _unmet(case)
    if not unmet:
        return evictions.gap(case)
    parts = []
    for constraint, _, there, most in unmet:
        key = constraint.topology_key
        domain = case.view.labels.get(key, "")
        if there is None:
            parts.append(f"lacks the label {key}")
        else:
            parts.append(
                f"is in {key}={domain}, which has {there} matching pod{'s' * (there != 1)}"
                f" (maxSkew {constraint.max_skew} allows {max(most, 0)} there before this one)"
            )
    return Gap(" and ".join(parts), sum(1000 if there is None else there - most for _, _, there, most in unmet))


def changes(case: RejectedNode) -> Iterator[ProposedChange]:
    """Of the pod: more skew, or the constraint as a preference. Defaults of the configuration are not the pod's."""
    unmet = _unmet(case)
    if not unmet:
        return
    own = list(case.pod.spec.topology_spread_constraints)
    if all(there is not None for _, _, there, _ in unmet):
        skewed = list(own)
        for constraint, place, there, most in unmet:
            assert there is not None
            skewed[place] = msgspec.structs.replace(constraint, max_skew=constraint.max_skew + there - most)
        words = " and ".join(
            f"maxSkew {skewed[each.place].max_skew} of {each.constraint.topology_key}" for each in unmet
        )
        yield _with(case, f"allow {words}", skewed)
    soft = list(own)
    for constraint, place, _, _ in unmet:
        soft[place] = msgspec.structs.replace(constraint, when_unsatisfiable="ScheduleAnyway")
    keys = " and ".join(each.constraint.topology_key for each in unmet)
    yield _with(case, f"make the constraint on {keys} a preference", soft)


def _unmet(case: RejectedNode) -> list[_Unmet]:
    limits: tuple[Limit, ...] = case.cycle.filter_states.get(case.plugin) or ()
    hard = [
        (place, each)
        for place, each in enumerate(case.pod.spec.topology_spread_constraints)
        if each.when_unsatisfiable == HARD
    ]
    if len(hard) != len(limits):
        return []
    found = []
    for (place, constraint), limit in zip(hard, limits, strict=True):
        there = limit.tally.at(case.view)
        if there is None or there > limit.most:
            found.append(_Unmet(constraint, place, there, limit.most))
    return found


def _with(case: RejectedNode, sentence: str, constraints: list[TopologySpreadConstraint]) -> ProposedChange:
    manifest = {"spec": {"topologySpreadConstraints": [_document(each) for each in constraints]}}
    return ProposedChange(sentence, pod=with_spec(case.pod, topology_spread_constraints=constraints), manifest=manifest)


def _document(constraint: TopologySpreadConstraint) -> dict[str, object]:
    """With the fields that the API requires, also where they have their usual values."""
    required: dict[str, object] = {
        "maxSkew": constraint.max_skew,
        "topologyKey": constraint.topology_key,
        "whenUnsatisfiable": constraint.when_unsatisfiable,
    }
    return {**required, **msgspec.to_builtins(constraint)}
