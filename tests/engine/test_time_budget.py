"""A plugin that computes too long about one pod is interrupted: the decision names it, the state is unchanged."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

from mooring.base.errors import BudgetExceeded
from mooring.engine import decide
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.pod_fields import largest_field
from mooring.engine.time_budget import TICK_SECONDS, TimeBudget, is_interruptible
from mooring.framework import Plan, Plugin, Reads, Refusal, Rejection, Rejections, TermKind
from mooring.plugins.catalogue import catalogue
from mooring.state import WhatIfRows
from mooring.testing import a_cluster, a_constraint, a_node, a_pod, a_toleration

LIMIT_SECONDS = 60
"""A loop that nothing interrupts ends here, and its test fails."""


def spin() -> None:
    end = time.process_time() + LIMIT_SECONDS
    while time.process_time() < end:
        pass
    raise AssertionError("nothing interrupted the plugin")


def spins_at(point: str, work: Any = spin, **more: Any) -> Plugin:
    def act(self: Plugin, *_: Any) -> Any:
        return work()

    slow: Plugin = type("Slow", (Plugin,), {point: act, **more})()
    return slow


def spins_in_a_generator(self: Plugin, *_: Any) -> Any:
    yield from ()
    spin()


def refuses(self: Plugin, *_: Any) -> Rejection:
    return Rejection("no room")


def decided(*plugins: Plugin, budget: TimeBudget | None = None) -> Any:
    cluster = a_cluster(a_node("node-1"), a_node("node-2"), plugins=plugins)
    return decide(cluster.profile, a_pod(), cluster.state, budget=budget or TimeBudget(0.05))


def survives_any_exception() -> None:
    with contextlib.suppress(Exception):
        spin()


CASES = {
    "in pre_filter": (spins_at("pre_filter"), "PreFilter"),
    "in filter": (spins_at("filter"), "Filter"),
    "in filter_nodes": (type("Slow", (Plugin,), {"filter_nodes": spins_in_a_generator})(), "Filter"),
    "in pre_score": (spins_at("pre_score", score=lambda *_: 1), "PreScore"),
    "in score": (spins_at("score"), "Score"),
    "in score_nodes": (spins_at("score_nodes"), "Score"),
    "in normalize": (spins_at("normalize", score=lambda *_: 1), "ScoreExtensionNormalize"),
    "in post_filter": (spins_at("post_filter", filter=refuses), "PostFilter"),
    "in a call that blocks": (spins_at("filter", lambda: time.sleep(LIMIT_SECONDS)), "Filter"),
    "in code that survives any exception": (spins_at("filter", survives_any_exception), "Filter"),
}


@pytest.mark.parametrize(("plugin", "point"), CASES.values(), ids=CASES.keys())
def test_a_plugin_is_interrupted(plugin, point):
    fault = decided(plugin).fault
    assert isinstance(fault, BudgetExceeded)
    assert (fault.plugin, fault.point) == ("Slow", point)
    assert "exceeded the time budget of 50ms for one attempt" in str(fault)
    assert fault.raised_at is None or __file__ in fault.raised_at


def test_a_decision_within_the_budget_is_as_without_one():
    quick = spins_at("filter", lambda: None)
    assert decided(quick).node == decided(quick, budget=TimeBudget(LIMIT_SECONDS)).node is not None


def test_the_timer_sees_which_plugin_runs():
    budget = TimeBudget(5.0)

    def scores() -> int:
        budget.look(None)
        return 1

    decided(spins_at("score", scores), budget=budget)
    assert [(point, plugin) for point, plugin, _ in budget.seen] == [(ExtensionPoint.SCORE, "Slow")] * 2
    assert budget.cycle is None, "the profile of a decision must be able to go"
    budget.renew()
    assert budget.seen == []


def test_each_attempt_has_the_whole_budget():
    budget = TimeBudget(0.05)
    assert decided(spins_at("filter"), budget=budget).fault is not None
    budget.renew()
    assert decided(spins_at("filter", lambda: None), budget=budget).fault is None


def test_a_plugin_that_goes_on_after_an_interruption_fails_the_attempt_all_the_same():
    nested = type("Nests", (Plugin,), {"post_filter": runs_a_slow_filter})()
    assert isinstance(decided(nested, refuses_then_spins()).fault, BudgetExceeded)


def refuses_then_spins() -> Plugin:
    """Refuses in the cycle, and computes for ever in the what-if."""
    results = iter([Rejection("no room"), Rejection("no room")])

    def filter_(self: Plugin, *_: Any) -> Any:
        if (result := next(results, None)) is None:
            spin()
        return result

    slow: Plugin = type("Slow", (Plugin,), {"filter": filter_})()
    return slow


def runs_a_slow_filter(self: Plugin, pod: Any, refused: Any, what_if: Any) -> Plan | Refusal:
    for node in refused.resolvable_nodes():
        with contextlib.suppress(Exception):
            what_if.fits(pod, node)
    return Refusal("nothing helps")


class SlowWhenEvicting(Plugin):
    """Rejects all nodes in the cycle, and computes for ever about what they would be without some of their pods."""

    reads = Reads.PODS

    def filter_nodes(self, pod: Any, nodes: Any, cycle: Any) -> Any:
        if isinstance(nodes, WhatIfRows):
            spin()
        yield Rejections(np.ones(len(nodes), np.bool_), "no room")


def test_a_filter_is_interrupted_where_victims_are_computed_at_once():
    returned: list[Any] = []

    def post_filter(self: Plugin, pod: Any, refused: Any, what_if: Any) -> Refusal:
        lower = what_if.lower_priority_pods(pod, refused.resolvable_nodes())
        returned.append(what_if.victims(pod, lower))
        return Refusal("nothing helps")

    preempts = type("Preempts", (Plugin,), {"post_filter": post_filter})()
    running = [a_pod("web", cpu="1")]
    cluster = a_cluster(a_node("node-1", running=running), plugins=[SlowWhenEvicting(), preempts])
    decision = decide(cluster.profile, a_pod("new", priority=5), cluster.state, budget=TimeBudget(0.05))
    assert isinstance(decision.fault, BudgetExceeded)
    assert returned == []


def test_what_was_changed_for_a_what_if_is_undone():
    def post_filter(self: Plugin, pod: Any, refused: Any, what_if: Any) -> Any:
        [node, *_] = refused.resolvable_nodes()
        with what_if.without(node, list(node.pods)):
            assert not list(node.pods)
            spin()

    slow = type("Slow", (Plugin,), {"filter": refuses, "post_filter": post_filter})()
    cluster = a_cluster(a_node("node-1", running=[a_pod("web", cpu="1")]), plugins=[slow])
    before = [pod.name for pod in cluster.node("node-1").pods], cluster.node("node-1").requested("cpu")
    for _ in range(20):
        decision = decide(cluster.profile, a_pod("new"), cluster.state, budget=TimeBudget(0.01))
        assert isinstance(decision.fault, BudgetExceeded)
        now = [pod.name for pod in cluster.node("node-1").pods], cluster.node("node-1").requested("cpu")
        assert now == before


def frames_named(*modules: str, innermost: Any) -> Any:
    """Calls through functions of these modules, outermost first."""
    call = innermost
    for module in reversed(modules):
        scope = {"__name__": module, "call": call}
        exec("def step(): return call()", scope)
        call = scope["step"]
    return call


INTERRUPTIBLE = {
    "its own code": ([], True),
    "a helper of ours that it called": (["mooring.objects.selectors"], True),
    "a library that it called": (["numpy.core.fromnumeric"], True),
    "a library that manages contexts": (["contextlib"], False),
    "the log": (["logging.handlers"], False),
    "the state": (["mooring.state.tallies"], False),
    "a helper that the state called": (["mooring.state.tallies", "mooring.objects.selectors"], False),
    "a library that the state called": (["mooring.state.table", "numpy.core.fromnumeric"], False),
    "the engine": (["mooring.engine.what_if"], False),
}


@pytest.mark.parametrize(("modules", "expected"), INTERRUPTIBLE.values(), ids=INTERRUPTIBLE.keys())
def test_a_plugin_may_be_interrupted_in(modules, expected):
    seen: list[bool] = []
    look = {"__name__": modules[-1] if modules else __name__, "look": is_interruptible, "sys": sys}
    exec("def innermost(): return look(sys._getframe())", look)

    def filter_(self: Plugin) -> None:
        seen.append(frames_named(*modules, innermost=look["innermost"])())

    type("Plain", (Plugin,), {"filter": filter_})().filter()
    assert seen == [expected]


def test_code_that_no_plugin_called_is_never_interrupted():
    assert not is_interruptible(sys._getframe())


def test_the_time_for_which_the_process_was_stopped_does_not_count(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    budget = TimeBudget(1.0)
    with budget:
        now[0] += 3600.0
        budget.look(None)
        assert not budget.is_over
        for _ in range(round(1 / TICK_SECONDS)):
            now[0] += TICK_SECONDS
            budget.look(None)
        assert budget.is_over
        budget.exceeded = None


def test_the_timer_stops_where_it_finds_no_attempt():
    assert decided(spins_at("filter", work=lambda: None)).fault is None
    assert signal.getitimer(signal.ITIMER_REAL)[1] == TICK_SECONDS, "it runs on for the next attempt"
    signal.raise_signal(signal.SIGALRM)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_after_an_interrupted_attempt_the_timer_is_slow_again():
    assert isinstance(decided(spins_at("filter")).fault, BudgetExceeded)
    assert decided(spins_at("filter", work=lambda: None)).fault is None
    assert signal.getitimer(signal.ITIMER_REAL)[1] == TICK_SECONDS


ENDS_AFTER_AN_ATTEMPT = """
import time
from mooring.engine.time_budget import TICK_SECONDS, TimeBudget


class Lingers:
    def __del__(self, sleep=time.sleep, seconds=3 * TICK_SECONDS):
        sleep(seconds)


lingers = Lingers()
with TimeBudget(5.0):
    pass
"""


def test_a_process_that_ends_right_after_an_attempt_is_not_killed_by_the_timer():
    assert subprocess.run([sys.executable, "-c", ENDS_AFTER_AN_ATTEMPT], check=False).returncode == 0


def test_on_another_thread_the_cycle_checks_the_budget():
    def pre_filter(self: Plugin, pod: Any, cycle: Any) -> Any:
        end = time.process_time() + LIMIT_SECONDS
        while time.process_time() < end:
            cycle.existing_affinity_terms(TermKind.REQUIRED_ANTI_AFFINITY, {})
        raise AssertionError("nothing interrupted the plugin")

    found: list[Any] = []
    reads = type("Slow", (Plugin,), {"pre_filter": pre_filter})()
    thread = threading.Thread(target=lambda: found.append(decided(reads).fault))
    thread.start()
    thread.join()
    assert isinstance(found[0], BudgetExceeded)


FIELDS = {
    "a list": (a_pod(spread=[a_constraint("zone"), a_constraint("host")]), ("spec.topologySpreadConstraints",), "2"),
    "the largest of several": (
        a_pod(tolerations=[a_toleration("a"), a_toleration("b")]),
        ("spec.affinity.podAffinity", "spec.tolerations"),
        "spec.tolerations (2 entries)",
    ),
    "a single entry": (a_pod(tolerations=[a_toleration("a")]), ("spec.tolerations",), "(1 entry)"),
    "lists in lists": (a_pod(ports=[80, 81, 82]), ("spec.containers[*].ports",), "(3 entries)"),
    "nothing": (a_pod(), ("spec.topologySpreadConstraints",), ""),
    "no field at all": (a_pod(), (), ""),
}


@pytest.mark.parametrize(("pod", "paths", "words"), FIELDS.values(), ids=FIELDS.keys())
def test_the_field_to_blame_is(pod, paths, words):
    found = largest_field(pod, paths)
    assert words in found if words else found == ""


def test_default_plugins_that_evaluate_lists_of_a_pod_name_them():
    silent = {entry.name for entry in catalogue() if "mooring.plugins.default" in entry.cls.__module__}
    silent -= {entry.name for entry in catalogue() if entry.cls.pod_fields}
    assert silent == {
        "DefaultBinder",
        "DefaultPreemption",
        "GangScheduling",
        "NodeDeclaredFeatures",
        "NodeName",
        "PodGroupPodsCount",
        "PrioritySort",
        "SchedulingGates",
        "TopologyPlacementGenerator",
    }
