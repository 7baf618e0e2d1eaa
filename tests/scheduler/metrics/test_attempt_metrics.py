"""How long plugins take, as metrics and the warning about slow ones report it."""

from __future__ import annotations

import gc
from collections.abc import Callable
from weakref import ref

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mooring.base.clock import ManualClock
from mooring.base.errors import PluginFault
from mooring.engine import Decision, Permitted, PlacementRefused, Profile, decide, permit, reserve
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.stopwatch import Run
from mooring.engine.time_budget import TimeBudget
from mooring.framework import Allow, FeatureGates, Plan, Plugin, Point, Refusal, Rejection, Skip, Wait
from mooring.framework.verdicts import UNRESOLVABLE
from mooring.scheduler.metrics import SchedulerMetrics
from mooring.scheduler.metrics.attempt_metrics import (
    SURELY_SLOW_SECONDS,
    TIMED_AFTER_SECONDS,
    WARNINGS_APART_SECONDS,
    Part,
    Tracer,
)
from mooring.state import State
from mooring.testing import a_node_object, a_pod

POINT = "scheduler_framework_extension_point_duration_seconds"
PLUGIN = "scheduler_plugin_execution_duration_seconds"
REQUESTED = "scheduler_plugin_evaluation_total"
PLACES = (Point.PRE_FILTER, Point.FILTER, Point.POST_FILTER, Point.PRE_SCORE, Point.SCORE, Point.RESERVE, Point.PERMIT)


class Bench:
    """A clock, metrics, nodes; plugins that let time pass."""

    def __init__(self, nodes: int = 2, tracer: Tracer | None = None) -> None:
        self.clock = ManualClock(1000.0)
        self.metrics = SchedulerMetrics(FeatureGates(), self.clock, tracer)
        self.metrics.attempts.chance = lambda: 0.0  # every attempt is one of the chosen
        self.state = State()
        for number in range(nodes):
            self.state.set_node(a_node_object(f"n{number}"))

    def attempt(self, *plugins: Plugin, name: str = "default-scheduler", budget: TimeBudget | None = None) -> Decision:
        """As the loop makes one; with a budget, a timer looks at it."""
        attempts = self.metrics.attempts
        points = {
            point: [(plugin, 1) for plugin in plugins if any(hasattr(plugin, method) for method in point.methods)]
            for point in PLACES
        }
        profile = Profile(name, points)
        watch = attempts.begin(is_looked_at=budget is not None)
        decision = decide(profile, a_pod("web"), self.state, watch=watch, budget=budget)
        attempts.decided(profile, decision)
        if decision.node is not None:
            response: PlacementRefused | PluginFault | Permitted = reserve(profile, decision) or permit(
                profile, decision
            )
            attempts.placed(profile, decision, response)
        attempts.over(decision)
        return decision

    def seen(self, name: str, **labels: str) -> dict[tuple[str, ...], float]:
        """The other labels' values → the value."""
        return {
            tuple(value for key, value in sorted(sample.labels.items()) if key not in labels and key != "profile"): (
                sample.value
            )
            for family in text_string_to_metric_families(self.metrics.text().decode())
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        }

    def points(self) -> dict[tuple[str, ...], float]:
        """(point, status) → seconds."""
        return {key: round(value, 6) for key, value in self.seen(f"{POINT}_sum").items()}


@pytest.fixture
def bench() -> Bench:
    return Bench()


class Taking(Plugin):
    """Takes a second at each point, or more at one."""

    def __init__(self, clock: ManualClock, **seconds: float) -> None:
        self._clock, self._seconds = clock, seconds

    def _pass(self, point: str) -> None:
        self._clock._now += self._seconds.get(point, 0.001)

    def pre_filter(self, pod, cycle):
        self._pass("pre_filter")

    def filter_nodes(self, pod, nodes, cycle):
        self._pass("filter")
        return ()

    def pre_score(self, pod, feasible, cycle):
        self._pass("pre_score")

    def score_nodes(self, pod, nodes, cycle):
        self._pass("score")
        return [1] * len(nodes)

    def normalize(self, pod, nodes, scores, cycle):
        self._pass("normalize")
        return scores

    def reserve(self, pod, node, cycle):
        self._pass("reserve")

    def permit(self, pod, node, cycle):
        self._pass("permit")
        return Allow()


def test_each_point_takes_what_its_plugins_take(bench):
    bench.attempt(Taking(bench.clock, filter=0.002, score=0.004, normalize=0.003))
    assert bench.points() == {
        ("PreFilter", "Success"): 0.001,
        ("Filter", "Success"): 0.002,
        ("PreScore", "Success"): 0.001,
        ("Score", "Success"): 0.007,
        ("Reserve", "Success"): 0.001,
        ("Permit", "Success"): 0.001,
    }


def test_each_plugin_is_reported_of_a_sampled_attempt(bench):
    bench.attempt(Taking(bench.clock, filter=0.002))
    seen = bench.seen(f"{PLUGIN}_sum", plugin="Taking")
    assert round(seen["Filter", "Success"], 6) == 0.002
    assert ("ScoreExtensionNormalize", "Success") in seen
    assert ("Permit", "Success") in seen


def test_other_attempts_report_points_alone(bench):
    bench.metrics.attempts.chance = lambda: 0.99
    for _ in range(3):
        bench.attempt(Taking(bench.clock))
    assert bench.seen(f"{PLUGIN}_count", plugin="Taking", extension_point="Filter") == {("Success",): 1}
    assert bench.seen(f"{POINT}_count", extension_point="Filter") == {("Success",): 3}


class Refusing(Plugin):
    def __init__(self, *, at: str, response: Callable[[], object]) -> None:
        self._at, self._response = at, response

    def _at_point(self, point: str) -> object:
        return self._response() if point == self._at else None

    def pre_filter(self, pod, cycle):
        return self._at_point("pre_filter")

    def filter(self, pod, node, cycle):
        return self._at_point("filter")

    def post_filter(self, pod, refused, what_if):
        return self._at_point("post_filter") or Refusal("no help")

    def pre_score(self, pod, feasible, cycle):
        return self._at_point("pre_score")

    def score(self, pod, node, cycle):
        return self._at_point("score") or 1

    def reserve(self, pod, node, cycle):
        return self._at_point("reserve")

    def permit(self, pod, node, cycle):
        return self._at_point("permit")


def broken() -> object:
    raise KeyError("zone")


STATUSES = {
    "a refusal of the whole pod": ("pre_filter", lambda: Refusal("no"), ("PreFilter", "Unschedulable")),
    "one that nothing helps": (
        "pre_filter",
        lambda: Refusal("no", code=UNRESOLVABLE),
        ("PreFilter", "UnschedulableAndUnresolvable"),
    ),
    "a pre_filter that fails": ("pre_filter", broken, ("PreFilter", "Error")),
    "filters that refuse every node have done their work": (
        "filter",
        lambda: Rejection("no"),
        ("Filter", "Success"),
    ),
    "a filter that fails": ("filter", broken, ("Filter", "Error")),
    "no plugin can make room": ("filter", lambda: Rejection("no"), ("PostFilter", "Unschedulable")),
    "a pre_score that fails": ("pre_score", broken, ("PreScore", "Error")),
    "a score that fails": ("score", broken, ("Score", "Error")),
    "a score that is none": ("score", lambda: 500, ("Score", "Error")),
    "a reserve that refuses": ("reserve", lambda: Refusal("no"), ("Reserve", "Unschedulable")),
    "a reserve that fails": ("reserve", broken, ("Reserve", "Error")),
    "a permit that refuses": ("permit", lambda: Refusal("no"), ("Permit", "Unschedulable")),
    "a permit that waits": ("permit", lambda: Wait(5), ("Permit", "Wait")),
}


@pytest.mark.parametrize(("at", "response", "expected"), STATUSES.values(), ids=STATUSES.keys())
def test_a_points_status(bench, at, response, expected):
    bench.attempt(Refusing(at=at, response=response))
    assert expected in bench.points()


def test_a_plan_is_a_success(bench):
    class Helping(Refusing):
        def post_filter(self, pod, refused, what_if):
            return Plan(nominate="n0")

    bench.attempt(Helping(at="filter", response=lambda: Rejection("no")))
    assert ("PostFilter", "Success") in bench.points()


def test_a_plugin_that_skips_is_timed_but_not_counted(bench):
    bench.attempt(Refusing(at="pre_filter", response=lambda: Skip()))
    assert ("PreFilter", "Skip") in bench.seen(f"{PLUGIN}_count", plugin="Refusing")
    requested = bench.seen(REQUESTED, plugin="Refusing")
    assert ("PreFilter",) not in requested
    assert requested["Score",] == 1


def test_attempts_are_counted_however_many_nodes_there_are(bench):
    for _ in range(3):
        bench.attempt(Taking(bench.clock))
    assert set(bench.seen(REQUESTED, plugin="Taking").values()) == {3}


def test_profiles_that_are_gone_are_not_kept(bench):
    gone = ref(bench.attempt(Taking(bench.clock)).cycle.profile)
    gc.collect()
    assert gone() is None
    bench.attempt(Taking(bench.clock))
    assert set(bench.seen(REQUESTED, plugin="Taking").values()) == {2}


# The warning


def test_who_makes_an_attempt_slow_is_named(bench, capsys):
    bench.attempt(Taking(bench.clock, filter=SURELY_SLOW_SECONDS))
    logged = capsys.readouterr().err
    assert "One plugin takes most of a slow scheduling attempt" in logged
    assert 'plugin="Taking" extensionPoint="Filter" pluginSeconds=0.5' in logged
    assert bench.seen("mooring_plugin_slow_attempts_total") == {("Filter", "Taking"): 1}


def test_in_an_attempt_that_is_not_sampled_the_timer_sees_who_makes_it_slow(bench, capsys):
    bench.attempt(Taking(bench.clock))  # the first is sampled
    bench.metrics.attempts.chance = lambda: 1.0
    capsys.readouterr()
    budget = TimeBudget(5.0)

    class Seen(Taking):
        def filter_nodes(self, pod, nodes, cycle):
            budget.seen += [(ExtensionPoint.FILTER, "Seen", 0.1)] * 4
            return super().filter_nodes(pod, nodes, cycle)

    decision = bench.attempt(Seen(bench.clock, filter=SURELY_SLOW_SECONDS), budget=budget)
    assert decision.node is not None
    assert 'plugin="Seen" extensionPoint="Filter" pluginSeconds=0.4' in capsys.readouterr().err


def test_after_a_slow_attempt_every_plugin_is_timed_for_a_while(bench):
    attempts, budget = bench.metrics.attempts, TimeBudget(5.0)
    bench.attempt(Taking(bench.clock))
    attempts.chance = lambda: 1.0
    assert not attempts.begin(is_looked_at=True).times_plugins
    assert attempts.begin(is_looked_at=False).times_plugins
    bench.attempt(Taking(bench.clock, filter=0.2), budget=budget)
    assert attempts.begin(is_looked_at=True).times_plugins
    bench.clock._now += TIMED_AFTER_SECONDS
    assert not attempts.begin(is_looked_at=True).times_plugins


def test_attempts_whose_plugins_are_not_timed_count_like_others(bench):
    attempts, budget = bench.metrics.attempts, TimeBudget(5.0)
    bench.attempt(Taking(bench.clock))
    points, called = bench.points(), bench.seen(REQUESTED, plugin="Taking")
    attempts.chance = lambda: 1.0
    bench.attempt(Taking(bench.clock), budget=budget)
    assert bench.points() == {point: 2 * seconds for point, seconds in points.items()}
    assert bench.seen(REQUESTED, plugin="Taking") == {point: 2 * count for point, count in called.items()}


def test_the_warning_is_not_repeated_all_the_time(bench, capsys):
    for _ in range(3):
        bench.attempt(Taking(bench.clock, filter=SURELY_SLOW_SECONDS))
    assert capsys.readouterr().err.count("One plugin takes most") == 1
    bench.clock._now += WARNINGS_APART_SECONDS
    bench.attempt(Taking(bench.clock, filter=SURELY_SLOW_SECONDS))
    assert capsys.readouterr().err.count("One plugin takes most") == 1


def test_once_a_little_slow_may_be_chance(bench, capsys):
    bench.attempt(Taking(bench.clock, filter=0.2))
    assert "One plugin takes most" not in capsys.readouterr().err
    bench.attempt(Taking(bench.clock, filter=0.2))
    assert "One plugin takes most" in capsys.readouterr().err


def test_no_plugin_is_named_where_none_dominates(bench, capsys):
    class Other(Taking):
        pass

    for _ in range(2):
        bench.attempt(Taking(bench.clock, filter=1.0, score=0.2), Other(bench.clock, filter=0.9))
    assert "One plugin takes most" not in capsys.readouterr().err


def test_a_quick_attempt_is_not_worth_a_word(bench, capsys):
    for _ in range(2):
        bench.attempt(Taking(bench.clock, filter=0.05))
    assert capsys.readouterr().err == ""


# Binding


def test_what_comes_after_the_decision_is_distinguished(bench):
    decision = bench.attempt(Taking(bench.clock))
    watch = decision.cycle.watch
    assert watch is not None
    watch.runs += [
        Run(ExtensionPoint.PRE_BIND, ["Volumes"], [1.0], 1.0, 3.0),
        Run(ExtensionPoint.BIND, ["Binder"], [3.0], 3.0, 4.0),
    ]
    bench.metrics.attempts.ended(decision, PluginFault("Binder", "broken", "Bind"))
    points = bench.points()
    assert (points["PreBind", "Success"], points["Bind", "Error"]) == (2, 1)
    assert ("Bind", "Error") in bench.seen(f"{PLUGIN}_count", plugin="Binder")


@pytest.mark.parametrize(("point", "stage"), [("Filter", "predicate"), ("Reserve", "assume"), ("PreBind", "bind")])
def test_failures_of_volumes_are_counted_by_stage(bench, point, stage):
    decision = bench.attempt(Taking(bench.clock))
    fault = PluginFault("Volumes", "broken", point)
    bench.metrics.attempts.ended(decision, fault)
    assert not bench.seen("scheduler_volume_scheduling_stage_error_total")
    fault.is_of_volumes = True
    bench.metrics.attempts.ended(decision, fault)
    assert bench.seen("scheduler_volume_scheduling_stage_error_total") == {(stage,): 1}


def test_a_tracer_sees_every_part():
    seen: list[Part] = []

    class Seeing:
        def record(self, part: Part, /) -> None:
            seen.append(part)

    bench = Bench(tracer=Seeing())
    decision = bench.attempt(Taking(bench.clock))
    bench.metrics.attempts.ended(decision)
    assert [part.name for part in seen] == ["schedule", "bind"]
    assert seen[0].decision is decision
    assert seen[0].runs
    assert not seen[1].runs
