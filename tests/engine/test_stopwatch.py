"""What a stopwatch writes down of a decision."""

from __future__ import annotations

from itertools import count

import pytest

from mooring.base.errors import PluginFault
from mooring.engine import Profile, decide
from mooring.engine.cycle import EngineCycle
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.plugin_call import calling
from mooring.engine.stopwatch import Stopwatch
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


def ticking() -> Stopwatch:
    """Every look at it is one second later."""
    ticks = count()
    return Stopwatch(lambda: float(next(ticks)))


def test_every_turn_of_a_decision_is_timed():
    watch = ticking()
    decide(a_profile(Everywhere()), a_pod(), a_state(2), watch=watch)
    called = [
        ExtensionPoint.PRE_FILTER,
        ExtensionPoint.FILTER,
        ExtensionPoint.PRE_SCORE,
        ExtensionPoint.SCORE,
        ExtensionPoint.NORMALIZE,
    ]
    assert watch.runs == [(words, [("Everywhere", 2 * place + 1)], 2 * place + 2) for place, words in enumerate(called)]


def test_a_plugins_turn_ends_when_the_next_ones_begins():
    class Other(Everywhere):
        pass

    watch = ticking()
    decide(a_profile(Everywhere(), Other()), a_pod(), a_state(1), watch=watch)
    assert watch.runs[0] == (ExtensionPoint.PRE_FILTER, [("Everywhere", 1), ("Other", 2)], 3)


def test_a_plugin_that_fails_has_had_its_turn():
    watch = ticking()
    cycle = EngineCycle(a_profile(), a_pod(), a_state(1), watch=watch)
    with pytest.raises(PluginFault), calling(cycle, Everywhere(), ExtensionPoint.FILTER):
        raise KeyError("zone")
    assert watch.runs == [(ExtensionPoint.FILTER, [("Everywhere", 1)], 2)]


def test_turns_at_the_same_time_are_kept_apart():
    watch = ticking()
    cycle = EngineCycle(a_profile(), a_pod(), a_state(1), watch=watch)
    with calling(cycle, one := Everywhere(), ExtensionPoint.PRE_BIND), calling(cycle, one, ExtensionPoint.PRE_BIND):
        pass
    assert watch.runs == [
        (ExtensionPoint.PRE_BIND, [("Everywhere", 2)], 3),
        (ExtensionPoint.PRE_BIND, [("Everywhere", 1)], 4),
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
