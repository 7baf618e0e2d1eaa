"""Another scheduler that serves the same name is noticed by its bindings, and named."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from tests.client.conftest import InstantClock
from tests.scheduler.conftest import PATIENCE_SECONDS, a_live_scheduler

from mooring.base.errors import ApiError
from mooring.client import EventRecorder
from mooring.objects import Pod
from mooring.objects.core import ObjectReference
from mooring.scheduler.introspection import foreign_bindings
from mooring.scheduler.introspection.foreign_bindings import (
    GRACE_SECONDS,
    METRIC,
    REPORTS_APART_SECONDS,
    ForeignBindings,
)
from mooring.scheduler.metrics import PluginMetrics
from mooring.testing import a_pod

Event = dict[str, Any]


class Server:
    def __init__(self) -> None:
        self.events: list[Event | Exception] = []
        self.requested: list[str] = []

    async def list(self, kind: Any, namespace: str, *, field_selector: str) -> list[Event]:
        self.requested.append(field_selector)
        response = self.events.pop(0) if self.events else {}
        if isinstance(response, Exception):
            raise response
        return [response] if response else []


class ExtenderResults:
    """Stands where the reporter stands."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def warned(self, pod: Pod, *, reason: str, action: str, note: str) -> None:
        assert (reason, action) == ("BoundByAnother", "Binding")
        self.notes.append(note)


class Scene:
    def __init__(self) -> None:
        self.clock, self.server, self.reporter = InstantClock(), Server(), ExtenderResults()
        self._registry = CollectorRegistry()
        self.foreign_bindings = ForeignBindings(
            cast(Any, self.server), self.clock, cast(Any, self.reporter), PluginMetrics(self._registry)
        )

    def at_work(self) -> Scene:
        self.foreign_bindings.expect(a_pod("ours", uid="ours"), "node-1")
        self.clock.advance(GRACE_SECONDS)
        return self

    async def shown(self, name: str, node: str, profile: str = "default-scheduler") -> None:
        self.foreign_bindings.assigned(a_pod(name, uid=name, node=node, scheduler=profile))
        while self.foreign_bindings._reports:
            await asyncio.gather(*self.foreign_bindings._reports)

    def count(self, profile: str = "default-scheduler") -> float:
        line = f'{METRIC}{{profile="{profile}"}} '
        found = [each for each in generate_latest(self._registry).decode().splitlines() if each.startswith(line)]
        return float(found[0].removeprefix(line)) if found else 0.0


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_what_we_bind_ourselves_is_ours(scene):
    scene.at_work()
    await scene.shown("ours", "node-1")
    assert scene.count() == 0
    assert scene.reporter.notes == []


@pytest.mark.parametrize("name", ["ours", "other"], ids=["elsewhere than we tried", "and we did not try at all"])
async def test_what_another_scheduler_binds_is_counted_and_reported(scene, capsys, name):
    scene.at_work().server.events = [{"reportingInstance": "default-scheduler-host-7"}]
    await scene.shown(name, "node-2")
    assert scene.count() == 1
    (note,) = scene.reporter.notes
    assert note.startswith("Bound to node-2 by default-scheduler-host-7, which serves schedulerName default-scheduler")
    assert "another schedulerName" in note
    logged = capsys.readouterr().err
    assert "Another scheduler is binding pods of this profile" in logged
    assert 'by="default-scheduler-host-7"' in logged


async def test_many_are_counted_and_reported_once_in_a_while(scene, capsys):
    scene.at_work()
    for number in range(20):
        await scene.shown(f"pod-{number}", "node-2")
    assert len(scene.reporter.notes) == 1
    scene.clock.advance(REPORTS_APART_SECONDS)
    await scene.shown("later", "node-2")
    assert len(scene.reporter.notes) == 2
    assert scene.count() == 21
    assert "podsSinceLastReport=20" in capsys.readouterr().err


async def test_each_profile_has_its_own_foreign_bindings(scene):
    scene.at_work()
    await scene.shown("a", "node-2")
    await scene.shown("b", "node-2", profile="second")
    assert (scene.count(), scene.count("second")) == (1, 1)
    assert len(scene.reporter.notes) == 2


async def test_the_event_may_come_after_the_binding(scene):
    scene.at_work().server.events = [{}, ApiError(500, "", "busy"), {"source": {"component": "old", "host": "h"}}]
    await scene.shown("other", "node-2")
    assert "by h, which" in scene.reporter.notes[0]
    assert len(scene.server.requested) == 3


async def test_without_the_right_to_list_events_the_note_names_where_to_look(scene):
    scene.at_work().server.events = [ApiError(403, "Forbidden", "no")]
    await scene.shown("other", "node-2")
    assert "this scheduler may not list events" in scene.reporter.notes[0]
    assert len(scene.server.requested) == 1


async def test_a_scheduler_that_stands_by_has_no_foreign_bindings(scene):
    scene.clock.advance(1000)
    await scene.shown("theirs", "node-2")
    assert scene.count() == 0


async def test_the_last_bindings_of_the_leader_before_us_are_not_foreign(scene):
    scene.foreign_bindings.expect(a_pod("ours", uid="ours"), "node-1")
    scene.clock.advance(GRACE_SECONDS - 1)
    await scene.shown("theirs", "node-2")
    assert scene.count() == 0


def test_nothing_is_remembered_of_a_pod_that_is_gone(scene):
    pod = a_pod("ours", uid="ours")
    scene.foreign_bindings.expect(pod, "node-1")
    scene.foreign_bindings.not_pending(pod)
    assert scene.foreign_bindings._expected == {}


async def test_in_a_live_scheduler(server, monkeypatch):
    monkeypatch.setattr(foreign_bindings, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(foreign_bindings, "EVENT_PAUSE_SECONDS", 0.01)
    async with a_live_scheduler(server) as live:
        await live.node("node-1", cpu="1")
        await live.pod("ours")
        await live.bound("ours")
        await live.pod("taken", cpu="64")
        await live.refused("taken")
        uid = live.pods["taken"].uid
        theirs = EventRecorder(live.client, controller="default-scheduler", instance="the-other")
        theirs.record(
            ObjectReference(kind="Pod", namespace="default", name="taken", uid=uid),
            type="Normal",
            reason="Scheduled",
            action="Binding",
            note="Successfully assigned default/taken to node-1",
        )
        await theirs.flush(PATIENCE_SECONDS)
        await live.client.bind("default", "taken", uid, "node-1")
        async with asyncio.timeout(PATIENCE_SECONDS):
            found: list[Any] = []
            while not found:
                found = [event for event in await live.events("taken") if event["reason"] == "BoundByAnother"]
        (reported,) = found
        assert "by the-other" in reported["note"]
        assert reported["type"] == "Warning"
        assert f'{METRIC}{{profile="default-scheduler"}} 1.0' in live.scheduler.metrics.text().decode()
