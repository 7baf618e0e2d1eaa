"""The first half of a decision: which nodes can run the pod. Which of them is best is decided by scoring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from mooring.base.errors import PluginFault
from mooring.base.log import Log
from mooring.engine.cycle import EngineCycle, Stage
from mooring.engine.decision_cache import ProfileCache
from mooring.engine.evaluation import checked_refusal, run_filter, run_filter_at_once
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.plugin_call import calling, fault, with_reasons
from mooring.engine.profile import FilterPlugin, Profile
from mooring.engine.ranking import Ranking
from mooring.engine.rejected import PluginVerdict, Rejected, RejectionGroup, Step, groups_of_whole_steps
from mooring.engine.what_if_filters import WhatIfFilters
from mooring.framework import (
    UNRESOLVABLE,
    UNSCHEDULABLE,
    BoolArray,
    IntArray,
    OnlyNodes,
    PlacedPod,
    Plugin,
    Refusal,
    Rejection,
    Skip,
)
from mooring.state import NominatedAhead, Rows, RowView, WhatIfRows

log = Log("engine")

FEWEST_NODES_TO_FIND = 100
"""kube-scheduler never samples below this."""


class Feasible(msgspec.Struct):
    """The nodes that passed every filter, and how we know."""

    nodes: Rows
    """The survivors."""
    all_nodes: Rows
    evaluated: int = 0
    next_start: int = 0
    refusal: PluginVerdict | None = None
    """What pre_filter returned, if it refused the pod as a whole."""
    narrowed_by: tuple[str, ...] = ()
    """The plugins whose pre_filter left only some nodes."""
    is_nominated: bool = False
    """Only the node that the pod is nominated to was evaluated, and it passed."""
    steps: list[Step] = msgspec.field(default_factory=list)
    candidates: Rows | None = None
    """All nodes, or those that pre_filters left."""
    evaluated_nodes: Rows | None = None
    """The nodes that filters evaluated: fewer where enough were found earlier."""
    ranking: Ranking | None = None
    """What the first filters let pass, where their results were kept; the steps are those of the filters after them."""
    is_ranking: bool = False
    """Whether the ranking alone decides which nodes are feasible."""
    cache: ProfileCache | None = None
    """The cache that knows what plugins signed of the pod, if filters used it."""

    def rejected(self) -> Rejected:
        """Every node that was evaluated and is not feasible, with the first plugin that rejected it."""
        if self.refusal is not None:
            return Rejected.everywhere(self.all_nodes, self.refusal)
        rejected = Rejected.by_steps(self.all_nodes, self._all_steps())
        if self.evaluated_nodes is not None and len(self.evaluated_nodes) < len(self.all_nodes):
            rejected.clear(self._outside(self.evaluated_nodes))
        if self.narrowed_by and self.candidates is not None:
            rejected.give(self._outside(self.candidates), PluginVerdict("", not_satisfied(self.narrowed_by)))
        return rejected

    def rejected_counts(self) -> dict[str, int]:
        """How many nodes each filter rejected, of those that no filter before it did; PreFilter plugins that left only
        some nodes rejected the others."""
        counts: dict[str, int] = {}
        if self.evaluated_nodes is None or self.candidates is None:
            return counts  # only the nominated node was evaluated
        if len(self.evaluated_nodes) < len(self.candidates):
            return self.rejected().counts_by_plugin()
        if self.narrowed_by and (left_out := len(self.all_nodes) - len(self.candidates)):
            counts = dict.fromkeys(self.narrowed_by, left_out)
        if self.ranking is not None:
            counts |= self.ranking.rejected_counts(self.all_nodes)
        for step in self.steps:
            counts[step.plugin] = counts.get(step.plugin, 0) + int(np.count_nonzero(step.mask))
        return counts

    def groups_of_whole_steps(self, *, named: int) -> list[RejectionGroup] | None:
        """The rejected nodes by verdict, without a verdict per node; None where a filter had several reasons."""
        if self.refusal is not None or self.evaluated_nodes is not self.all_nodes:
            return None
        return groups_of_whole_steps(self.all_nodes, self._all_steps(), named)

    def _all_steps(self) -> list[Step]:
        return self.steps if self.ranking is None else [*self.ranking.steps(self.all_nodes), *self.steps]

    def _outside(self, nodes: Rows) -> BoolArray:
        rows = self.all_nodes.rows
        is_outside = np.ones(int(rows[-1]) + 1, np.bool_)
        is_outside[nodes.rows] = False
        return is_outside.take(rows)


def feasible(
    cycle: EngineCycle,
    start: int = 0,
    *,
    cache: ProfileCache | None = None,
    is_nominated_out: bool = False,
    among: Rows | None = None,
) -> Feasible:
    """Run PreFilter plugins, then Filter plugins on the nodes. `start` is where sampling begins.

    `is_nominated_out`: an extender rejected the node that the pod is nominated to, so all nodes are evaluated.
    `among`: the only nodes that are candidates, without a cache.
    """
    nodes = cycle.state.nodes if among is None else among
    if not len(nodes):
        return Feasible(nodes, nodes, next_start=start)
    narrowed = run_pre_filters(cycle, cache)
    if narrowed.refusal is not None:
        none = nodes.take(np.empty(0, np.int64))
        return Feasible(none, nodes, next_start=start, refusal=narrowed.refusal, narrowed_by=narrowed.by)
    nominated = None if is_nominated_out else _nominated(cycle, narrowed, among)
    if nominated is not None:
        return Feasible(nominated, nodes, evaluated=1, next_start=start, is_nominated=True)
    return _filtered(cycle, nodes, narrowed, start, cache)


class Narrowed(msgspec.Struct):
    """What pre_filters left: a refusal, or the names of the only nodes to evaluate (None: all)."""

    refusal: PluginVerdict | None = None
    only: set[str] | None = None
    by: tuple[str, ...] = ()


def run_pre_filters(cycle: EngineCycle, cache: ProfileCache | None = None) -> Narrowed:
    """Every PreFilter plugin in order. After unschedulable the others still run; unresolvable ends it."""
    cycle.stage = Stage.PRE_FILTER
    narrowed = Narrowed()
    with calling(cycle, None, ExtensionPoint.PRE_FILTER) as call:
        plugins = cycle.profile.pre_filters if cache is None else cache.begin(cycle, call)
        skipped, states, is_timed = cycle.skipped_filters, cycle.filter_states, cycle.times_plugins
        for plugin in plugins:
            # States that cannot have changed are there: of pods of the same template, or in a what-if of this pod,
            # where plugins that skipped still skip.
            if plugin.name in skipped or plugin.name in states:
                if is_timed:
                    call.switch_to(plugin)
                continue
            call.switch_to(plugin)
            result = plugin.pre_filter(cycle.pod, cycle.shown)
            if isinstance(result, Skip):
                skipped.add(plugin.name)
            elif isinstance(result, Refusal):
                result = with_reasons(plugin, ExtensionPoint.PRE_FILTER, result)
                narrowed.refusal = PluginVerdict(plugin.name, result)
                if result.code is not UNSCHEDULABLE:
                    narrowed.by = ()  # this plugin alone is the one whose events may help
                    return narrowed
            elif isinstance(result, OnlyNodes):
                _narrow(narrowed, cycle, plugin, result)
                if not narrowed.only:
                    return narrowed
            else:
                states[plugin.name] = result
    if cache is not None and narrowed.refusal is None:
        cache.pre_filtered(cycle)
    return narrowed


def _narrow(narrowed: Narrowed, cycle: EngineCycle, plugin: Plugin, result: OnlyNodes) -> None:
    """Only nodes that every plugin with an `OnlyNodes` named are left."""
    names = _names(plugin, result)
    cycle.filter_states[plugin.name] = result.state
    cycle.limits[plugin.name] = names
    narrowed.only = names if narrowed.only is None else narrowed.only & names
    narrowed.by = (*narrowed.by, plugin.name)
    if not narrowed.only:
        narrowed.refusal = PluginVerdict("", Refusal(_no_node_in_common(narrowed.by), code=UNRESOLVABLE))


def _names(plugin: Plugin, result: OnlyNodes) -> set[str]:
    if isinstance(result.names, str):  # its letters are not what was meant
        raise fault(
            plugin, ExtensionPoint.PRE_FILTER, f"OnlyNodes({result.names!r}) must be given a collection of names"
        )
    return set(result.names)


def not_satisfied(plugins: tuple[str, ...]) -> Rejection:
    """The rejection of a node that these plugins' pre_filters left out."""
    return Rejection(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}]", code=UNRESOLVABLE)


def _no_node_in_common(plugins: tuple[str, ...]) -> str:
    if len(plugins) == 1:
        return f"node(s) didn't satisfy plugin {plugins[0]}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously"


def _nominated(cycle: EngineCycle, narrowed: Narrowed, among: Rows | None = None) -> Rows | None:
    """The nominated node alone, if it (still) passes: then no other is evaluated."""
    name = cycle.pod.status.nominated_node_name
    view = cycle.state.node(name) if name else None
    if view is None or (narrowed.only is not None and view.name not in narrowed.only):
        return None
    if among is not None and view.row not in among.rows:
        return None
    try:
        passed = passing(cycle, cycle.nodes.of_rows(np.array([view.row])), [])
    except PluginFault as problem:
        log.error("Evaluation failed on nominated node", pod=cycle.pod, node=name, err=problem)
        return None
    return passed if len(passed) else None


def _filtered(cycle: EngineCycle, nodes: Rows, narrowed: Narrowed, start: int, cache: ProfileCache | None) -> Feasible:
    candidates = nodes if narrowed.only is None else nodes.where(_named(nodes, narrowed.only))
    found = Feasible(candidates, nodes, narrowed_by=narrowed.by, candidates=candidates, evaluated_nodes=candidates)
    count = len(candidates)
    wanted = nodes_to_find(cycle.profile, count)
    if wanted >= count:
        found.nodes = _with_nominated(cycle, candidates, found.steps)
        found.nodes = _passing(cycle, found, cache)
        found.evaluated = count
    else:
        _sample(cycle, found, candidates, wanted, start)
    found.next_start = (start + found.evaluated) % len(nodes)
    return found


def _named(nodes: Rows, names: set[str]) -> BoolArray:
    return np.fromiter((name in names for name in nodes.names), np.bool_, len(nodes))


def nodes_to_find(profile: Profile, count: int) -> int:
    """After how many feasible nodes the search may end."""
    share = profile.percentage_of_nodes_to_score
    if share is None:
        return count
    if not profile.scorers and not profile.is_extended:
        return 1
    if count < FEWEST_NODES_TO_FIND:
        return count
    if share == 0:
        share = max(5, 50 - count // 125)
    return min(count, max(FEWEST_NODES_TO_FIND, count * share // 100))


def _sample(cycle: EngineCycle, found: Feasible, candidates: Rows, wanted: int, start: int) -> None:
    """Go round from `start` until enough nodes are feasible; evaluated in chunks, counted one by one."""
    order = np.roll(np.arange(len(candidates)), -(start % len(candidates)))
    size = max(wanted, FEWEST_NODES_TO_FIND)
    passed: list[Any] = []
    for offset in range(0, len(order), size):
        chunk = candidates.take(order[offset : offset + size])
        survivors = passing(cycle, chunk, found.steps).rows
        missing = wanted - sum(map(len, passed))
        passed.append(survivors[:missing])
        if len(survivors) >= missing:
            # kube-scheduler evaluates one node after the other: those behind the last one needed do not count.
            last = int(np.flatnonzero(chunk.rows == survivors[missing - 1])[0])
            found.evaluated += last + 1
            break
        found.evaluated += len(chunk)
    found.evaluated_nodes = candidates.take(order[: found.evaluated])
    found.nodes = candidates.of_rows(np.concatenate(passed))


def passing(cycle: EngineCycle, nodes: Rows, steps: list[Step]) -> Rows:
    """Those nodes that no filter rejects; what each filter rejected is added to the steps.

    Where pods of higher or equal priority are nominated, filters must accept the node with them there and without.
    """
    return _passing(cycle, Feasible(_with_nominated(cycle, nodes, steps), nodes, steps=steps), None)


def _with_nominated(cycle: EngineCycle, nodes: Rows, steps: list[Step]) -> Rows:
    """The nodes that filters accept with the pods that are nominated to them."""
    if not cycle.state.nominations.nodes:
        return nodes
    ahead = cycle.state.nominated_ahead_of(cycle.pod)
    is_candidate = slice(None) if nodes is cycle.nodes else np.isin(ahead.rows, nodes.rows)
    places = np.arange(len(ahead.rows))[is_candidate]
    if len(places) > 1:
        places, refused = _refused_among_nominated(cycle, ahead, places)
        for step in refused:
            steps.append(step)
            nodes = nodes.without_rows(step.rows[step.mask])
    for row in ahead.rows.take(places).tolist():
        view = cycle.state.views[row]
        if view is not None and (verdict := refusal_among_nominated(cycle, view)) is not None:
            plugin, refusal = verdict
            at = np.array([row])
            steps.append(Step(plugin, at, np.ones(1, np.bool_), one_by_one={0: refusal}))
            nodes = nodes.without_rows(at)
    return nodes


def _refused_among_nominated(
    cycle: EngineCycle, ahead: NominatedAhead, places: IntArray
) -> tuple[IntArray, list[Step]]:
    """`refusal_among_nominated` for many nodes at once: the places that are left to it, and the rejections.

    Preemption may nominate hundreds of pods. Pods with affinity to others are left to a what-if of their own: the
    PreFilter state does not count their terms.
    """
    filters = WhatIfFilters(cycle)
    if not filters.are_states_valid:
        return places, []
    has_affinity = ahead.has_affinity.take(places)
    left, places = places[has_affinity], places[~has_affinity]
    nodes = cycle.nodes.of_rows(ahead.rows.take(places))
    steps, passing = filters.run(WhatIfRows(nodes, ahead.addition, places))
    if not passing.are_certain:
        left = np.sort(np.concatenate([left, passing.places]))
    return left, steps


def _ahead(cycle: EngineCycle, view: RowView) -> list[PlacedPod]:
    """The pods nominated to the node that count as being there."""
    pod = cycle.pod
    return [
        nominated
        for nominated in cycle.state.nominations.at(view.name)
        if nominated.priority >= pod.priority and nominated.uid != pod.uid
    ]


def refusal_among_nominated(cycle: EngineCycle, view: RowView) -> PluginVerdict | None:
    """Why the node is infeasible with the pods that are nominated to it."""
    pod, ahead = cycle.pod, _ahead(cycle, view)
    if not ahead:
        return None
    with cycle.state.what_if(view.name, adding=ahead):
        in_what_if = cycle.for_what_if(pod)
        narrowed = run_pre_filters(in_what_if)
        if narrowed.refusal is not None:
            return narrowed.refusal
        return first_refusal(in_what_if, view, cycle.profile.filterers)


def first_refusal(cycle: EngineCycle, view: RowView, filterers: Sequence[FilterPlugin]) -> PluginVerdict | None:
    """The rejection of the first of these filters that rejects the node; pre_filters have run."""
    cycle.stage = Stage.FILTER
    for filterer in filterers:
        if filterer.name in cycle.skipped_filters:
            continue
        cycle.plugin = filterer.name
        try:
            refusal = _run_filter_on_one(filterer, cycle, view)
        except BaseException:
            # Entered only when something was raised: one preemption runs this thousands of times.
            with calling(cycle, filterer.plugin, ExtensionPoint.FILTER):
                raise
        if refusal is not None:
            return PluginVerdict(filterer.name, refusal)
    return None


def _run_filter_on_one(filterer: FilterPlugin, cycle: EngineCycle, view: RowView) -> Refusal | None:
    if filterer.one_by_one is None:
        node = cycle.nodes.of_rows(np.array([view.row]))
        step = run_filter_at_once(filterer, cycle, node)
        return None if step is None else Rejected.by_steps(node, [step])[view.name][1]
    result = filterer.one_by_one(cycle.pod, view, cycle.shown)
    return None if result is None else checked_refusal(filterer, view, result)


def _passing(cycle: EngineCycle, found: Feasible, cache: ProfileCache | None) -> Rows:
    """Those of the nodes found so far that no filter rejects, without nominated pods."""
    cycle.stage = Stage.FILTER
    nodes, skipped = found.nodes, cycle.skipped_filters
    with calling(cycle, None, ExtensionPoint.FILTER) as call:
        if cache is not None:
            found.cache = cache
            if nodes is found.all_nodes:
                found.ranking = cache.ranking(cycle, call)
        filterers: Sequence[FilterPlugin]
        if found.ranking is not None:
            nodes, filterers = found.ranking.nodes(nodes), found.ranking.others
        else:
            filterers = [filterer for filterer in cycle.profile.filterers if filterer.name not in skipped]
        found.is_ranking = found.ranking is not None
        for filterer in filterers if len(nodes) else ():
            call.switch_to(filterer.plugin)
            column = cache.filter_column(filterer, cycle) if cache is not None else None
            step = column.step(nodes) if column is not None else run_filter(filterer, cycle, nodes)
            if step is not None:
                found.steps.append(step)
                found.is_ranking = False
                nodes = nodes.without(step.mask)
                if not len(nodes):
                    break
    return nodes
