"""The fewest nodes of given kinds to add so that a whole workload is placed.

A number of nodes is tried by simulating the workload on the cluster with those nodes. More nodes do not always place
more pods (a new zone can break a spread constraint), so the search trusts no such rule in its result: what it returns
has been simulated, and so has one node fewer of each kind.

1. The nodes of all kinds are doubled until everything is placed, up to a node of each kind for each pod.
2. Each kind is reduced in turn, by bisection, until no node can be left out; in several orders of the kinds.
3. What is cheaper and has enough CPU, memory and pods in sum is simulated, cheapest first, if it is not too much. Then
   the result is proven to be the cheapest.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from fractions import Fraction
from functools import partial
from typing import Any

import msgspec

from mooring.base.errors import OperatorMistake
from mooring.config import Configuration
from mooring.engine import Decision
from mooring.framework import FeatureGates, Pod
from mooring.framework.points import Point
from mooring.framework.registry import Registry
from mooring.objects.requests import in_units, requests_on_node
from mooring.simulator.configurations import AnyConfiguration, PluginSource, configured, registry_of
from mooring.simulator.outcome import NOT_TRIED, SimulationResult
from mooring.simulator.outside_data import OutsideData
from mooring.simulator.planning.node_kinds import NodeKind, read_node_kind
from mooring.simulator.scenario import Arrival, Cluster, Workload, check_cluster
from mooring.simulator.serving_profiles import profile_names, unserved_note
from mooring.simulator.simulation import Ties, simulate

MAX_WAIT_SECONDS = 10.0
"""A pod is placed if it is bound so soon after its arrival: preemption takes a retry or two."""
MOST_PROOFS = 32
"""So many simulations are run to prove a result, at most."""
MOST_ORDERS = 6
MOST_NAMED = 20
"""Unplaced pods that a trial names."""
NATIVE = ("cpu", "memory", "ephemeral-storage")
PODS = "pods"
APART_SECONDS = 3600.0
_INDEPENDENT = frozenset(
    [
        *("NodeResourcesFit", "NodeAffinity", "NodeName", "TaintToleration", "NodeUnschedulable"),
        *("VolumeBinding", "VolumeZone", "DynamicResources"),
    ]
)
"""What these plugins reject does not depend on other pods that arrive."""

Counts = tuple[int, ...]
"""How many nodes of each kind are added."""


class UnplacedPod(msgspec.Struct, frozen=True, rename="camel"):
    """A pod that is not placed, and why."""

    pod: str
    message: str


class CapacityTrial(msgspec.Struct, frozen=True, rename="camel"):
    """The workload, simulated with some nodes more."""

    nodes: dict[str, int]
    """By kind."""
    unplaced: int
    examples: list[UnplacedPod]
    evicted: list[str]
    """Pods of the cluster that were preempted."""


class CapacityPlan(msgspec.Struct, frozen=True, rename="camel"):
    """What to add."""

    trial: CapacityTrial
    """The simulation of it. If pods are unplaced in it, no number of nodes was found."""
    total: int
    cost: float
    is_proven: bool
    """Everything that is cheaper was simulated, or lacks resources in sum: it does not suffice."""
    least: int
    """So many nodes are needed for the sum of the requests alone, at least; 0 where that is not known."""
    one_fewer: list[CapacityTrial]
    """With one node of a kind less: none of them places everything."""
    runs: int
    """Simulations."""

    @property
    def suffices(self) -> bool:
        return not self.trial.unplaced


class CapacityResult(msgspec.Struct, frozen=True, rename="camel"):
    """What to add so that everything is placed."""

    pods: int
    """That are to be placed."""
    unfit: list[UnplacedPod]
    """Pods that no kind of node can run, also if it is empty: one of each template."""
    impossible: list[UnplacedPod]
    """Those of them that do not fit into the cluster, either; then nothing else was tried."""
    without_preemption: CapacityPlan | None = None
    with_preemption: CapacityPlan | None = None
    notes: list[str] = []
    """What the result does not account for."""

    @property
    def suffices(self) -> bool:
        """Nodes were found that place everything, without evicting anything."""
        return self.without_preemption is not None and self.without_preemption.suffices


Simulate = Callable[..., SimulationResult]
"""`simulate`, with all options that are the same in each run."""

Progress = Callable[[CapacityTrial], None]
"""Called after each simulation."""


def capacity(
    cluster: Cluster,
    workload: Sequence[Arrival],
    kinds: Sequence[str | NodeKind],
    configuration: AnyConfiguration = None,
    *,
    costs: Sequence[float] | None = None,
    pending: bool = False,
    max_wait: float = MAX_WAIT_SECONDS,
    proofs: int = MOST_PROOFS,
    plugins: Sequence[PluginSource] = (),
    registry: Registry | None = None,
    gates: FeatureGates | None = None,
    ties: Ties = None,
    outside_data: OutsideData | None = None,
    progress: Progress | None = None,
) -> CapacityResult:
    """The fewest nodes of these kinds, or the cheapest by `costs`, so that every pod of the workload is placed.

    A pod is placed if it is bound within `max_wait` seconds of its arrival and not preempted. With `pending`, pods that
    are pending in the cluster are to be placed, too, if a profile serves them; otherwise they only compete.
    `outside_data` is what plugins fetched of other systems; None: nothing of it is known.
    """
    check_cluster(cluster, "capacity(cluster, workload, kinds)")
    if isinstance(workload, Workload):
        cluster = cluster.with_documents(workload.documents)
    chosen = [read_node_kind(each, cluster) if isinstance(each, str) else each for each in kinds]
    _check(chosen, costs)
    registry = registry if registry is not None else registry_of(plugins, configuration)
    loaded = configured(configuration, registry, plugins, gates)
    required = [arrival.pod for arrival in workload]
    served = profile_names(loaded)
    if unserved := [name for pod in required if (name := pod.spec.scheduler_name) not in served]:
        raise OperatorMistake(unserved_note(unserved, loaded))
    if pending:
        waiting = [pod for pod in cluster.pods if not pod.spec.node_name]
        required += [pod for pod in waiting if pod.spec.scheduler_name in served]
        if waiting and not required:
            raise OperatorMistake(unserved_note([pod.spec.scheduler_name for pod in waiting], loaded))
    if not required:
        raise OperatorMistake("There is no pod to place: the workload is empty, and no pending pod is to be placed.")

    notes: dict[str, None] = {}

    def run(*given: Any, **options: Any) -> SimulationResult:
        outcome = simulate(
            *given,
            registry=registry,
            gates=gates,
            influence=False,
            outside_data=outside_data or OutsideData(),
            **options,
        )
        if outcome.is_interrupted:
            raise KeyboardInterrupt
        notes.update(dict.fromkeys(outcome.notes))
        return outcome

    def search(configuration: Configuration, *, preempts: bool) -> _Search:
        tied = partial(run, configuration=configuration, ties=ties)
        runs = _Simulations(cluster, list(workload), required, chosen, tied, max_wait, progress)
        bound = _Bound(cluster, list(workload), required, chosen, loaded, max_wait, preempts=preempts)
        return _Search(runs, bound, [Fraction(str(cost)) for cost in costs or [1] * len(chosen)], proofs)

    quiet = without_preemption(loaded)
    refused_alone = partial(_refused_alone, cluster, chosen, run=partial(run, configuration=quiet))
    unfit = refused_alone(required, only_new=True)
    templates = {pod.template for pod in required if pod.key in unfit}
    alike = {pod.key for pod in required if pod.template in templates}
    impossible = refused_alone([pod for pod in required if pod.key in unfit], only_new=False) if unfit else {}
    can_preempt = _can_preempt(cluster, required)
    without = with_ = None
    if not impossible:
        without = with_ = search(quiet, preempts=False).plan(alike)
    if can_preempt:
        with_ = search(loaded, preempts=True).plan(alike)
    return CapacityResult(len(required), _named(unfit), _named(impossible), without, with_, list(notes))


def _named(found: Mapping[str, str]) -> list[UnplacedPod]:
    return [UnplacedPod(pod, message) for pod, message in found.items()]


def _check(kinds: Sequence[NodeKind], costs: Sequence[float] | None) -> None:
    if not kinds:
        raise OperatorMistake("No kind of node to add was given.")
    names = [kind.name for kind in kinds]
    if len(set(names)) < len(names):
        raise OperatorMistake(f"A kind of node was given twice: {', '.join(names)}.")
    if costs is not None and len(costs) != len(kinds):
        raise OperatorMistake(f"There are {len(kinds)} kinds of nodes and {len(costs)} costs; give one for each.")
    if costs is not None and min(costs) <= 0:
        raise OperatorMistake(f"The cost of a node must be greater than 0, got {min(costs):g}.")


def without_preemption(configuration: Configuration) -> Configuration:
    """The configuration without PostFilter: no plugin makes room."""
    profiles = tuple(
        dataclasses.replace(profile, points={**profile.points, Point.POST_FILTER: ()})
        for profile in configuration.profiles
    )
    return dataclasses.replace(configuration, profiles=profiles)


def _can_preempt(cluster: Cluster, required: Sequence[Pod]) -> bool:
    """Some pod has a higher priority than another: otherwise preemption changes nothing."""
    priorities = [pod.priority for pod in required]
    return max(priorities) > min([*priorities, *(pod.priority for pod in cluster.pods)])


# Simulations


class _Simulations:
    """The workload on the cluster with some nodes more; each number of nodes is simulated once."""

    def __init__(
        self,
        cluster: Cluster,
        arrivals: list[Arrival],
        required: Sequence[Pod],
        kinds: Sequence[NodeKind],
        simulate: Simulate,
        max_wait: float,
        progress: Progress | None,
    ) -> None:
        self._cluster = cluster
        self._arrivals = arrivals
        self.required = {pod.key for pod in required}
        self.kinds = kinds
        self._simulate = simulate
        self._max_wait = max_wait
        self._progress = progress
        self.done: dict[Counts, CapacityTrial] = {}
        self._unplaced: dict[Counts, frozenset[str]] = {}

    def run(self, counts: Counts) -> CapacityTrial:
        if (known := self.done.get(counts)) is not None:
            return known
        cluster = self._cluster
        for kind, count in zip(self.kinds, counts, strict=True):
            cluster = kind.added_to(cluster, count)
        outcome = self._simulate(cluster, self._arrivals)
        unplaced = [
            UnplacedPod(pod.key, self._why(pod.waited_seconds, pod.message, is_preempted=pod.is_preempted))
            for pod in outcome.pods
            if pod.key in self.required
            and (pod.waited_seconds is None or pod.waited_seconds > self._max_wait or pod.is_preempted)
        ]
        trial = CapacityTrial(
            {kind.name: count for kind, count in zip(self.kinds, counts, strict=True)},
            len(unplaced),
            unplaced[:MOST_NAMED],
            [each.victim for each in outcome.evictions if each.victim not in self.required],
        )
        self.done[counts] = trial
        self._unplaced[counts] = frozenset(pod.pod for pod in unplaced)
        if self._progress is not None:
            self._progress(trial)
        return trial

    def _why(self, waited: float | None, message: str, *, is_preempted: bool) -> str:
        if is_preempted:
            return "it was preempted"
        return message or NOT_TRIED if waited is None else f"it waited {waited:,.0f} s"

    def suffices(self, counts: Counts) -> bool:
        return not self.run(counts).unplaced

    def unplaced(self, counts: Counts) -> Set[str]:
        """The keys of all pods that are not placed."""
        self.run(counts)
        return self._unplaced[counts]


def _refused_alone(
    cluster: Cluster,
    kinds: Sequence[NodeKind],
    pods: Sequence[Pod],
    *,
    only_new: bool,
    run: Simulate,
) -> dict[str, str]:
    """Pods that run neither on the cluster nor on an empty node of any kind, whatever arrives besides, and why.

    One pod of each template arrives at a time, alone, and has ended when the next arrives.
    """
    known = {node.name for node in cluster.nodes} if only_new else set()
    for kind in kinds:
        cluster = kind.added_to(cluster, 1)
    by_template: dict[object, Pod] = {}
    for pod in pods:
        by_template.setdefault(pod.template, pod)
    alone = list(by_template.values())
    rejecting: dict[str, frozenset[str]] = {}

    def decided(pod: Pod, decision: Decision, _: float) -> None:
        if decision.node is None and pod.key not in rejecting:
            rejecting[pod.key] = frozenset(plugin for plugin, _ in decision.rejections.values())

    nodes = [node for node in cluster.nodes if node.name not in known]
    # Not those that are pending: they may be among those to place.
    placed = [pod for pod in cluster.pods if pod.spec.node_name and pod.spec.node_name not in known]
    outcome = run(
        msgspec.structs.replace(cluster, nodes=nodes, pods=placed),
        [Arrival(number * APART_SECONDS, pod, 1.0) for number, pod in enumerate(alone)],
        on_decided=decided,
    )
    return {
        pod.key: pod.message
        for pod in outcome.pending
        if (plugins := rejecting.get(pod.key)) and plugins <= _INDEPENDENT
    }


# What the sum of the requests needs


class _Bound:
    """A condition that every sufficient number of nodes fulfils: enough of each resource in sum, at the peak."""

    def __init__(
        self,
        cluster: Cluster,
        arrivals: Sequence[Arrival],
        required: Sequence[Pod],
        kinds: Sequence[NodeKind],
        configuration: Configuration,
        max_wait: float,
        *,
        preempts: bool,
    ) -> None:
        self._needed: dict[str, int] = {}
        self._offered: list[dict[str, int]] = []
        fits = [PODS, *NATIVE]
        if not all(_uses_fit(profile.points) for profile in configuration.profiles):
            return
        demand = _peak(arrivals, required, max_wait)
        highest = max(pod.priority for pod in required)
        free = _free(cluster, lambda pod: not preempts or pod.priority >= highest)
        self._needed = {each: demand.get(each, 0) - free.get(each, 0) for each in fits}
        for kind in kinds:
            more = kind.added_to(cluster, 1)
            added = msgspec.structs.replace(
                more, nodes=more.nodes[len(cluster.nodes) :], pods=more.pods[len(cluster.pods) :]
            )
            self._offered.append(_free(added, lambda _: True))

    def allows(self, counts: Counts) -> bool:
        return all(
            sum(count * offer.get(resource, 0) for count, offer in zip(counts, self._offered, strict=True)) >= needed
            for resource, needed in self._needed.items()
            if needed > 0
        )

    @property
    def least(self) -> int:
        """Of any kinds."""
        least = 0
        for resource, needed in self._needed.items():
            most = max((offer.get(resource, 0) for offer in self._offered), default=0)
            if needed > 0 and most > 0:
                least = max(least, -(-needed // most))
        return least


def _uses_fit(points: Mapping[Point, Sequence[object]]) -> bool:
    return any(getattr(use, "name", "") == "NodeResourcesFit" for use in points[Point.FILTER])


def _peak(arrivals: Sequence[Arrival], required: Sequence[Pod], max_wait: float) -> dict[str, int]:
    """What the pods request at the same time, however long each waits within its limit."""
    durations = {arrival.pod.key: arrival for arrival in arrivals}
    changes: list[tuple[float, int, Pod]] = []
    for pod in required:
        arrival = durations.get(pod.key)
        at, duration = (arrival.at, arrival.duration) if arrival is not None else (0.0, None)
        if duration is None:
            changes.append((at + max_wait, 1, pod))
        elif duration > max_wait:
            changes += [(at + max_wait, 1, pod), (at + duration, -1, pod)]
    now: dict[str, int] = {}
    peak: dict[str, int] = {}
    for _, sign, pod in sorted(changes, key=lambda change: change[:2]):
        for resource, amount in {**pod.requests.amounts, PODS: 1}.items():
            now[resource] = now.get(resource, 0) + sign * amount
            peak[resource] = max(peak.get(resource, 0), now[resource])
    return peak


def _free(cluster: Cluster, stays: Callable[[Pod], bool]) -> dict[str, int]:
    """What nodes offer in sum, without what these pods take."""
    free: dict[str, dict[str, int]] = {}
    for node in cluster.nodes:
        free[node.name] = {**in_units(node.status.allocatable), PODS: int(node.status.allocatable.get(PODS, 0))}
    for pod in cluster.pods:
        if (left := free.get(pod.spec.node_name)) is not None and stays(pod):
            for resource, amount in {**requests_on_node(pod).amounts, PODS: 1}.items():
                left[resource] = left.get(resource, 0) - amount
    total: dict[str, int] = {}
    for left in free.values():
        for resource, amount in left.items():
            total[resource] = total.get(resource, 0) + max(0, amount)
    return total


# The search


class _Search:
    def __init__(self, simulations: _Simulations, bound: _Bound, costs: Sequence[Fraction], proofs: int) -> None:
        self._run = simulations
        self._bound = bound
        self._costs = costs
        self._proofs = proofs
        self._kinds = len(simulations.kinds)

    def plan(self, unfit: Set[str]) -> CapacityPlan:
        """What to add. `unfit`: pods that run on no kind of node."""
        none: Counts = (0,) * self._kinds
        if unfit and unfit >= self._run.unplaced(none) != set():
            return self._planned(none, is_proven=False)  # what is not placed now fits on no node that is added
        if self._bound.allows(none) and self._run.suffices(none):
            return self._planned(none, is_proven=True)
        start = self._enough()
        if start is None:
            return self._planned(max(self._run.done, key=sum), is_proven=False)
        orders = itertools.islice(itertools.permutations(range(self._kinds)), MOST_ORDERS)
        best = min((self._reduced(start, order) for order in orders), key=self._rank)
        cheaper = sorted(itertools.islice(self._cheaper(best), self._proofs + 1), key=self._rank)
        if len(cheaper) > self._proofs:
            return self._planned(best, is_proven=False)
        return self._planned(next((each for each in cheaper if self._run.suffices(each)), best), is_proven=True)

    def _rank(self, counts: Counts) -> tuple[Fraction, int, Counts]:
        return (self._cost(counts), sum(counts), counts)

    def _cost(self, counts: Counts) -> Fraction:
        return sum((count * cost for count, cost in zip(counts, self._costs, strict=True)), Fraction(0))

    def _enough(self) -> Counts | None:
        """So many nodes of every kind that everything is placed; None: not even with a node of each for each pod."""
        most = len(self._run.required)
        count = max(1, min(most, self._bound.least // self._kinds))
        while True:
            counts: Counts = (count,) * self._kinds
            if self._bound.allows(counts) and self._run.suffices(counts):
                return counts
            if count >= most:
                self._run.run(counts)
                return None
            count = min(most, 2 * count)

    def _reduced(self, counts: Counts, order: Sequence[int]) -> Counts:
        """Without nodes that can be left out, the kinds in this order."""
        while True:
            before = counts
            for kind in order:
                counts = self._bisected(counts, kind)
            if counts == before:
                return counts

    def _bisected(self, counts: Counts, kind: int) -> Counts:
        """With fewer nodes of this kind: a number that suffices, where one less does not."""
        low, high = -1, counts[kind]
        # Most often the last step was the last: one less does not suffice.
        if high == 0 or not self._suffices_with(counts, kind, high - 1):
            return counts
        high -= 1
        while high - low > 1:
            middle = (low + high) // 2
            if self._suffices_with(counts, kind, middle):
                high = middle
            else:
                low = middle
        return _with(counts, kind, high)

    def _suffices_with(self, counts: Counts, kind: int, count: int) -> bool:
        changed = _with(counts, kind, count)
        return self._bound.allows(changed) and self._run.suffices(changed)

    def _cheaper(self, best: Counts) -> Iterator[Counts]:
        """All numbers of nodes that cost less, or as much with fewer nodes, have enough in sum, and are not known to
        fail."""
        limit = self._rank(best)[:2]

        def extended(counts: Counts) -> Iterator[Counts]:
            kind = len(counts)
            if kind == self._kinds:
                yield counts
                return
            left = limit[0] - self._cost((*counts, *(0,) * (self._kinds - kind)))
            for count in range(int(left / self._costs[kind]) + 1):
                yield from extended((*counts, count))

        for counts in extended(()):
            known = self._run.done.get(counts)
            if self._rank(counts)[:2] < limit and (known is None or not known.unplaced) and self._bound.allows(counts):
                yield counts

    def _planned(self, counts: Counts, *, is_proven: bool) -> CapacityPlan:
        trial = self._run.run(counts)
        fewer = (
            [self._run.run(_with(counts, kind, count - 1)) for kind, count in enumerate(counts) if count]
            if not trial.unplaced
            else []
        )
        return CapacityPlan(
            trial,
            sum(counts),
            float(self._cost(counts)),
            is_proven and not trial.unplaced,
            self._bound.least,
            fewer,
            len(self._run.done),
        )


def _with(counts: Counts, kind: int, count: int) -> Counts:
    return (*counts[:kind], count, *counts[kind + 1 :])
