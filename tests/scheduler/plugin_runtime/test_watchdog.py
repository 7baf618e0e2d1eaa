"""A synchronous call that does not return is named while it runs, and the loop goes on when it returns."""

import asyncio
import threading
from typing import Any

import pytest
from tests.scheduler.conftest import PATIENCE_SECONDS, a_configuration, a_live_scheduler, a_profile

from mooring.framework import Cycle, NodeView, Plugin, Pod, Rejection
from mooring.scheduler.plugin_runtime import watchdog
from mooring.scheduler.plugin_runtime.watchdog import Watchdog


class Logged:
    """The warnings, and a way to wait for one."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []
        self.is_reported = threading.Event()
        self.is_over = threading.Event()
        self.is_named = threading.Event()
        """On a busy machine something else may be reported before the plugin is."""

    def warning(self, words: str, **values: Any) -> None:
        self.lines.append((words, values))
        self.is_reported.set()
        if words == "Scheduling resumed":
            self.is_over.set()
        if values.get("plugin"):
            self.is_named.set()


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Logged:
    logged = Logged()
    monkeypatch.setattr(watchdog, "_log", logged)
    return logged


def computes_until(reported: threading.Event) -> None:
    assert reported.wait(PATIENCE_SECONDS), "nothing was reported"


class Computes(Plugin):
    """Does not return before the watchdog has logged it."""

    complaint = threading.Event()

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        computes_until(self.complaint)
        return None


async def test_a_plugin_that_computes_for_long_is_named_and_the_loop_goes_on(server, logged, monkeypatch):
    """Isolation: a slow synchronous call is named."""
    monkeypatch.setattr(Computes, "complaint", logged.is_named)
    monkeypatch.setattr(watchdog.Watchdog.__init__, "__kwdefaults__", {"look_seconds": 0.01, "patience_seconds": 0.05})
    config = a_configuration(a_profile("default-scheduler", plugins=["Computes"]))
    async with a_live_scheduler(server, config, [Computes]) as live:
        await live.node("node-1")
        await live.pod("web")
        assert await live.bound("web") == ["node-1"]
    named = [values for words, values in logged.lines if words == "A plugin blocks all scheduling"]
    assert named
    assert (named[0]["plugin"], named[0]["method"]) == ("Computes", "filter")
    assert "test_watchdog.py:" in named[0]["at"]


async def test_what_is_no_plugins_fault_is_reported_by_its_place(logged, monkeypatch):
    monkeypatch.setattr("mooring.scheduler.plugin_runtime.blocking_code._modules", dict)  # this module has a plugin
    with Watchdog(look_seconds=0.01, patience_seconds=0.05):
        computes_until(logged.is_reported)
    words, values = logged.lines[0]
    assert (words, values["plugin"], values["seconds"] > 0) == ("Something blocks all scheduling", "", True)


async def test_when_it_goes_on_that_is_reported_too(logged):
    with Watchdog(look_seconds=0.01, patience_seconds=0.05):
        computes_until(logged.is_reported)
        await asyncio.get_running_loop().run_in_executor(None, computes_until, logged.is_over)


async def test_the_watch_ends_with_what_is_watched(logged):
    with (watched := Watchdog()):
        assert watched._thread.is_alive()
    assert not watched._thread.is_alive()
