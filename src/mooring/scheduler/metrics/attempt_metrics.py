"""One attempt, as metrics, a warning and a trace see it: how long each extension point and each plugin took.

A decision records times (`engine.stopwatch`); here they are observed, once it is over. Statuses are not
watched either: a decision carries what each plugin returned.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar
from weakref import ref

import msgspec

from mooring.base.clock import Clock
from mooring.base.errors import PluginFault
from mooring.base.log import Log
from mooring.engine import Decision, EngineCycle, Permitted, PlacementRefused, Profile
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.stopwatch import Run, Stopwatch
from mooring.engine.time_budget import TimeBudget
from mooring.framework import Refusal
from mooring.framework.verdicts import Code
from mooring.scheduler.metrics.series import Buckets, Counter, Histogram

SLOW_SECONDS = 0.1
"""From here on an attempt is worth a line in the log; kube-scheduler's measure too."""
DOMINATING_SHARE = 0.5
SURELY_SLOW_SECONDS = 0.5
"""Less than this may be a busy machine: it is reported only if it happens twice."""
WARNINGS_APART_SECONDS = 60.0
TIMED_AFTER_SECONDS = 60.0
"""So long after a slow attempt every plugin of every attempt is timed."""
SAMPLED_SHARE = 0.1
"""Of so many attempts each plugin's time is observed, as kube-scheduler does it."""

SUCCESS, ERROR, SKIP = Code.SUCCESS.value, Code.ERROR.value, Code.SKIP.value
VOLUME_STAGES = {"Filter": "predicate", "Reserve": "assume", "PreBind": "bind"}
"""What kube-scheduler calls the stages of binding volumes, by the point at which they happen."""
_COUNTED = {ExtensionPoint.PRE_FILTER, ExtensionPoint.FILTER, ExtensionPoint.PRE_SCORE, ExtensionPoint.SCORE}
_NAMED = 3
"""How many plugins the line about a slow attempt names."""

T = TypeVar("T")

_log = Log("scheduler")


class Part(msgspec.Struct, frozen=True):
    """A stretch of an attempt, for traces: up to the choice of a node ("schedule"), or after it ("bind")."""

    name: str
    decision: Decision
    began: float
    ended: float
    """By the monotonic clock."""
    runs: Sequence[Run]
    fault: PluginFault | None = None


class Tracer(Protocol):
    """Receives every attempt. Must return at once."""

    def record(self, part: Part, /) -> None: ...


class _Pattern:
    """Decisions that called the same plugins with the same results: where their times and their count belong.

    Most decisions are alike, so this is worked out once for many of them.
    """

    __slots__ = ("_lengths", "_skipped", "count", "evaluated", "executions", "points")

    def __init__(self, decision: Decision, runs: Sequence[Run], points: Histogram) -> None:
        self.count = 0
        self._skipped = (set(decision.cycle.skipped_filters), set(decision.cycle.skipped_scores))
        self._lengths = _lengths(runs)
        self.evaluated = [(*called, decision.profile) for called in _evaluated(decision, runs)]
        self.points = [
            (points.at[point.metric_name, _status(decision, point), decision.profile], first, last)
            for point, first, last in _stretches(runs)
        ]
        """Per point: its series, and its first and its last run."""
        self.executions: list[list[Buckets]] | None = None
        """Per run and plugin, its series; from the first time on that it is sampled."""

    def fits(self, cycle: EngineCycle, runs: Sequence[Run]) -> bool:
        """Whether another decision of its profile that found a node, too, called the same plugins."""
        return (cycle.skipped_filters, cycle.skipped_scores) == self._skipped and _lengths(runs) == self._lengths

    def observe(self, runs: Sequence[Run]) -> None:
        self.count += 1
        for buckets, first, last in self.points:
            buckets.observe(runs[last].ended - runs[first].began)

    def sample(self, decision: Decision, runs: Sequence[Run], executions: Histogram) -> None:
        if self.executions is None:
            self.executions = [
                [
                    executions.at[plugin, run.point.metric_name, _plugin_status(decision, run.point, plugin)]
                    for plugin in run.plugins
                ]
                for run in runs
            ]
        for run, series in zip(runs, self.executions, strict=True):
            for (_, seconds), buckets in zip(run.seconds_by_plugin(), series, strict=True):
                buckets.observe(seconds)


class AttemptMetrics:
    """Observes attempts: `begin`, `decided`, `placed` for those that found a node, `over`; `ended` after binding."""

    def __init__(
        self,
        clock: Clock,
        *,
        decisions: Buckets,
        points: Histogram,
        executions: Histogram,
        dominated: Counter,
        volume_failures: Counter,
        tracer: Tracer | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._now = clock.monotonic
        self._decisions = decisions
        self._points = points
        self._executions = executions
        self._dominated = dominated
        self._volume_failures = volume_failures
        self._patterns: dict[tuple[object, ...], _Pattern] = {}
        self._latest: tuple[ref[Profile], _Pattern] | None = None
        """Of the last decision that found a node: most are followed by one like it."""
        self._past: dict[tuple[str, ...], float] = {}
        """How often plugins were called by profiles that were replaced."""
        self._warned: dict[tuple[str, ExtensionPoint], float] = {}
        self._times_until = float("-inf")
        """Until then every plugin of every attempt is timed: one was slow."""
        self.chance = chance
        self._tracer = tracer
        self.slow_seconds = SLOW_SECONDS

    def begin(self, *, is_looked_at: bool = False) -> Stopwatch:
        """`is_looked_at`: a timer sees which plugin runs, in case that the attempt is slow (`TimeBudget.seen`).

        Then plugins are timed in sampled attempts only. The first attempt is always sampled, so that the series exist.
        """
        is_sampled = self.chance() < SAMPLED_SHARE or not self._executions.at
        is_timed = is_sampled or not is_looked_at or self._tracer is not None or self._now() < self._times_until
        return Stopwatch(self._now, is_sampled=is_sampled, times_plugins=is_timed)

    def decided(self, profile: Profile, decision: Decision) -> None:
        """Observe every extension point of the decision, and the plugins called."""
        watch = decision.cycle.watch
        if watch is None:
            return
        self._decisions.observe(self._now() - watch.began)
        runs, cycle = watch.runs, decision.cycle
        latest = self._latest
        if latest is not None and decision.node is not None and latest[0]() is profile and latest[1].fits(cycle, runs):
            pattern = latest[1]
        else:
            pattern = self._pattern(profile, decision, runs)
        pattern.observe(runs)
        if watch.is_sampled:
            pattern.sample(decision, runs, self._executions)
        watch.seen = len(runs)
        if decision.fault is not None:
            self._count_volume_failure(decision.fault)

    def _pattern(self, profile: Profile, decision: Decision, runs: Sequence[Run]) -> _Pattern:
        cycle = decision.cycle
        key = (
            ref(profile),  # a profile that a reload has replaced must be able to go
            frozenset(cycle.skipped_filters),
            frozenset(cycle.skipped_scores),
            _lengths(runs),
            None if decision.node is not None else _how_it_failed(decision),
        )
        pattern = self._patterns.get(key)
        if pattern is None:
            pattern = self._patterns[key] = _Pattern(decision, runs, self._points)
        if decision.node is not None:
            self._latest = ref(profile), pattern
        return pattern

    def placed(self, profile: Profile, decision: Decision, result: PlacementRefused | PluginFault | Permitted) -> None:
        """A node was chosen; `outcome` is that of reserve and permit."""
        watch = decision.cycle.watch
        if watch is None:
            return
        is_permits, reserved, permitted = isinstance(result, Permitted), 0.0, 0.0
        for run in watch.runs[watch.seen :]:
            if run.point is ExtensionPoint.PERMIT:
                is_permits, permitted = True, permitted + run.ended - run.began
            else:
                reserved += run.ended - run.began
        name, status = profile.name, _status_of(result)
        self._points.at["Reserve", SUCCESS if is_permits else status, name].observe(reserved)
        if is_permits:
            self._points.at["Permit", status, name].observe(permitted)
        if watch.is_sampled:
            self._sample(decision, watch, result if isinstance(result, PluginFault) else None)
        watch.seen = len(watch.runs)
        if isinstance(result, PluginFault):
            self._count_volume_failure(result)

    def of_group(self, profile: Profile, point: ExtensionPoint, call: Callable[[Stopwatch], T]) -> T:
        """Observe a point that is called for a pod group, and its plugins. The result, or its fault, is the call's."""
        watch, status, broken = self.begin(), SUCCESS, None
        try:
            result = call(watch)
            status = result.code.value if isinstance(result, Refusal) else SUCCESS
            return result
        except PluginFault as fault:
            status, broken = ERROR, fault
            raise
        finally:
            self._points.at[point.metric_name, status, profile.name].observe(self._now() - watch.began)
            if watch.is_sampled:
                self._sample_runs(watch.runs, status, broken)

    def over(self, decision: Decision) -> None:
        """The attempt is over: report it if it was slow."""
        watch = decision.cycle.watch
        if watch is None:
            return
        seconds = self._now() - watch.began
        if seconds >= self.slow_seconds:
            self._report_slow(decision, watch, seconds)
        self._close(decision, watch, "schedule", decision.fault)

    def ended(self, decision: Decision, fault: PluginFault | None = None) -> None:
        """The binding has ended, well or not."""
        watch = decision.cycle.watch
        if watch is None:
            return
        if fault is not None:
            self._count_volume_failure(fault)
        self._close(decision, watch, "bind", fault)

    def _close(self, decision: Decision, watch: Stopwatch, name: str, fault: PluginFault | None) -> None:
        """Observe what has not been observed yet, and reset."""
        if watch.seen < len(watch.runs):
            runs = watch.runs[watch.seen :]
            for point, first, last in [(runs[0].point, 0, 0)] if len(runs) == 1 else _stretches(runs):
                label = point.metric_name
                status = ERROR if fault is not None and fault.point == label else SUCCESS
                self._points.at[label, status, decision.profile].observe(runs[last].ended - runs[first].began)
            if watch.is_sampled:
                self._sample(decision, watch, fault)
        if self._tracer is not None:
            self._tracer.record(Part(name, decision, watch.began, self._now(), tuple(watch.runs), fault))
        watch.restart()

    def _sample(self, decision: Decision, watch: Stopwatch, fault: PluginFault | None) -> None:
        for run in watch.runs[watch.seen :]:
            label = run.point.metric_name
            for plugin, seconds in run.seconds_by_plugin():
                is_broken = fault is not None and (fault.plugin, fault.point) == (plugin, label)
                self._executions.at[plugin, label, ERROR if is_broken else SUCCESS].observe(seconds)

    def _sample_runs(self, runs: Sequence[Run], status: str, fault: PluginFault | None) -> None:
        """Of a pod group: a plugin that refuses has the status of its point, one that fails ends the others' calls."""
        for run in runs:
            label = run.point.metric_name
            for plugin, seconds in run.seconds_by_plugin():
                is_its_own = fault is None or (fault.plugin, fault.point) == (plugin, label)
                self._executions.at[plugin, label, status if is_its_own else SUCCESS].observe(seconds)

    def evaluations(self) -> Mapping[tuple[str, ...], float]:
        """`plugin_evaluation_total`, from one count an attempt: forty increments would cost too much."""
        totals = dict(self._past)
        for pattern in list(self._patterns.values()):
            for labels in pattern.evaluated:
                totals[labels] = totals.get(labels, 0.0) + pattern.count
        return totals

    def forget(self, profiles: Collection[Profile]) -> None:
        """These decide no more. What was counted for them stays; nothing here keeps their plugins alive."""
        for key, pattern in list(self._patterns.items()):
            if key[0] in profiles:
                for labels in pattern.evaluated:
                    self._past[labels] = self._past.get(labels, 0.0) + pattern.count
                del self._patterns[key]

    def _count_volume_failure(self, fault: PluginFault) -> None:
        if fault.is_of_volumes and fault.point in VOLUME_STAGES:
            self._volume_failures.at[VOLUME_STAGES[fault.point],] += 1

    def _report_slow(self, decision: Decision, watch: Stopwatch, seconds: float) -> None:
        self._times_until = self._now() + TIMED_AFTER_SECONDS
        times = sorted(_by_plugin(watch.runs, decision.cycle.budget).items(), key=lambda item: -item[1])
        if times and times[0][1] >= seconds * DOMINATING_SHARE:
            (point, plugin), took = times[0]
            self._dominated.at[plugin, point.metric_name, decision.profile] += 1
            if self._is_worth_a_warning(point, plugin, seconds):
                _log.warning(
                    "One plugin takes most of a slow scheduling attempt",
                    plugin=plugin,
                    extensionPoint=point.metric_name,
                    pluginSeconds=round(took, 3),
                    attemptSeconds=round(seconds, 3),
                    pod=decision.pod,
                )
                return
        slowest = ", ".join(f"{plugin} at {point.metric_name} {took:.3f}s" for (point, plugin), took in times[:_NAMED])
        _log.v(2).info("Slow scheduling attempt", pod=decision.pod, seconds=round(seconds, 3), slowest=slowest)

    def _is_worth_a_warning(self, point: ExtensionPoint, plugin: str, seconds: float) -> bool:
        now, warned = self._now(), self._warned.get((plugin, point))
        if warned is None and seconds < SURELY_SLOW_SECONDS:
            self._warned[plugin, point] = float("-inf")
            return False
        if warned is not None and now - warned < WARNINGS_APART_SECONDS:
            return False
        self._warned[plugin, point] = now
        return True


def _lengths(runs: Sequence[Run]) -> tuple[int, ...]:
    return tuple([len(run.plugins) for run in runs])


def _stretches(runs: Sequence[Run]) -> list[tuple[ExtensionPoint, int, int]]:
    """Of each point, its first and its last run. Scoring ends where its normalisation does."""
    found: dict[ExtensionPoint, tuple[int, int]] = {}
    for place, run in enumerate(runs):
        point = ExtensionPoint.SCORE if run.point is ExtensionPoint.NORMALIZE else run.point
        first, _ = found.get(point, (place, place))
        found[point] = (first, place)
    return [(point, first, last) for point, (first, last) in found.items()]


def _by_plugin(runs: Iterable[Run], budget: TimeBudget | None) -> dict[tuple[ExtensionPoint, str], float]:
    """How long each plugin took; where they were not timed, as far as the timer saw it."""
    total: dict[tuple[ExtensionPoint, str], float] = {}
    is_timed = False
    for run in runs:
        is_timed = is_timed or bool(run.moments)
        for plugin, seconds in run.seconds_by_plugin():
            total[run.point, plugin] = total.get((run.point, plugin), 0.0) + seconds
    if not is_timed and budget is not None:
        for point, plugin, seconds in budget.seen:
            total[point, plugin] = total.get((point, plugin), 0.0) + seconds
    return total


def _evaluated(decision: Decision, runs: Iterable[Run]) -> set[tuple[str, str]]:
    """Which plugins were called at which point and did not skip."""
    cycle = decision.cycle
    skipped = {ExtensionPoint.PRE_FILTER: cycle.skipped_filters, ExtensionPoint.PRE_SCORE: cycle.skipped_scores}
    return {
        (plugin, point.metric_name)
        for point, plugins, *_ in runs
        if point in _COUNTED
        for plugin in plugins
        if plugin not in skipped.get(point, ())
    }


def _how_it_failed(decision: Decision) -> tuple[object, ...]:
    """All that statuses follow from, where no node was found."""
    fault, refusal = decision.fault, decision.refusal
    return (
        None if fault is None else (fault.plugin, fault.point),
        None if refusal is None else (refusal[0], refusal[1].code),
        tuple((plugin, _result_status(result)) for plugin, result in decision.post_filtered.results),
    )


def _status(decision: Decision, point: ExtensionPoint) -> str:
    """The status of an extension point of the decision, by kube-scheduler's names."""
    fault = decision.fault
    if fault is not None and _is_at(fault, point):
        return ERROR
    if point is ExtensionPoint.PRE_FILTER and decision.refusal is not None:
        return decision.refusal[1].code.value
    if point is ExtensionPoint.POST_FILTER and decision.post_filtered.results:
        return _result_status(decision.post_filtered.results[-1][1])
    return SUCCESS


def _is_at(fault: PluginFault, point: ExtensionPoint) -> bool:
    return fault.point == point.metric_name or (
        point is ExtensionPoint.SCORE and fault.point is ExtensionPoint.NORMALIZE.metric_name
    )


def _result_status(result: object) -> str:
    if isinstance(result, PluginFault):
        return ERROR
    return result.code.value if isinstance(result, Refusal) else SUCCESS


def _status_of(result: PlacementRefused | PluginFault | Permitted) -> str:
    if isinstance(result, PluginFault):
        return ERROR
    if isinstance(result, PlacementRefused):
        return result.refusal.code.value
    return Code.WAIT.value if result.waits else SUCCESS


def _plugin_status(decision: Decision, point: ExtensionPoint, plugin: str) -> str:
    """One plugin's status. A filter succeeds when it could be called, whatever it returned for single nodes."""
    cycle, fault = decision.cycle, decision.fault
    if fault is not None and fault.plugin == plugin and fault.point == point.metric_name:
        return ERROR
    if point is ExtensionPoint.PRE_FILTER:
        if plugin in cycle.skipped_filters:
            return SKIP
        if decision.refusal is not None and decision.refusal[0] == plugin:
            return decision.refusal[1].code.value
    if point is ExtensionPoint.PRE_SCORE and plugin in cycle.skipped_scores:
        return SKIP
    if point is ExtensionPoint.POST_FILTER:
        return next(
            (_result_status(result) for name, result in decision.post_filtered.results if name == plugin), SUCCESS
        )
    return SUCCESS
