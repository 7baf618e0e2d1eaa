"""Making room for a pod: who goes, in which order, and what the pod does meanwhile."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import force_setattr
from tests.scheduler.world import World

from mooring.base.errors import ApiError, Unreachable
from mooring.framework import Plan, Pod
from mooring.objects.placed import placed
from mooring.scheduler.cycle.preemption import MOST_PREEMPTIONS
from mooring.testing import a_node_object, a_pod

NODE = "node-1"


@pytest.fixture
async def world() -> World:
    world = World()
    world.state.set_node(a_node_object(NODE))
    return world


def a_victim(name: str, *, going: bool = False, priority: int = 0) -> Pod:
    pod = a_pod(name, uid=f"uid-{name}", node=NODE, priority=priority)
    force_setattr(pod.metadata, "generation", 3)
    if going:
        force_setattr(pod.metadata, "deletion_timestamp", "2026-01-01T00:00:00Z")
        force_setattr(pod.metadata, "resource_version", "2")
    return pod


async def planned(world: World, *victims: Pod, priority: int = 10) -> Pod:
    """The pod was refused and these are to go; requests are on their way as far as the server lets them."""
    for victim in victims:
        world.pods.changed(victim)
    waiting = world.popped(a_pod("important", uid="u1", priority=priority))
    world.evictions.start(Plan(nominate=NODE, evict=tuple(map(placed, victims))), waiting.pod)
    world.failures.unschedulable(waiting, "no", unschedulable={"Fit"}, nominate=NODE)
    await world.settle()
    return waiting.pod


def requested(world: World, *names: str) -> list[tuple[str, str]]:
    """The requests about these pods."""
    return [each for each in world.server.requested if each[1] in names]


async def test_a_victim_is_marked_and_deleted_by_its_uid_and_gets_an_event(world):
    """4.7.b: victims are evicted concurrently."""
    await planned(world, a_victim("low"))
    assert requested(world, "low") == [("patch", "low"), ("delete", "low")]
    marked, deleted = [body for body in world.server.bodies if "uid-low" in str(body)]
    assert marked["metadata"] == {"uid": "uid-low"}
    [condition] = marked["status"]["conditions"]
    assert {key: value for key, value in condition.items() if key != "lastTransitionTime"} == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "default-scheduler: preempting to accommodate a higher priority pod",
        "observedGeneration": 3,
    }
    assert deleted == {"uid": "uid-low"}
    assert world.events[-1] == ("Preempted", "low")
    assert not world.activated


async def test_the_last_victim_goes_after_all_others(world):
    """4.7.b, 4.7.c: victims are evicted concurrently; the last victim is evicted after all others."""
    held = world.server.held["delete", "b"] = asyncio.Event()
    await planned(world, a_victim("a"), a_victim("b"), a_victim("last"))
    assert ("delete", "a") in world.server.requested
    assert not requested(world, "last")
    held.set()
    await world.settle()
    assert requested(world, "last") == [("patch", "last"), ("delete", "last")]


async def test_of_many_preemptions_a_few_are_carried_out_at_once(world):
    """4.7.b: evictions leave room for bindings."""
    victims = [a_victim(f"low-{number}") for number in range(MOST_PREEMPTIONS + 1)]
    *first, last = (victim.name for victim in victims)
    for victim in victims:
        world.server.held["patch", victim.name] = asyncio.Event()
        world.pods.changed(victim)
        plan = Plan(nominate=NODE, evict=(placed(victim),))
        world.evictions.start(plan, a_pod(f"for-{victim.name}", uid=f"for-{victim.uid}", priority=10))
    await world.settle()
    assert world.server.requested == [("patch", name) for name in first]
    assert world.under_way.is_under_way(f"for-uid-{last}")

    world.server.held["patch", first[0]].set()
    await world.settle()
    assert world.server.requested[len(first) :] == [("delete", first[0]), ("patch", last)]


FAILURES = {
    "refused": ApiError(403, "Forbidden", "not allowed"),
    "unreachable": Unreachable("no response"),
    "a bug": RuntimeError("oh"),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
async def test_when_one_victim_cannot_be_evicted_the_last_stays_and_the_pod_is_tried_again(world, failure, capsys):
    """4.7.c, 4.7.d: the last victim is evicted after all others; the preemptor is gated until then."""
    world.server.refusals["delete", "a"] = failure
    await planned(world, a_victim("a"), a_victim("b"), a_victim("last"))
    assert ("delete", "b") in world.server.requested
    assert not requested(world, "last")
    assert world.activated
    assert "Failed to evict pod" in capsys.readouterr().err


async def test_when_the_last_victim_cannot_be_evicted_the_pod_is_tried_again(world, capsys):
    """4.7.d: the preemptor is gated until then."""
    world.server.refusals["delete", "last"] = FAILURES["refused"]
    await planned(world, a_victim("last"))
    assert world.activated
    capsys.readouterr()


ALREADY = {
    "it is gone": ApiError(404, "NotFound", 'pods "a" not found'),
    "it was recreated": ApiError(409, "Conflict", "Precondition failed: UID in precondition: x"),
    "it was recreated, as kube-apiserver reports it": ApiError(422, "Invalid", "metadata.uid: field is immutable"),
}


@pytest.mark.parametrize("response", ALREADY.values(), ids=ALREADY.keys())
async def test_a_victim_counts_as_evicted_without_an_event_when(world, response):
    """4.7.b: victims are evicted concurrently."""
    world.server.refusals["patch", "a"] = response
    await planned(world, a_victim("a"), a_victim("last"))
    assert ("delete", "a") not in world.server.requested
    assert ("delete", "last") in world.server.requested
    assert ("Preempted", "a") not in world.events


async def test_a_mark_that_the_server_is_too_busy_for_is_tried_again(world):
    world.server.refusals["patch", "low"] = ApiError(503, "ServiceUnavailable", "busy")
    await planned(world, a_victim("low"))
    del world.server.refusals["patch", "low"]
    world.server.clock.advance(0.01)
    await world.settle()
    assert requested(world, "low") == [("patch", "low"), ("patch", "low"), ("delete", "low")]


async def test_victims_that_are_going_already_are_left_to_go(world):
    """4.7.b: victims are evicted concurrently."""
    await planned(world, a_victim("low", going=True))
    assert not requested(world, "low")
    assert not world.under_way.is_under_way("u1")


# The victims as others see them


def being_evicted(world: World) -> list[str]:
    return [victim.name for victim in world.under_way.being_evicted()]


async def test_victims_are_being_evicted_from_the_plan_until_the_watch_shows_them_terminating(world):
    world.server.held["patch", "low"] = held = asyncio.Event()
    await planned(world, a_victim("low"), a_victim("last"))
    assert being_evicted(world) == ["low", "last"]
    held.set()
    await world.settle()
    assert not world.under_way.is_under_way("u1"), "all responses are here"
    assert being_evicted(world) == ["low", "last"], "but no watch event"
    world.pods.changed(a_victim("low", going=True))
    world.pods.deleted(a_victim("last"))
    assert being_evicted(world) == []


async def test_the_end_of_an_earlier_preemption_does_not_end_a_later_one_of_the_same_pod(world):
    world.server.held["delete", "first"] = held = asyncio.Event()
    world.server.held["patch", "second"] = asyncio.Event()
    pod = await planned(world, a_victim("first"))
    world.pods.deleted(a_victim("first"))  # the watch is faster than the response
    second = a_victim("second")
    world.pods.changed(second)
    world.evictions.start(Plan(nominate=NODE, evict=(placed(second),)), pod)
    held.set()
    await world.settle()
    assert world.under_way.is_under_way(pod.uid)
    assert being_evicted(world) == ["second"]


async def test_victims_that_cannot_be_evicted_are_not_being_evicted_any_more(world):
    world.server.refusals["delete", "low"] = ApiError(403, "Forbidden", "not allowed")
    await planned(world, a_victim("low"), a_victim("last"))
    assert being_evicted(world) == []


async def test_a_victim_that_was_requeued_and_is_assumed_again_is_not_being_evicted(world):
    victim = a_pod("low", uid="uid-low")
    world.state.assume(victim, NODE, 1.0)
    world.room.enter(victim, NODE, {"Gang": 60.0})
    plan = Plan(nominate=NODE, evict=(world.state.pod("uid-low"),))
    world.evictions.start(plan, a_pod("high", uid="u1", priority=10))
    await world.settle()
    assert being_evicted(world) == ["low"], "it is on its node until its binding cycle has ended"
    world.state.forget("uid-low")
    world.state.assume(victim, NODE, 2.0)
    assert being_evicted(world) == []


# The pod that room is made for


async def test_the_pod_is_kept_out_of_the_queue_until_its_last_victim_goes(world):
    """4.7.c, 4.7.d: the last victim is evicted after all others; the preemptor is gated until then."""
    held = world.server.held["delete", "last"] = asyncio.Event()
    await planned(world, a_victim("first"), a_victim("last"))
    world.pods.deleted(a_victim("first"))
    assert world.queue.where("u1") == "gated"
    # The watch may be faster than the response.
    world.pods.changed(a_victim("last", going=True))
    world.pods.deleted(a_victim("last", going=True))
    assert world.queue.where("u1") in ("active", "backoff")
    held.set()
    await world.settle()
    assert not world.under_way.is_under_way("u1")


async def test_a_pod_that_goes_while_its_victim_is_marked_finds_the_gate_closed(world):
    world.server.held["patch", "low"] = asyncio.Event()
    await planned(world, a_victim("low"))
    other = a_pod("other", node=NODE)
    world.pods.changed(other)
    world.pods.deleted(other)
    assert world.queue.where("u1") == "gated"


async def test_a_pod_whose_victims_went_by_themselves_while_its_gate_was_closed_is_tried_again(world):
    held = world.server.held["patch", "low"] = asyncio.Event()
    world.server.refusals["patch", "low"] = ApiError(404, "NotFound", "no such pod")
    world.server.refusals["patch", "last"] = ApiError(404, "NotFound", "no such pod")
    await planned(world, a_victim("low"), a_victim("last"))
    for name in ("low", "last"):
        world.pods.deleted(a_victim(name))
    assert world.queue.where("u1") == "gated"
    held.set()
    await world.settle()
    assert world.activated


async def test_when_the_eviction_has_ended_the_gate_is_open_also_for_other_events(world):
    held = world.server.held["patch", "low"] = asyncio.Event()
    await planned(world, a_victim("low"))
    other = a_pod("other", node=NODE)
    world.pods.changed(other)
    world.pods.deleted(other)
    assert world.queue.where("u1") == "gated"
    held.set()
    await world.settle()
    assert world.queue.where("u1") == "unschedulable"


async def test_at_the_end_evictions_that_have_begun_get_a_moment(world):
    world.server.held["delete", "low"] = asyncio.Event()
    await planned(world, a_victim("low"))
    await world.evictions.finish(0.001)
    await world.settle()
    assert not world.under_way.is_under_way("u1")


# Others who hoped for the node


async def test_pods_of_lower_priority_lose_their_nomination_to_the_node(world):
    """4.7.a: pods of lower priority lose their nomination."""
    for name, priority, node in (("outbid", 5, NODE), ("equal", 10, NODE), ("elsewhere", 5, "node-2")):
        world.pods.changed(a_pod(name, uid=f"uid-{name}", priority=priority, nominated=node))
        world.queue.done(world.queue.pop().pod.uid)
    await planned(world, a_victim("low"))
    assert [name for verb, name in world.server.requested if verb == "patch"].count("outbid") == 1
    assert not requested(world, "equal", "elsewhere")
    [body] = [body for body in world.server.bodies if "uid-outbid" in str(body)]
    assert body["status"] == {"nominatedNodeName": None}


async def test_who_got_a_node_before_its_nomination_is_cleared_is_left_alone(world):
    """4.7.a: pods of lower priority lose their nomination."""
    outbid = [a_pod(name, uid=f"uid-{name}", priority=5, nominated=NODE) for name in ("first", "second")]
    for pod in outbid:
        world.pods.changed(pod)
        world.queue.done(world.queue.pop().pod.uid)
    held = world.server.held["patch", "first"] = asyncio.Event()
    await planned(world, a_victim("low"))
    world.pods.changed(a_pod("second", uid="uid-second", priority=5, node="node-2", nominated=NODE))
    held.set()
    await world.settle()
    assert requested(world, "first", "second") == [("patch", "first")]
    assert "uid-second" not in world.reporter._written
    assert ("delete", "low") in world.server.requested


async def test_a_nomination_that_cannot_be_cleared_costs_the_pod_its_sleep_and_nothing_else(world, capsys):
    """4.7.a, 4.7.d: pods of lower priority lose their nomination; the preemptor is gated until then."""
    world.pods.changed(a_pod("outbid", uid="uid-outbid", priority=5, nominated=NODE))
    world.queue.done(world.queue.pop().pod.uid)
    world.server.refusals["patch", "outbid"] = FAILURES["refused"]
    await planned(world, a_victim("low"))
    assert ("delete", "low") in world.server.requested
    assert world.activated
    assert "Error updating pod" in capsys.readouterr().err


# Victims that are not bound yet


async def test_a_victim_that_waits_for_permission_is_taken_back_in_memory(world):
    """4.7.b: victims are evicted concurrently."""
    victim = a_pod("low", uid="uid-low", node=NODE)
    world.room.enter(victim, NODE, {"Gang": 60.0})
    verdict = asyncio.ensure_future(world.room.wait(victim, {"Gang": 60.0}))
    await planned(world, victim)
    assert not requested(world, "low")
    assert (await verdict).is_preempted
    [note] = [series.note for series in world.reporter.recorder._series.values() if series.reason == "Preempted"]
    assert note == f"Preempted by pod u1 on node {NODE} (in kube-scheduler memory)."
