"""What a stopwatch writes down of a decision."""

from __future__ import annotations

from itertools import count

import pytest

from mooring.base.errors import PluginFault
from mooring.bench.decide import default_profile
from mooring.engine import DecisionCache, Profile, decide
from mooring.engine.cycle import EngineCycle
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.plugin_call import calling
from mooring.engine.stopwatch import Run, Stopwatch
from mooring.framework import Plugin, Point, ToMax
from mooring.state import State
from mooring.testing import a_node_object, a_pod


class Everywhere(Plugin):
    """Has every point of a decision, and does nothing."""

    normalizer = ToMax()

    def pre_filter(self, pod, cycle):
        return None

    def filter(self, pod, node, cycle):
        return None

    def pre_score(self, pod, feasible, cycle):
        return None

    def score(self, pod, node, cycle):
        return 1


def a_profile(*plugins: Plugin) -> Profile:
    points = (Point.PRE_FILTER, Point.FILTER, Point.PRE_SCORE, Point.SCORE)
    return Profile("default-scheduler", {point: [(plugin, 1) for plugin in plugins] for point in points})


def a_state(nodes: int) -> State:
    state = State()
    for number in range(nodes):
        state.set_node(a_node_object(f"n{number}"))
    return state


def ticking(*, times_plugins: bool = True) -> Stopwatch:
    """Every look at it is one second later."""
    ticks = count()
    return Stopwatch(lambda: float(next(ticks)), times_plugins=times_plugins)


POINTS = [
    ExtensionPoint.PRE_FILTER,
    ExtensionPoint.FILTER,
    ExtensionPoint.PRE_SCORE,
    ExtensionPoint.SCORE,
    ExtensionPoint.NORMALIZE,
]


def test_every_plugin_of_a_decision_is_timed():
    watch = ticking()
    decide(a_profile(Everywhere()), a_pod(), a_state(2), watch=watch)
    assert watch.runs == [
        Run(point, ["Everywhere"], [3.0 * place + 2], began=3.0 * place + 1, ended=3.0 * place + 3)
        for place, point in enumerate(POINTS)
    ]


def test_points_can_be_timed_without_their_plugins():
    watch = ticking(times_plugins=False)
    decide(a_profile(Everywhere()), a_pod(), a_state(2), watch=watch)
    assert watch.runs == [
        Run(point, ["Everywhere"], [], began=2.0 * place + 1, ended=2.0 * place + 2)
        for place, point in enumerate(POINTS)
    ]
    assert not [seconds for run in watch.runs for seconds in run.seconds_by_plugin()]


def test_plugins_whose_results_are_cached_count_as_called():
    profile, state, cache = default_profile(), a_state(3), DecisionCache()
    called: list[list[tuple[ExtensionPoint, list[str]]]] = []
    for number in range(6):
        watch = ticking(times_plugins=number % 2 == 0)
        decision = decide(profile, a_pod(f"web-{number}"), state, watch=watch, cache=cache)
        assert decision.node is not None
        state.assume(decision.pod, decision.node, 0.0)
        runs = [run for run in watch.runs if run.point is not ExtensionPoint.NORMALIZE]
        called.append([(run.point, sorted(run.plugins)) for run in runs])
    assert all(each == called[0] for each in called)


def test_a_plugins_turn_ends_when_the_next_ones_begins():
    class Other(Everywhere):
        pass

    watch = ticking()
    decide(a_profile(Everywhere(), Other()), a_pod(), a_state(1), watch=watch)
    assert watch.runs[0] == Run(ExtensionPoint.PRE_FILTER, ["Everywhere", "Other"], [2.0, 3.0], began=1.0, ended=4.0)
    assert list(watch.runs[0].seconds_by_plugin()) == [("Everywhere", 1.0), ("Other", 1.0)]


def test_a_plugin_that_fails_has_had_its_turn():
    watch = ticking()
    cycle = EngineCycle(a_profile(), a_pod(), a_state(1), watch=watch)
    with pytest.raises(PluginFault), calling(cycle, Everywhere(), ExtensionPoint.FILTER):
        raise KeyError("zone")
    assert watch.runs == [Run(ExtensionPoint.FILTER, ["Everywhere"], [2.0], began=1.0, ended=3.0)]


def test_turns_at_the_same_time_are_kept_apart():
    watch = ticking()
    cycle = EngineCycle(a_profile(), a_pod(), a_state(1), watch=watch)
    with calling(cycle, one := Everywhere(), ExtensionPoint.PRE_BIND), calling(cycle, one, ExtensionPoint.PRE_BIND):
        pass
    assert watch.runs == [
        Run(ExtensionPoint.PRE_BIND, ["Everywhere"], [4.0], began=3.0, ended=5.0),
        Run(ExtensionPoint.PRE_BIND, ["Everywhere"], [2.0], began=1.0, ended=6.0),
    ]


def test_where_no_plugin_runs_nothing_is_recorded():
    watch = ticking()
    decide(a_profile(), a_pod(), a_state(2), watch=watch)
    assert watch.runs == []


def test_decisions_are_the_same_with_and_without():
    profile, state = a_profile(Everywhere()), a_state(5)
    decisions = [decide(profile, a_pod(), state, seed=3, watch=watch) for watch in (None, ticking())]
    assert len({decision.node for decision in decisions}) == 1


def test_a_stopwatch_can_begin_again():
    watch = ticking()
    decide(a_profile(Everywhere()), a_pod(), a_state(1), watch=watch)
    watch.restart()
    assert (watch.runs, watch.seen) == ([], 0)
    assert watch.began > 1
