"""`--verify-every`: a plugin that reads more than it declares costs no wrong placement, and is named."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.engine.builders import a_profile, a_state
from tests.scheduler.conftest import a_configuration, a_live_scheduler
from tests.scheduler.conftest import a_profile as a_configured_profile
from tests.scheduler.reload.changes import reloaded
from tests.scheduler.shadow.test_live import a_shadow

from mooring.base import log
from mooring.base.clock import ManualClock
from mooring.base.errors import BudgetExceeded
from mooring.engine import DecisionCache
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.stopwatch import Stopwatch
from mooring.engine.time_budget import TimeBudget
from mooring.framework import Cycle, FeatureGates, NodeView, Plugin, Pod, Reads
from mooring.scheduler.cycle.verification import VerifiedDecisions
from mooring.scheduler.metrics import SchedulerMetrics
from mooring.testing import a_cluster, a_node, a_plugin, a_pod


class Liar(Plugin):
    """Prefers nodes with few pods, and declares that it reads only the node."""

    reads = Reads.NODE

    def sign(self, pod: Pod) -> object:
        return ()

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return 100 - len(node.pods)


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    before, stream = log._settings.stream, io.StringIO()
    log.configure(stream=stream)
    yield stream
    log._settings.stream = before


class Decisions:
    """Pods decided and assumed one after the other on two nodes, every Nth verified."""

    def __init__(self, plugin: Plugin, every: int) -> None:
        self.clock = ManualClock()
        self.metrics = SchedulerMetrics(FeatureGates(), self.clock)
        self.verified = VerifiedDecisions(every, self.clock, self.metrics.plugins)
        self.profile, self.state, self.cache = a_profile(plugin), a_state("a", "b"), DecisionCache()

    def take(self, count: int, **inputs: Any) -> list[str | None]:
        nodes = []
        for _ in range(count):
            pod = a_pod()
            decision = self.verified.decide(self.profile, pod, self.state, cache=self.cache, **inputs)
            nodes.append(decision.node)
            if decision.node is not None:
                self.state.assume(pod, decision.node, 0.0)
        return nodes

    def counted(self, name: str) -> float:
        samples = [sample for family in self.metrics.registry.collect() for sample in family.samples]
        return sum(sample.value for sample in samples if sample.name == name)


def test_the_decision_from_scratch_is_used_and_the_cache_dropped(lines):
    lying = Decisions(Liar(), every=1)
    assert lying.take(8) == ["a", "b"] * 4
    assert lying.counted("mooring_verified_decisions_total") == 8
    assert lying.counted("mooring_decision_differences_total") > 1


def test_without_verification_the_liar_decides_wrongly():
    assert Decisions(Liar(), every=1000).take(8) != ["a", "b"] * 4


def test_the_line_names_pod_plugin_node_both_values_and_what_to_do(lines):
    Decisions(Liar(), every=1).take(4)
    [line] = lines.getvalue().splitlines()
    for part in (
        r'scheduler] "A cached decision differs from one from scratch; the cache is dropped, and the latter is used"',
        r' pod="default/\S+" plugin="Liar" node="[ab]" cached="raw score \d+" fresh="raw score \d+"',
        r"`reads` and `sign`",
    ):
        assert re.search(part, line)


def test_differences_of_one_plugin_are_logged_once_a_minute(lines):
    lying = Decisions(Liar(), every=1)
    lying.take(8)
    assert len(lines.getvalue().splitlines()) == 1
    lying.clock.advance(61)
    lying.take(8)
    assert len(lines.getvalue().splitlines()) == 2


def test_only_every_nth_decision_is_verified():
    honest = Decisions(type("Honest", (Liar,), {"reads": Reads.PODS})(), every=3)
    assert honest.take(10) == ["a", "b"] * 5
    assert honest.counted("mooring_verified_decisions_total") == 3
    assert honest.counted("mooring_decision_differences_total") == 0


def test_the_attempt_is_timed_once_and_the_verification_has_time_of_its_own():
    lying, budget = Decisions(Liar(), every=1), TimeBudget(60.0)
    for _ in range(4):
        watch = Stopwatch(lambda: 0.0)
        lying.take(1, watch=watch, budget=budget)
        assert [run.point for run in watch.runs].count(ExtensionPoint.SCORE) == 1


def test_an_interrupted_attempt_is_not_compared(lines):
    class Slow(Plugin):
        def pre_filter(self, pod: Pod, cycle: Cycle) -> None:
            raise BudgetExceeded(self.name, "too long")

    slow = Decisions(Slow(), every=1)
    assert slow.take(2) == [None, None]
    assert slow.counted("mooring_verified_decisions_total") == 0


def test_authors_find_the_difference_in_their_tests():
    cluster = a_cluster(a_node("a"), a_node("b"), plugins=[a_plugin(Liar)])
    for _ in range(2):
        cluster.schedule(a_pod())
    with pytest.raises(AssertionError, match=r"plugin Liar of node \w: raw score \d+ by the cache, raw score \d+ from"):
        cluster.verify(a_pod())


OURS = a_configured_profile("default-scheduler", plugins=["Liar"])


async def test_a_reloaded_configuration_is_verified_too(server, lines):
    async with a_live_scheduler(server, a_configuration(), [Liar], verify_every=1) as live:
        await live.node("a")
        await live.node("b")
        await live.pod("honest")
        await live.bound("honest")
        assert "differs" not in lines.getvalue()
        await reloaded(live, OURS, plugins=[Liar])
        for number in range(4):
            await live.pod(f"pod-{number}")
            await live.bound(f"pod-{number}")
        assert 'plugin="Liar"' in lines.getvalue()


async def test_a_shadow_verifies_too(server, lines):
    async with (
        a_live_scheduler(server) as live,
        a_shadow(server, a_configuration(OURS), [Liar], verify_every=1) as seen,
    ):
        await live.node("a")
        await live.node("b")
        for number in range(6):
            await live.pod(f"pod-{number}")
            await live.bound(f"pod-{number}")
            await seen.of(f"pod-{number}")
    assert 'plugin="Liar"' in lines.getvalue()
