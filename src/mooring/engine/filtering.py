"""The first half of a decision: which nodes can run the pod. Decides nothing about which is best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mooring.base.errors import PluginFault
from mooring.base.log import Log
from mooring.engine.cycle import EngineCycle, Stage
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.plugin_call import calling, fault, with_reasons
from mooring.engine.profile import FilterPlugin, Profile
from mooring.engine.rejected import Rejected, Step, Verdict
from mooring.framework import (
    UNRESOLVABLE,
    UNSCHEDULABLE,
    BoolArray,
    OnlyNodes,
    Plugin,
    Refusal,
    Rejection,
    Rejections,
    Skip,
)
from mooring.state import Rows, RowView

log = Log("engine")

FEWEST_NODES_TO_FIND = 100
"""kube-scheduler never samples below this."""


@dataclass(slots=True)
class Feasible:
    """The nodes that passed every filter, and how we know."""

    nodes: Rows
    """The survivors."""
    all_nodes: Rows
    evaluated: int = 0
    next_start: int = 0
    refusal: Verdict | None = None
    """What pre_filter said, if it refused the pod as a whole."""
    narrowed_by: tuple[str, ...] = ()
    """The plugins that named the only nodes to look at."""
    is_nominated: bool = False
    """Only the node that the pod is nominated to was looked at, and it passed."""
    steps: list[Step] = field(default_factory=list)
    asked: Rows | None = None
    """The nodes that came into question: all, or those that pre_filters named."""
    looked_at: Rows | None = None
    """The nodes that filters were asked about: fewer where enough were found earlier."""

    def rejected(self) -> Rejected:
        """Every node that was looked at and is not feasible, with the first plugin that said so."""
        if self.refusal is not None:
            return Rejected.everywhere(self.all_nodes, self.refusal)
        rejected = Rejected.by_steps(self.all_nodes, self.steps)
        if self.looked_at is not None and len(self.looked_at) < len(self.all_nodes):
            rejected.clear(self._outside(self.looked_at))
        if self.narrowed_by and self.asked is not None:
            rejected.give(self._outside(self.asked), Verdict("", not_satisfied(self.narrowed_by)))
        return rejected

    def _outside(self, nodes: Rows) -> BoolArray:
        return np.isin(self.all_nodes.rows, nodes.rows, invert=True)


def feasible(cycle: EngineCycle, start: int = 0, *, is_nominated_out: bool = False) -> Feasible:
    """Ask pre_filters about the pod, then filters about nodes. `start` is where sampling begins.

    `is_nominated_out`: the node that the pod is nominated to is one of many, because somebody else refused it.
    """
    nodes = cycle.nodes
    if not len(nodes):
        return Feasible(nodes, nodes, next_start=start)
    narrowed = ask_pre_filters(cycle)
    if narrowed.refusal is not None:
        nobody = nodes.take(np.empty(0, np.int64))
        return Feasible(nobody, nodes, next_start=start, refusal=narrowed.refusal, narrowed_by=narrowed.by)
    nominated = None if is_nominated_out else _nominated(cycle, narrowed)
    if nominated is not None:
        return Feasible(nominated, nodes, evaluated=1, next_start=start, is_nominated=True)
    return _filtered(cycle, narrowed, start)


@dataclass(slots=True)
class Narrowed:
    """What pre_filters left: a refusal, or the names of the only nodes to look at (None: all)."""

    refusal: Verdict | None = None
    only: set[str] | None = None
    by: tuple[str, ...] = ()


def ask_pre_filters(cycle: EngineCycle) -> Narrowed:
    """Every pre_filter in order. Unschedulable is remembered while the others speak; unresolvable ends it."""
    cycle.stage = Stage.PRE_FILTER
    narrowed = Narrowed()
    with calling(cycle, None, ExtensionPoint.PRE_FILTER) as call:
        for plugin in cycle.profile.pre_filters:
            # Asked again in a what-if: what skipped stays out, and what cannot have changed is there.
            if plugin.name in cycle.skipped_filters or plugin.name in cycle.filter_states:
                continue
            call.switch_to(plugin)
            answer = plugin.pre_filter(cycle.pod, cycle)
            if isinstance(answer, Skip):
                cycle.skipped_filters.add(plugin.name)
            elif isinstance(answer, Refusal):
                answer = with_reasons(plugin, ExtensionPoint.PRE_FILTER, answer)
                narrowed.refusal = Verdict(plugin.name, answer)
                if answer.code is not UNSCHEDULABLE:
                    narrowed.by = ()  # this plugin alone is the one whose events may help
                    return narrowed
            elif isinstance(answer, OnlyNodes):
                _narrow(narrowed, cycle, plugin, answer)
                if not narrowed.only:
                    return narrowed
            else:
                cycle.filter_states[plugin.name] = answer
    return narrowed


def _narrow(narrowed: Narrowed, cycle: EngineCycle, plugin: Plugin, answer: OnlyNodes) -> None:
    """Only nodes that every plugin named which named some are left."""
    names = _names(plugin, answer)
    cycle.filter_states[plugin.name] = answer.state
    cycle.limits[plugin.name] = names
    narrowed.only = names if narrowed.only is None else narrowed.only & names
    narrowed.by = (*narrowed.by, plugin.name)
    if not narrowed.only:
        narrowed.refusal = Verdict("", Refusal(_no_node_in_common(narrowed.by), code=UNRESOLVABLE))


def _names(plugin: Plugin, answer: OnlyNodes) -> set[str]:
    if isinstance(answer.names, str):  # its letters are not what was meant
        raise fault(
            plugin, ExtensionPoint.PRE_FILTER, f"OnlyNodes({answer.names!r}) must be given a collection of names"
        )
    return set(answer.names)


def not_satisfied(plugins: tuple[str, ...]) -> Rejection:
    """What a node hears that these plugins' pre_filters left out."""
    return Rejection(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}]", code=UNRESOLVABLE)


def _no_node_in_common(plugins: tuple[str, ...]) -> str:
    if len(plugins) == 1:
        return f"node(s) didn't satisfy plugin {plugins[0]}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously"


def _nominated(cycle: EngineCycle, narrowed: Narrowed) -> Rows | None:
    """The nominated node alone, if it (still) passes: then no other is looked at."""
    name = cycle.pod.status.nominated_node_name
    view = cycle.state.node(name) if name else None
    if view is None or (narrowed.only is not None and view.name not in narrowed.only):
        return None
    try:
        passed = passing(cycle, cycle.nodes.of_rows(np.array([view.row])), [])
    except PluginFault as problem:
        log.error("Evaluation failed on nominated node", pod=cycle.pod, node=name, err=problem)
        return None
    return passed if len(passed) else None


def _filtered(cycle: EngineCycle, narrowed: Narrowed, start: int) -> Feasible:
    nodes = cycle.nodes
    asked = nodes if narrowed.only is None else nodes.where(_named(nodes, narrowed.only))
    found = Feasible(asked, nodes, narrowed_by=narrowed.by, asked=asked, looked_at=asked)
    wanted = nodes_to_find(cycle.profile, len(asked))
    if wanted >= len(asked):
        found.nodes = passing(cycle, asked, found.steps)
        found.evaluated = len(asked)
    else:
        _sample(cycle, found, asked, wanted, start)
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


def _sample(cycle: EngineCycle, found: Feasible, asked: Rows, wanted: int, start: int) -> None:
    """Go round from `start` until enough nodes are feasible; looked at in chunks, counted one by one."""
    order = np.roll(np.arange(len(asked)), -(start % len(asked)))
    size = max(wanted, FEWEST_NODES_TO_FIND)
    passed: list[Any] = []
    for offset in range(0, len(order), size):
        chunk = asked.take(order[offset : offset + size])
        survivors = passing(cycle, chunk, found.steps).rows
        missing = wanted - sum(map(len, passed))
        passed.append(survivors[:missing])
        if len(survivors) >= missing:
            # Upstream looks at one node after the other: those behind the last one needed were never asked.
            last = int(np.flatnonzero(chunk.rows == survivors[missing - 1])[0])
            found.evaluated += last + 1
            break
        found.evaluated += len(chunk)
    found.looked_at = asked.take(order[: found.evaluated])
    found.nodes = asked.of_rows(np.concatenate(passed))


def passing(cycle: EngineCycle, nodes: Rows, steps: list[Step]) -> Rows:
    """Those nodes that no filter rejects; what each filter rejected is added to the steps.

    Where pods of higher or equal priority are nominated, filters must accept the node with them there and without.
    """
    kept_free = [view for name in cycle.state.nominations.nodes if (view := cycle.state.node(name)) is not None]
    if kept_free:
        nodes = _not_kept_for_others(cycle, nodes, kept_free, steps)
    return _passing_as_it_is(cycle, nodes, steps)


def _not_kept_for_others(cycle: EngineCycle, nodes: Rows, kept_free: list[RowView], steps: list[Step]) -> Rows:
    asked = set(nodes.rows.tolist())
    for view in kept_free:
        if view.row not in asked:
            continue
        verdict = refusal_among_nominated(cycle, view)
        if verdict is not None:
            plugin, refusal = verdict
            row = np.array([view.row])
            steps.append(Step(plugin, row, np.ones(1, np.bool_), one_by_one={0: refusal}))
            nodes = nodes.where(nodes.rows != view.row)
    return nodes


def refusal_among_nominated(cycle: EngineCycle, view: RowView) -> Verdict | None:
    """What is wrong with the node once the pods are there that it is kept free for."""
    pod = cycle.pod
    ahead = [
        nominated
        for nominated in cycle.state.nominations.at(view.name)
        if nominated.priority >= pod.priority and nominated.uid != pod.uid
    ]
    if not ahead:
        return None
    with cycle.state.what_if(view.name, adding=ahead):
        in_what_if = cycle.for_what_if(pod)
        narrowed = ask_pre_filters(in_what_if)
        if narrowed.refusal is not None:
            return narrowed.refusal
        return first_refusal(in_what_if, view, cycle.profile.filterers)


def first_refusal(cycle: EngineCycle, view: RowView, filterers: Sequence[FilterPlugin]) -> Verdict | None:
    """What the first of these filters that rejects the node says; pre_filters have been asked."""
    cycle.stage = Stage.FILTER
    for filterer in filterers:
        if filterer.name in cycle.skipped_filters:
            continue
        cycle.speaker = filterer.name
        try:
            refusal = _ask_about_one(filterer, cycle, view)
        except BaseException:
            # Entered only when something was raised: this is asked thousands of times in one preemption.
            with calling(cycle, filterer.plugin, ExtensionPoint.FILTER):
                raise
        if refusal is not None:
            return Verdict(filterer.name, refusal)
    return None


def _ask_about_one(filterer: FilterPlugin, cycle: EngineCycle, view: RowView) -> Refusal | None:
    if filterer.one_by_one is None:
        node = cycle.nodes.of_rows(np.array([view.row]))
        step = ask_at_once(filterer, cycle, node)
        return None if step is None else Rejected.by_steps(node, [step])[view.name][1]
    answer = filterer.one_by_one(cycle.pod, view, cycle)
    return None if answer is None else _checked_refusal(filterer, view, answer)


def _checked_refusal(filterer: FilterPlugin, view: RowView, answer: Any) -> Refusal:
    if not isinstance(answer, Refusal):
        what = f"filter of node {view.name} returned {answer!r}; it must return a Rejection or None"
        raise fault(filterer.plugin, ExtensionPoint.FILTER, what)
    return with_reasons(filterer.plugin, ExtensionPoint.FILTER, answer)


def _passing_as_it_is(cycle: EngineCycle, nodes: Rows, steps: list[Step]) -> Rows:
    cycle.stage = Stage.FILTER
    skipped = cycle.skipped_filters
    with calling(cycle, None, ExtensionPoint.FILTER) as call:
        for filterer in cycle.profile.filterers:
            if filterer.name in skipped or not len(nodes):
                continue
            call.switch_to(filterer.plugin)
            step = _ask(filterer, cycle, nodes)
            if step is not None:
                steps.append(step)
                nodes = nodes.where(~step.mask)
    return nodes


def _ask(filterer: FilterPlugin, cycle: EngineCycle, nodes: Rows) -> Step | None:
    """One plugin's rejections; None if there are none. Many nodes are asked at once if the plugin can."""
    if filterer.at_once is not None and (len(nodes) > 1 or filterer.one_by_one is None):
        return ask_at_once(filterer, cycle, nodes)
    ask, pod = filterer.one_by_one, cycle.pod
    assert ask is not None, f"{filterer.name} has no filter"
    given = {place: answer for place, view in enumerate(nodes) if (answer := ask(pod, view, cycle)) is not None}
    if not given:
        return None
    given = {place: _checked_refusal(filterer, nodes.at(place), answer) for place, answer in given.items()}
    mask = np.zeros(len(nodes), np.bool_)
    mask[list(given)] = True
    return Step(filterer.name, nodes.rows, mask, one_by_one=given)


def ask_at_once(filterer: FilterPlugin, cycle: EngineCycle, nodes: Rows) -> Step | None:
    assert filterer.at_once is not None
    given = [
        rejections for rejections in filterer.at_once(cycle.pod, nodes, cycle) if _checked(filterer, rejections, nodes)
    ]
    if not given:
        return None
    mask: BoolArray = given[0].mask if len(given) == 1 else np.logical_or.reduce([each.mask for each in given])
    return Step(filterer.name, nodes.rows, mask, at_once=given)


def _checked(filterer: FilterPlugin, rejections: Any, nodes: Rows) -> bool:
    """Whether it rejects anything; a fault if it is nothing of the kind."""
    if not isinstance(rejections, Rejections):
        raise fault(
            filterer.plugin, ExtensionPoint.FILTER, f"filter_nodes gave {rejections!r}; it must give Rejections"
        )
    if not isinstance(rejections.reason, str):
        what = f"a reason is {rejections.reason!r} ({type(rejections.reason).__name__}); it must be text"
        raise fault(filterer.plugin, ExtensionPoint.FILTER, what)
    _check_mask(filterer, rejections, "mask", rejections.mask, len(nodes))
    if not isinstance(rejections.unresolvable, bool | np.bool_):
        _check_mask(filterer, rejections, "`unresolvable`", rejections.unresolvable, len(nodes))
    mask = rejections.mask
    # One answer for all nodes is looked at once; and counting is four times as fast as `any`.
    return bool(mask[0]) if mask.strides == (0,) and len(mask) else bool(np.count_nonzero(mask))


def _check_mask(filterer: FilterPlugin, rejections: Rejections, which: str, mask: Any, count: int) -> None:
    if isinstance(mask, np.ndarray) and mask.dtype == np.bool_ and mask.shape == (count,):
        return
    found = f"{mask.dtype} of shape {mask.shape}" if isinstance(mask, np.ndarray) else repr(mask)
    what = f'the {which} of "{rejections.reason}" is {found}; it must be bool, one for each of {count} nodes'
    raise fault(filterer.plugin, ExtensionPoint.FILTER, what)
