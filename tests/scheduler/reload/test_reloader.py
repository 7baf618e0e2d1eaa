"""When the files are read again, and what log, metrics and events report of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import pytest

from mooring.base.clock import ManualClock
from mooring.base.errors import Fault, OperatorMistake, Problem
from mooring.config.model import LeaderElection
from mooring.framework.gates import FeatureGates
from mooring.objects.core import ObjectReference
from mooring.scheduler.metrics import SchedulerMetrics
from mooring.scheduler.reload.reloader import AGAIN_SECONDS, LOOK_SECONDS, Reloader
from mooring.scheduler.reload.versions import UNCHANGED, Adopted, NotNow

PATIENCE_SECONDS = 90.0


class Recorder:
    def __init__(self) -> None:
        self.events: list[tuple[ObjectReference, dict[str, str]]] = []

    def record(self, about: ObjectReference, **logged: str) -> None:
        self.events.append((about, logged))


class Files:
    """Files that the test changes by a word."""

    def __init__(self) -> None:
        self.now = "at first"

    def digest(self) -> str:
        return self.now


class WatchedClock(ManualClock):
    """Sets an event when a task waits for it: then the look before is over."""

    def __init__(self) -> None:
        super().__init__()
        self.asleep = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.asleep.set()
        await super().sleep(seconds)

    async def until_asleep(self) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.asleep.wait()

    def advance(self, seconds: float) -> None:
        self.asleep.clear()
        super().advance(seconds)


class World:
    """A scheduler as a reloader sees it, which adopts the configuration that the test sets, or raises."""

    def __init__(self) -> None:
        self.clock = WatchedClock()
        self.files = Files()
        self.metrics = SchedulerMetrics(FeatureGates(), self.clock)
        self.recorder = Recorder()
        self.reporter = self
        self.ready = asyncio.Event()
        self.ready.set()
        self.version = 1
        self.configuration = self
        self.leader_election = LeaderElection(resource_name="lease", resource_namespace="kube-system")
        self.reads: list[str] = []
        self.was_read = asyncio.Event()
        self.outcome: Callable[[], Adopted] = lambda: Adopted(2, built=["Pin"], added=["new"])
        self.reloader = Reloader(cast(Any, self), self.read, cast(Any, self.files), self.clock)

    def read(self) -> Any:
        self.reads.append(self.files.now)
        self.was_read.set()
        return None, None

    async def adopt(self, configuration: Any, registry: Any) -> Adopted:
        return self.outcome()

    def uid_of(self, key: str) -> str | None:
        return {"ops/mooring-0": "uid-1"}.get(key)

    async def look(self) -> None:
        """Let the reloader look once more, and do what follows."""
        await self.clock.until_asleep()
        self.clock.advance(LOOK_SECONDS)
        await self.clock.until_asleep()

    async def wait_until_it_is_time_again(self) -> None:
        await self.clock.until_asleep()
        self.clock.advance(AGAIN_SECONDS)
        await self.clock.until_asleep()

    async def read_again(self) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.was_read.wait()
        self.was_read.clear()

    @property
    def counts(self) -> dict[str, float]:
        lines = [line for line in self.metrics.text().decode().splitlines() if line.startswith("mooring_config_")]
        return {
            name.removeprefix("mooring_config_"): float(value) for name, _, value in (x.rpartition(" ") for x in lines)
        }


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    watching = asyncio.create_task(world.reloader.run(watches=True))
    yield world
    watching.cancel()
    await asyncio.wait([watching])


async def test_files_are_read_again_when_they_have_changed_and_stand_still(world):
    await world.look()
    assert world.reads == []
    world.files.now = "half wri"
    await world.look()
    world.files.now = "half written"
    await world.look()
    assert world.reads == []
    await world.look()
    assert world.reads == ["half written"]
    await world.look()
    await world.look()
    assert world.reads == ["half written"]


async def test_success_is_counted_logged_and_gets_an_event(world, capsys):
    world.clock.advance(1000)
    assert await world.reloader.reload()
    assert world.counts == {
        'reloads_total{result="success"}': 1.0,
        'reloads_total{result="failure"}': 0.0,
        "last_reload_successful": 1.0,
        "last_reload_success_timestamp_seconds": world.clock.now(),
    }
    assert '"Configuration reloaded" version=2 built="Pin" profilesAdded="new"' in capsys.readouterr().err
    [(about, logged)] = world.recorder.events
    assert (about.kind, about.namespace, about.name) == ("Lease", "kube-system", "lease")
    assert (logged["type"], logged["reason"], logged["action"]) == ("Normal", "ConfigurationReloaded", "Reload")


async def test_a_changed_file_that_changes_nothing_is_logged(world, capsys):
    world.outcome = lambda: UNCHANGED
    world.files.now = "with another comment"
    await world.look()
    await world.look()
    assert "Configuration reloaded; nothing in it has changed" in capsys.readouterr().err
    assert world.recorder.events == []


async def test_failure_is_counted_logged_and_gets_an_event_and_the_time_of_success_stays(world, capsys):
    began = world.clock.now()
    world.clock.advance(1000)

    def refuses() -> Adopted:
        raise OperatorMistake("it will not do.", [Problem("profiles[0]", "is wrong")])

    world.outcome = refuses
    assert not await world.reloader.reload()
    assert world.counts == {
        'reloads_total{result="success"}': 0.0,
        'reloads_total{result="failure"}': 1.0,
        "last_reload_successful": 0.0,
        "last_reload_success_timestamp_seconds": began,
    }
    assert "Configuration not reloaded; keeping the last good version" in capsys.readouterr().err
    [(_, logged)] = world.recorder.events
    assert (logged["type"], logged["reason"]) == ("Warning", "ConfigurationReloadFailed")
    assert (
        logged["note"] == "Version 1 of the configuration stays in use, because it will not do: profiles[0]: is wrong"
    )


@pytest.mark.parametrize("error", [Fault("broken"), KeyError("zone"), SystemExit(3), asyncio.CancelledError()])
async def test_whatever_comes_out_of_a_plugin_file_the_watching_goes_on(world, error):
    def raises() -> Adopted:
        raise error

    world.outcome = raises
    world.files.now = "broken"
    await world.look()
    await world.look()
    assert world.counts['reloads_total{result="failure"}'] == 1
    world.outcome = lambda: UNCHANGED
    world.files.now = "mended"
    await world.look()
    await world.look()
    assert world.reads == ["broken", "mended"]
    assert world.counts["last_reload_successful"] == 1


async def test_what_the_cluster_prevented_is_tried_again_and_what_is_wrong_is_not(world):
    def not_now() -> Adopted:
        raise NotNow("the server has no widgets")

    world.outcome = not_now
    world.files.now = "with widgets"
    await world.look()
    await world.look()
    await world.wait_until_it_is_time_again()
    assert world.reads == ["with widgets"] * 2

    def wrong() -> Adopted:
        raise OperatorMistake("no")

    world.outcome = wrong
    await world.wait_until_it_is_time_again()
    assert world.reads == ["with widgets"] * 3
    await world.wait_until_it_is_time_again()
    assert world.reads == ["with widgets"] * 3


async def test_without_watching_only_a_request_makes_it_look():
    world = World()
    waiting = asyncio.create_task(world.reloader.run(watches=False))
    world.files.now = "changed"
    for _ in range(10):
        await asyncio.sleep(0)
    assert not world.clock.asleep.is_set()
    assert world.reads == []
    world.reloader.request()
    await world.read_again()
    assert world.reads == ["changed"]
    waiting.cancel()
    await asyncio.wait([waiting])


async def test_in_a_cluster_the_event_is_about_the_schedulers_own_pod(world, monkeypatch):
    monkeypatch.setenv("POD_NAME", "mooring-0")
    monkeypatch.setenv("POD_NAMESPACE", "ops")
    await world.reloader.reload()
    [(about, _)] = world.recorder.events
    assert (about.kind, about.namespace, about.name, about.uid) == ("Pod", "ops", "mooring-0", "uid-1")


async def test_two_broken_versions_are_two_events_and_one_that_is_tried_twice_is_one(world):
    def not_now() -> Adopted:
        raise NotNow("no")

    world.outcome = not_now
    for words in ("one", "two"):
        world.files.now = words
        world.reloader.request()
        await world.read_again()
    await world.reloader.reload()
    abouts = [about.resource_version for about, _ in world.recorder.events]
    assert len(abouts) == 3
    assert len(set(abouts)) == 2
