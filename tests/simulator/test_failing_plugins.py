"""Plugins that fail, block, wait or fetch in a simulation."""

from __future__ import annotations

import asyncio
import time

import pytest
from tests.simulator.scenarios import a_cluster_of, arriving

from mooring.base import log
from mooring.base.errors import OperatorMistake
from mooring.framework import Http, Plugin
from mooring.simulator import profile, simulate
from mooring.simulator.outcome import PluginFaults


class Raising(Plugin):
    """Fails on every pod."""

    def filter(self, pod, node, cycle):
        raise KeyError("zone")


class FailsToBind(Plugin):
    """Fails when a pod is about to be bound."""

    async def pre_bind(self, pod, node, cycle):
        raise OSError("no disk")


class Blocking(Plugin):
    """Never returns."""

    def score(self, pod, node, cycle):
        while True:
            time.sleep(0.001)


class Waiting(Plugin):
    """Takes a minute for each binding."""

    async def pre_bind(self, pod, node, cycle):
        await asyncio.sleep(60)


class Fetching(Plugin):
    """Reads outside data."""

    def __init__(self, http: Http):
        self._http = http

    def score(self, pod, node, cycle):
        return 1


def test_a_plugin_that_raises_is_counted_and_its_pods_stay_pending():
    outcome = simulate(a_cluster_of("a"), [arriving(0, "pod")], profile(enable=[Raising]))
    [fault] = outcome.faults
    assert fault == PluginFaults("Raising", "Filter", outcome.pods[0].attempts, outcome.pods[0].message)
    assert fault.example == "running \"Raising\" filter plugin: KeyError: 'zone'"
    assert outcome.summary()["plugin_faults"] == fault.count > 1


def test_failures_after_the_decision_are_counted_too():
    outcome = simulate(a_cluster_of("a"), [arriving(0, "pod")], profile(enable=[FailsToBind]))
    assert [(fault.plugin, fault.point) for fault in outcome.faults] == [("FailsToBind", "PreBind")]
    assert "no disk" in outcome.pods[0].message


def test_a_plugin_that_blocks_is_interrupted():
    outcome = simulate(a_cluster_of("a", "b"), [arriving(0, "pod")], profile(enable=[Blocking]), attempt_timeout=0.001)
    [fault] = outcome.faults
    assert (fault.plugin, fault.point) == ("Blocking", "Score")
    assert "exceeded the time budget" in fault.example


def test_asynchronous_waiting_is_simulated_time():
    outcome = simulate(a_cluster_of("a"), [arriving(0, "pod")], profile(enable=[Waiting]))
    assert outcome.pods[0].waited_seconds == 60.0


def test_a_plugin_that_fetches_is_refused():
    with pytest.raises(OperatorMistake) as refused:
        simulate(a_cluster_of("a"), [arriving(0, "pod")], profile(enable=[Fetching]))
    [problem] = refused.value.problems
    assert problem.path.startswith("Fetching (")
    assert "Http service" in problem.message


@pytest.mark.parametrize("verbosity", [0, 1])
def test_attempts_are_logged_only_where_log_lines_are_wanted(verbosity: int, capfd: pytest.CaptureFixture[str]):
    log.configure(verbosity=verbosity)
    try:
        simulate(a_cluster_of("a"), [arriving(0, "pod")], profile(enable=[Raising]))
        assert log.settings().verbosity == verbosity
    finally:
        log.configure(verbosity=0)
    assert ("Error scheduling pod" in capfd.readouterr().err) == bool(verbosity)
