"""A run is over when all pods are bound, or when no more bindings can be expected."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from mooring.bench.e2e import events, observing
from mooring.bench.e2e.events import follow_events
from mooring.bench.e2e.observing import observe
from mooring.bench.processes import Usage


@dataclass
class AWatch:
    """What a BindingWatch shows."""

    bound_at: dict[str, float] = field(default_factory=dict)
    first: asyncio.Event = field(default_factory=asyncio.Event)
    all: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class AProcess:
    """It has used one second more each time it is looked at."""

    exit_code: int | None = None
    cpu_seconds: float = 0.0

    @property
    def has_ended(self) -> bool:
        return self.exit_code is not None

    def usage(self) -> Usage:
        self.cpu_seconds += 1.0
        return Usage(self.cpu_seconds, 10.0)


@pytest.fixture
def impatient(monkeypatch) -> None:
    for name in ("LOOK_SECONDS", "START_SECONDS", "STALL_SECONDS", "GRACE_SECONDS"):
        monkeypatch.setattr(observing, name, 0.0)


async def test_all_pods_are_bound():
    watch = AWatch()
    watch.all.set()
    assert (await observe(AProcess(), watch)).trouble == ""  # type: ignore[arg-type]


async def test_the_cpu_time_until_the_first_binding_is_kept(impatient):
    watch = AWatch()
    watch.first.set()
    found = await observe(AProcess(), watch)  # type: ignore[arg-type]
    assert found.start_cpu_seconds == 1.0


async def test_a_process_that_ends_is_reported(impatient):
    found = await observe(AProcess(exit_code=3), AWatch())  # type: ignore[arg-type]
    assert found.trouble == "it ended with exit code 3."


async def test_a_scheduler_that_binds_nothing_any_more_is_reported(impatient):
    found = await observe(AProcess(), AWatch())  # type: ignore[arg-type]
    assert found.trouble == "no pod was bound for 0 s."


class ACluster:
    """Events that come one after the other; the last one about a pod that is not scheduled."""

    def __init__(self, counts: list[int], scheduled: set[str]) -> None:
        self._counts, self._scheduled = iter(counts), scheduled
        self._last = 0

    async def event_count(self) -> int:
        self._last = next(self._counts, self._last)
        return self._last

    async def scheduled_pods(self) -> set[str]:
        return self._scheduled


async def test_events_are_awaited_until_all_are_there(monkeypatch):
    monkeypatch.setattr(events, "LOOK_SECONDS", 0.0)
    found = await follow_events(ACluster([1, 1, 2], {"a", "b"}), 2)  # type: ignore[arg-type]
    assert found.scheduled == 2


async def test_events_for_other_reasons_do_not_count(monkeypatch):
    monkeypatch.setattr(events, "LOOK_SECONDS", 0.0)
    cluster = ACluster([2, 3], {"a"})  # of two events one is about a failure
    waited_for = cluster.scheduled_pods

    async def scheduled_pods() -> set[str]:
        found = await waited_for()
        cluster._scheduled = {"a", "b"}
        return found

    cluster.scheduled_pods = scheduled_pods  # type: ignore[method-assign]
    assert (await follow_events(cluster, 2)).scheduled == 2  # type: ignore[arg-type]


async def test_events_that_do_not_come_are_not_awaited_for_ever(monkeypatch):
    monkeypatch.setattr(events, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(events, "STALL_SECONDS", 0.0)
    found = await follow_events(ACluster([1], {"a"}), 2)  # type: ignore[arg-type]
    assert found.scheduled == 1
