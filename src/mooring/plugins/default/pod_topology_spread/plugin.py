"""PodTopologySpread, the rule: the skew that a pod's domain may have over the emptiest domain.

A hard constraint refuses a node whose domain would hold more than `maxSkew` pods above the lowest count of all domains,
and a node that lacks the constraint's label. Soft constraints prefer domains with fewer pods.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.base.errors import Fault
from mooring.framework import (
    UNRESOLVABLE,
    BoolArray,
    Cycle,
    FeatureGates,
    Hint,
    IntArray,
    NodeRows,
    NodeView,
    Objects,
    Plugin,
    Pod,
    Rejection,
    Rejections,
    Skip,
    Tally,
    constant_score,
)
from mooring.framework.normalizers import HIGHEST_SCORE
from mooring.objects.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from mooring.plugins.default.pod_topology_spread.args import HOSTNAME, PodTopologySpreadArgs
from mooring.plugins.default.pod_topology_spread.constraints import (
    ConstraintReader,
    SpreadConstraint,
    SpreadConstraints,
)
from mooring.plugins.default.pod_topology_spread.queueing_hints import Hints
from mooring.plugins.default.pod_topology_spread.workloads import Workloads

NOT_SPREAD = "node(s) didn't match pod topology spread constraints"
NO_LABEL = f"{NOT_SPREAD} (missing required label)"

NO_DOMAIN = 2**31 - 1
"""What kube-scheduler takes for the lowest count where there is no domain at all."""


class Limit(msgspec.Struct, frozen=True):
    """A hard constraint: how many pods a domain may hold already."""

    tally: Tally
    most: int
    beyond_lowest: int | None
    """How many more than the domain with the fewest; None: that does not matter."""

    def most_at(self, nodes: NodeRows) -> int | IntArray:
        """`most`, in a what-if about these nodes."""
        return self.most if self.beyond_lowest is None else self.beyond_lowest + self.tally.lowest_at(nodes)


class Preference(msgspec.Struct, frozen=True):
    """A soft constraint: what each pod in a node's domain weighs."""

    tally: Tally
    key: str
    weight: float
    allowance: int
    """Added to every domain alike, so that differences matter less the more skew is allowed."""
    in_empty: int
    """Pods on nodes without the label that count for nodes whose label is empty."""
    some_lack_key: bool
    """Whether there are nodes without the label among the feasible ones."""


class Preferences(msgspec.Struct, frozen=True):
    """All soft constraints of a pod."""

    each: Sequence[Preference]
    need_every_key: bool
    """Nodes that lack one of the keys get no score."""
    feasible: NodeRows
    ignored_feasible: BoolArray | None
    """Where feasible nodes are ignored; None: nowhere."""

    def ignores(self, node: NodeView) -> bool:
        return self.need_every_key and any(preference.key not in node.labels for preference in self.each)

    def ignored(self, nodes: NodeRows) -> BoolArray | None:
        """`ignores`, for many nodes at once; None where none is."""
        if not self.need_every_key:
            return None
        if nodes is self.feasible:
            return self.ignored_feasible
        return _lacking_any([preference.tally for preference in self.each if preference.some_lack_key], nodes)


class PodTopologySpread(Plugin):
    """Spread the pods of a workload evenly over topology domains."""

    pod_fields = ("spec.topologySpreadConstraints",)

    def __init__(
        self,
        args: PodTopologySpreadArgs,
        gates: FeatureGates,
        services: Objects[Service],
        replication_controllers: Objects[ReplicationController],
        replica_sets: Objects[ReplicaSet],
        stateful_sets: Objects[StatefulSet],
    ) -> None:
        workloads = Workloads(services, replication_controllers, replica_sets, stateful_sets)
        self._constraints = ConstraintReader(
            args.constraints(), workloads, gates, defaults_need_every_key=not args.is_system
        )

    def events(self) -> Iterable[Hint]:
        return Hints(self._constraints).listed()

    def pre_filter(self, pod: Pod, cycle: Cycle) -> tuple[Limit, ...] | Skip:
        try:
            constraints = self._constraints.hard(pod)
        except Fault as fault:
            raise Fault(f"get constraints from pod: {fault}") from fault
        return tuple([_limit(constraint, pod, cycle) for constraint in constraints]) if constraints else Skip()

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        limits: tuple[Limit, ...] = cycle.filter_state(self)
        for limit in limits:
            there = limit.tally.at(node)
            if there is None:
                return Rejection(NO_LABEL, code=UNRESOLVABLE)
            if there > limit.most:
                return Rejection(NOT_SPREAD)
        return None

    def filter_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> Iterator[Rejections]:
        """`filter`, for many nodes at once."""
        limits: tuple[Limit, ...] = cycle.filter_state(self)
        return _rejections([(limit.tally, limit.most) for limit in limits], nodes)

    def filter_nodes_in_what_if(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> Iterator[Rejections]:
        limits: tuple[Limit, ...] = cycle.filter_state(self)
        return _rejections([(limit.tally, limit.most_at(nodes)) for limit in limits], nodes)

    def pre_score(self, pod: Pod, feasible: NodeRows, cycle: Cycle) -> Preferences | Skip:
        try:
            constraints = self._constraints.soft(pod)
        except Fault as fault:
            raise Fault(f"calculating preScoreState: {fault}") from fault
        if not constraints:
            return Skip()
        return _preferences(constraints, self._constraints.needs_every_key(pod), feasible, cycle)

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        preferences: Preferences = cycle.score_state(self)
        if preferences.ignores(node):
            return 0
        score = 0.0
        for preference in preferences.each:
            there = _there(preference, node)
            if there is not None:
                score += there * preference.weight + preference.allowance
        return int(score + 0.5)

    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> IntArray:
        """`score`, for many nodes at once."""
        preferences: Preferences = cycle.score_state(self)
        ignored = preferences.ignored(nodes)
        if ignored is not None and ignored.all():
            return constant_score(0, nodes)
        scores, *others = [_weighed(preference, nodes) for preference in preferences.each]
        for other in others:
            scores += other
        if ignored is not None:
            scores[ignored] = 0
        # Go rounds halves up. No score lies between 0 and ln 2, where adding a half could lead to the wrong side.
        scores += 0.5
        return scores.astype(np.int64)

    def normalize(self, pod: Pod, nodes: NodeRows, scores: IntArray, cycle: Cycle) -> IntArray:
        """The fewer the better: the lowest raw score becomes 100, and ignored nodes 0."""
        ignored = cycle.score_state(self).ignored(nodes)
        counted = scores if ignored is None else scores[~ignored]
        highest = int(np.maximum.reduce(counted, initial=0))  # `max` is this and a Python call
        if highest == 0:
            normalized = np.full(len(nodes), HIGHEST_SCORE)
        else:
            lowest = int(np.minimum.reduce(counted))
            if ignored is None and highest - lowest < len(scores) // 8:  # few numbers occur: each is computed once
                return _turned(np.arange(lowest, highest + 1), lowest, highest).take(scores - lowest)
            normalized = _turned(scores, lowest, highest)
        if ignored is not None:
            normalized[ignored] = 0
        return normalized


def _rejections(limits: Sequence[tuple[Tally, int | IntArray]], nodes: NodeRows) -> Iterator[Rejections]:
    """Nodes that lack a key, and nodes in domains with more pods than allowed."""
    lacking: BoolArray | None = None
    full: BoolArray | None = None
    rejected: BoolArray | None = None
    for tally, most in limits:
        if rejected is not None and rejected.all():
            break
        if not tally.spans(nodes):
            lacks_key = _but_not(rejected, tally.lacking(nodes))
            lacking, rejected = _or(lacking, lacks_key), _or(rejected, lacks_key)
        is_full = _but_not(rejected, _full(tally, most, nodes))
        full, rejected = _or(full, is_full), _or(rejected, is_full)
    if lacking is not None:
        yield Rejections(lacking, NO_LABEL, unresolvable=True)
    if full is not None:
        yield Rejections(full, NOT_SPREAD)


def _turned(scores: IntArray, lowest: int, highest: int) -> IntArray:
    # As whole numbers: the quotient of two of these sizes, cut off, is exact in floating point.
    turned = (highest + lowest - scores) * float(HIGHEST_SCORE)
    return (turned / highest).astype(np.int64)


def _full(tally: Tally, most: int | IntArray, nodes: NodeRows) -> BoolArray:
    return tally.compute(nodes, lambda there: there > most)


def _or(one: BoolArray | None, other: BoolArray) -> BoolArray:
    return other if one is None else one | other


def _but_not(rejected: BoolArray | None, mask: BoolArray) -> BoolArray:
    return mask if rejected is None else mask & ~rejected


def _limit(constraint: SpreadConstraint, pod: Pod, cycle: Cycle) -> Limit:
    tally = cycle.tally(constraint.pods, constraint.key, constraint.nodes)
    beyond_lowest = constraint.max_skew - constraint.selects(pod.labels)
    if tally.domains < constraint.min_domains:
        return Limit(tally, beyond_lowest, None)
    if not tally.domains:
        return Limit(tally, beyond_lowest + NO_DOMAIN, None)
    return Limit(tally, beyond_lowest + tally.lowest, beyond_lowest)


def _preferences(constraints: SpreadConstraints, need_every_key: bool, feasible: NodeRows, cycle: Cycle) -> Preferences:
    tallies = [cycle.tally(constraint.pods, constraint.key, constraint.nodes) for constraint in constraints]
    with_gaps = [tally for tally in tallies if not tally.spans(feasible)]
    ignored = _lacking_any(with_gaps, feasible) if need_every_key else None
    scored = None if ignored is None else ~ignored
    each = []
    for constraint, tally in zip(constraints, tallies, strict=True):
        has_gaps = tally in with_gaps
        if constraint.key == HOSTNAME:
            domains = len(feasible) if scored is None else int(np.count_nonzero(scored))
        else:
            domains = tally.domains_among(feasible, scored)
            if has_gaps and not need_every_key:
                # Nodes without the label are together a domain, in which those are too whose label is empty.
                domains += not feasible.where_label(constraint.key, _is_empty).any()
        weight = math.log(domains + 2)
        in_empty = 0 if need_every_key else tally.without_key
        each.append(Preference(tally, constraint.key, weight, constraint.max_skew - 1, in_empty, has_gaps))
    return Preferences(each, need_every_key, feasible, ignored)


def _lacking_any(tallies: Iterable[Tally], nodes: NodeRows) -> BoolArray | None:
    """Where a node lacks the key of one of these; None: nowhere."""
    lacking: BoolArray | None = None
    for tally in tallies:
        if lacking is not None and lacking.all():
            break
        lacking = _or(lacking, tally.lacking(nodes))
    return lacking


def _is_empty(value: str | None) -> bool:
    return value == ""


def _there(preference: Preference, node: NodeView) -> int | None:
    """How many pods count against the node; None if it is in no domain."""
    label = node.labels.get(preference.key)
    if label is None:
        return None
    if preference.key == HOSTNAME:  # on the node itself, whatever other nodes have the same host name
        return preference.tally.on(node)
    there = preference.tally.at(node) or 0
    return there if label else there + preference.in_empty


def _weighed(preference: Preference, nodes: NodeRows) -> NDArray[Any]:
    """What the pods in each node's domain weigh together."""
    tally, key, weight, allowance = preference.tally, preference.key, preference.weight, preference.allowance
    if key == HOSTNAME:
        weighed: NDArray[Any] = tally.on_rows(nodes) * weight
        weighed += allowance
    else:
        weighed = tally.compute(nodes, lambda there: there * weight + allowance)
        if (in_empty := preference.in_empty) and (is_empty := nodes.where_label(key, _is_empty)).any():
            weighed[is_empty] = (tally.at_rows(nodes)[is_empty] + in_empty) * weight + allowance
    if preference.some_lack_key:
        weighed[tally.lacking(nodes)] = 0
    return weighed
