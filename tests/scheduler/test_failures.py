"""What becomes of a pod whose attempt failed, and of those that make room for it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mooring.base.clock import ManualClock
from mooring.base.errors import ApiError, Unreachable
from mooring.framework import Plan
from mooring.objects import Pod
from mooring.objects.placed import placed
from mooring.queue import SchedulingQueue
from mooring.scheduler.failures import Failures
from mooring.scheduler.feeds import PodFeed
from mooring.scheduler.reporting import Reporter
from mooring.state import State
from mooring.testing import a_pod


class Server:
    """Stands where the client stands, and remembers what it was asked."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.asked: list[tuple[str, str]] = []
        self.bodies: list[dict[str, Any]] = []
        self.refusals: dict[tuple[str, str], Exception] = {}

    def _ask(self, verb: str, name: str) -> None:
        self.asked.append((verb, name))
        if (refusal := self.refusals.get((verb, name))) is not None:
            raise refusal

    async def patch(self, kind, name, namespace, body, *, subresource=None):
        self.bodies.append(body)
        self._ask("patch", name)
        return {}

    async def delete(self, kind, name, namespace, *, uid=None):
        self.bodies.append({"uid": uid})
        self._ask("delete", name)


class World:
    def __init__(self, server: Any) -> None:
        self.server = server
        self.state = State()
        self.queue = SchedulingQueue(self.server.clock, sort_key=lambda queued: queued.timestamp, profiles={})
        self.pods = PodFeed(
            self.state, self.queue, ["default-scheduler"], on_placed=lambda _: None, on_deleted=lambda _: None
        )
        self.reporter = Reporter(self.server, self.server.clock, ["default-scheduler"])
        self.failures = Failures(self.server, self.queue, self.pods, self.reporter)

    def popped(self, pod: Pod):
        self.pods.changed(pod)
        return self.queue.pop()

    @property
    def events(self) -> list[tuple[str, str]]:
        return [(series.reason, series.regarding.name) for series in self.reporter.recorder._series.values()]

    @property
    def activated(self) -> bool:
        return self.queue.counts()["active"] == 1

    async def settle(self) -> None:
        for _ in range(8):
            await asyncio.sleep(0)


@pytest.fixture
async def world() -> World:
    return World(Server())


async def test_a_refused_pod_goes_back_with_an_event_and_a_condition(world):
    waiting = world.popped(a_pod("web", uid="u1"))
    world.failures.refused(waiting, "0/1 nodes are available: 1 Too many pods.", unschedulable={"Fit"})
    await world.settle()
    assert world.queue.where("u1") == "unschedulable"
    assert world.events == [("FailedScheduling", "web")]
    [body] = world.server.bodies
    assert body["metadata"] == {"uid": "u1"}
    assert body["status"]["conditions"][0]["reason"] == "Unschedulable"


async def test_a_broken_attempt_is_tried_again_after_the_error_backoff(world, capsys):
    waiting = world.popped(a_pod("web", uid="u1"))
    world.failures.broken(waiting, "the disk is gone")
    await world.settle()
    assert world.queue.where("u1") == "backoff"
    assert world.server.bodies[0]["status"]["conditions"][0]["reason"] == "SchedulerError"
    assert '"Error scheduling pod; retrying"' in capsys.readouterr().err


async def test_what_changed_during_the_attempt_is_what_goes_back(world):
    pod = a_pod("web")
    waiting = world.popped(pod)
    newer = a_pod("web", uid=pod.uid)
    newer.metadata.resource_version = "2"
    world.pods.changed(newer)
    world.failures.broken(waiting, "no")
    assert world.queue.find(pod.uid).pod is newer


GONE = {
    "deleted": (lambda world, pod: world.pods.deleted(pod), "Pod doesn't exist in informer cache"),
    "bound by somebody else": (
        lambda world, pod: world.pods.changed(a_pod("web", uid=pod.uid, node="node-1")),
        "Pod has been assigned to node. Abort adding it back to queue.",
    ),
}


@pytest.mark.parametrize(("happens", "words"), GONE.values(), ids=GONE.keys())
async def test_nothing_is_said_about_a_pod_that_was_meanwhile(world, capsys, happens, words):
    pod = a_pod("web")
    waiting = world.popped(pod)
    happens(world, pod)
    world.failures.broken(waiting, "no")
    await world.settle()
    assert world.queue.where(pod) == "absent"
    assert not list(world.queue.in_flight())
    assert (world.events, world.server.asked) == ([], [])
    assert words in capsys.readouterr().err


async def test_nothing_is_said_about_a_namesake_made_meanwhile(world):
    first, second = a_pod("web"), a_pod("web")
    waiting = world.popped(first)
    world.pods.changed(second)
    world.failures.broken(waiting, "no")
    await world.settle()
    assert (world.queue.where(first), world.queue.where(second)) == ("absent", "active")
    assert (world.events, world.server.asked) == ([], [])


# Making room


def a_plan(*names: str) -> Plan:
    return Plan(nominate="node-1", evict=tuple(placed(a_pod(name, uid=f"uid-{name}", node="node-1")) for name in names))


async def refuse_and_make_room(world: World, plan: Plan) -> None:
    waiting = world.popped(a_pod("important", uid="u1"))
    world.failures.refused(waiting, "no", unschedulable={"Fit"})
    await world.settle()
    world.server.asked.clear()
    world.server.bodies.clear()
    world.failures.execute(plan, waiting.pod)
    await world.settle()
    await world.failures.finish(1)


async def test_a_victim_is_marked_and_deleted_by_its_uid_and_told(world):
    await refuse_and_make_room(world, a_plan("low"))
    assert world.server.asked == [("patch", "low"), ("delete", "low")]
    marked, deleted = world.server.bodies
    assert marked["metadata"] == {"uid": "uid-low"}
    assert marked["status"]["conditions"][0]["reason"] == "PreemptionByScheduler"
    assert deleted == {"uid": "uid-low"}
    assert world.events[-1] == ("Preempted", "low")
    assert not world.activated


async def test_the_last_victim_goes_after_all_others(world):
    await refuse_and_make_room(world, a_plan("a", "b", "last"))
    assert [name for verb, name in world.server.asked if verb == "delete"][-1] == "last"
    assert len(world.server.asked) == 6


FAILURES = {
    "refused": ApiError(403, "Forbidden", "not allowed"),
    "unreachable": Unreachable("nobody answers"),
    "a bug": RuntimeError("oh"),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
async def test_when_one_victim_cannot_be_evicted_the_last_stays_and_the_pod_is_tried_again(world, failure, capsys):
    world.server.refusals["delete", "a"] = failure
    await refuse_and_make_room(world, a_plan("a", "b", "last"))
    assert ("delete", "b") in world.server.asked
    assert ("patch", "last") not in world.server.asked
    assert world.activated
    assert "Could not evict pod" in capsys.readouterr().err


ALREADY = {
    "it is gone": ApiError(404, "NotFound", 'pods "a" not found'),
    "a namesake took its place": ApiError(409, "Conflict", "Precondition failed: UID in precondition: x"),
    "a namesake, as kube-apiserver says it": ApiError(422, "Invalid", "metadata.uid: field is immutable"),
}


@pytest.mark.parametrize("answer", ALREADY.values(), ids=ALREADY.keys())
async def test_a_victim_counts_as_evicted_without_an_event_when(world, answer):
    world.server.refusals["patch", "a"] = answer
    await refuse_and_make_room(world, a_plan("a", "last"))
    assert ("delete", "a") not in world.server.asked
    assert ("delete", "last") in world.server.asked
    assert ("Preempted", "a") not in world.events


async def test_a_victim_that_is_going_already_is_left_to_go(world):
    victim = a_pod("low", node="node-1")
    victim.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    await refuse_and_make_room(world, Plan(evict=(placed(victim),)))
    assert world.server.asked == []
