"""`schedule_one`: which steps follow from a decision, in which order, and that nothing is awaited without extenders."""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import force_setattr
from tests.scheduler.conftest import HEAD

from mooring.base.errors import PluginFault
from mooring.client import ApiClient, Connection
from mooring.config import load_configuration
from mooring.engine import Decision, Permitted, Profile
from mooring.framework import Cycle, NodeView, Plugin, Pod, Rejection
from mooring.plugins.catalogue import catalogue
from mooring.scheduler.cycle.binding_cycle import Placement
from mooring.scheduler.cycle.executor import Outcome
from mooring.scheduler.cycle.scheduling_cycle import SchedulingCycle
from mooring.scheduler.wiring import Core, build_core, complete
from mooring.testing import a_node_object, a_pod

PLUGINS = "multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: Picky}]}"
READS_NOTHING = f"{HEAD}\nprofiles: [{{schedulerName: default-scheduler, plugins: {{{PLUGINS}}}}}]"


class Picky(Plugin):
    """Rejects nodes for pods called "big", and raises for pods called "odd"."""

    name = "Picky"

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        if pod.name == "odd":
            raise RuntimeError("cannot compare")
        return Rejection("node(s) too small") if pod.name == "big" else None


class Recorder:
    """An executor that records its calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.outcomes: list[Outcome] = []
        self.failure: Exception | None = None

    def record(self, pod: Pod, decision: Decision) -> None:
        self.calls.append("record")

    def make_room(self, pod: Pod, profile: Profile, decision: Decision) -> str | None:
        self.calls.append("make_room")
        return None

    def assume(self, placement: Placement) -> None:
        self.calls.append(f"assume on {placement.node.name}")
        if self.failure is not None:
            raise self.failure

    def reserve_and_permit(self, placement: Placement) -> Outcome:
        self.calls.append("reserve_and_permit")
        return Permitted({})

    def bind(self, placement: Placement, outcome: Outcome) -> None:
        self.calls.append("bind")
        self.outcomes.append(outcome)


class Scene:
    """A scheduler with one node that is never contacted by its API server."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.executor = Recorder()
        self.scheduler = complete(core, self.executor, is_explained=False)
        core.state.set_node(a_node_object("node-1"))

    def schedule(self, pod: Pod) -> None:
        """Pop the pod and run its scheduling cycle, without an event loop: an await would be seen here."""
        self.core.pods.changed(pod)
        queued = self.core.queue.pop()
        assert queued is not None
        cycle = self.scheduler.cycle.schedule_one(queued)
        with pytest.raises(StopIteration):
            cycle.send(None)


def a_core(config: str, client: ApiClient, **options: Any) -> Core:
    registry = catalogue()
    registry.add(Picky, "test")
    configuration = load_configuration(config, source="test.yaml", registry=registry).configuration
    return build_core(client, configuration, registry, **options)


@pytest.fixture
async def client() -> AsyncIterator[ApiClient]:
    async with ApiClient(Connection(server="https://127.0.0.1:9", source="the test")) as made:
        yield made


@pytest.fixture
def scene(client: ApiClient) -> Scene:
    return Scene(a_core(READS_NOTHING, client))


async def test_a_pod_that_fits_is_assumed_reserved_permitted_and_bound_without_an_await(scene):
    scene.schedule(a_pod("web"))
    assert scene.executor.calls == ["record", "assume on node-1", "reserve_and_permit", "bind"]


async def test_a_pod_that_fits_no_node_is_requeued_after_room_is_made_for_it(scene):
    scene.schedule(pod := a_pod("big"))
    assert scene.executor.calls == ["record", "make_room"]
    assert scene.core.queue.where(pod.uid) == "unschedulable"


async def test_a_pod_whose_plugin_fails_is_requeued_with_backoff(scene):
    scene.schedule(pod := a_pod("odd"))
    assert scene.executor.calls == ["record"]
    assert scene.core.queue.where(pod.uid) == "backoff"


async def test_a_bug_after_the_decision_undoes_the_placement(scene):
    scene.executor.failure = KeyError("ours")
    scene.schedule(a_pod("web"))
    assert scene.executor.calls == ["record", "assume on node-1", "bind"]
    [outcome] = scene.executor.outcomes
    assert isinstance(outcome, PluginFault)
    assert "KeyError" in str(outcome)


async def test_a_pod_that_is_being_deleted_gets_no_attempt(scene):
    scene.schedule(pod := terminating(a_pod("web")))
    assert scene.executor.calls == []
    assert scene.core.queue.where(pod.uid) == "absent"


async def test_a_pod_whose_plugins_read_a_kind_that_is_not_listed_waits_until_it_is(client):
    scene = Scene(a_core(HEAD, client))
    scene.schedule(pod := a_pod("web"))
    assert scene.executor.calls == []
    assert (scene.core.queue.where(pod.uid), len(scene.core.awaiting_kinds)) == ("unschedulable", 1)
    scene.core.awaiting_kinds.activate()
    assert (scene.core.queue.where(pod.uid), len(scene.core.awaiting_kinds)) == ("active", 0)


def terminating(pod: Pod) -> Pod:
    force_setattr(pod.metadata, "deletion_timestamp", "2026-01-01T00:00:00Z")
    return pod


def test_the_scheduling_cycle_fits_on_one_screen():
    assert len(inspect.getsource(SchedulingCycle.schedule_one).splitlines()) <= 80


def test_the_path_of_a_pod_is_documented_in_at_most_eight_files():
    page = (Path(__file__).parents[3] / "docs" / "architecture.md").read_text(encoding="utf-8")
    path = page.partition("# The path of a pod\n")[2].partition("\n## ")[0]
    files = re.findall(r"^\d+\. \[`([\w/]+\.py)`\]", path, flags=re.MULTILINE)
    assert 5 <= len(files) <= 8
    assert "scheduler/cycle/scheduling_cycle.py" in files
