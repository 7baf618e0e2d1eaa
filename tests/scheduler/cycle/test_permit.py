"""Pods that wait on permit: all must allow, one may reject, time runs out."""

import asyncio

import pytest

from mooring.base.clock import ManualClock
from mooring.objects import ObjectMeta, Pod
from mooring.scheduler.cycle.permit import PermitOutcome, PermitRoom

POD = Pod(metadata=ObjectMeta(name="web", namespace="default", uid="u1"))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def a_waiting_pod(clock: ManualClock, **waits: float) -> tuple[PermitRoom, asyncio.Task[PermitOutcome]]:
    room = PermitRoom(clock)
    room.enter(POD, "node-1", waits)
    task = asyncio.create_task(room.wait(POD, waits))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return room, task


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_pod_goes_on_when_every_plugin_has_allowed_it(clock):
    """4.3.15: Permit allows, rejects or waits."""
    room, waiting = await a_waiting_pod(clock, Gang=60, Quota=60)
    assert [entry.waiting_for for entry in room] == [{"Gang", "Quota"}]

    assert room.allow("u1", "Gang")
    await asyncio.sleep(0)
    assert not waiting.done()

    assert room.allow("u1", "Quota")
    assert (await waiting).refusal is None
    assert list(room) == []


async def test_one_rejection_is_enough(clock):
    """4.3.15, 4.4.3: Permit allows, rejects or waits; a rejection on permit records its plugin."""
    room, waiting = await a_waiting_pod(clock, Gang=60, Quota=60)
    assert room.reject("u1", "Gang", "a sibling failed")
    verdict = await waiting
    assert (verdict.plugin, verdict.refusal and verdict.refusal.reasons) == ("Gang", ("a sibling failed",))


async def test_the_shortest_time_decides_and_names_its_plugin(clock):
    """4.3.15, 4.4.3: Permit allows, rejects or waits; a rejection on permit records its plugin."""
    _, waiting = await a_waiting_pod(clock, Gang=300, Quota=600)
    clock.advance(299)
    await asyncio.sleep(0)
    assert not waiting.done()
    clock.advance(1)
    verdict = await waiting
    assert verdict.refusal is not None
    assert verdict.refusal.reasons == ("rejected due to timeout after waiting 5m0s at plugin Gang",)


async def test_permission_that_comes_before_the_waiting_began_counts(clock):
    room = PermitRoom(clock)
    room.enter(POD, "node-1", {"Gang": 60})
    room.allow("u1", "Gang")
    assert (await room.wait(POD, {"Gang": 60})).refusal is None


async def test_the_time_runs_from_the_moment_it_is_let_in(clock):
    """4.3.15. Before its binding waits, its nomination is patched; that may take long."""
    room = PermitRoom(clock)
    room.enter(POD, "node-1", {"Gang": 60})
    clock.advance(60)
    verdict = await asyncio.wait_for(room.wait(POD, {"Gang": 60}), 1)
    assert verdict.refusal is not None
    assert verdict.refusal.reasons == ("rejected due to timeout after waiting 1m0s at plugin Gang",)


async def test_an_unknown_pod_can_be_neither_allowed_nor_rejected(clock):
    room = PermitRoom(clock)
    assert not room.allow("unknown", "Gang")
    assert not room.reject("unknown", "Gang", "why not")


async def test_a_plugin_that_has_allowed_has_no_time_limit_any_more(clock):
    room, waiting = await a_waiting_pod(clock, Gang=10, Quota=600)
    room.allow("u1", "Gang")
    clock.advance(10)
    await settle()
    assert not waiting.done()
    clock.advance(590)
    verdict = await waiting
    assert verdict.refusal is not None
    assert verdict.refusal.reasons == ("rejected due to timeout after waiting 10m0s at plugin Quota",)


async def test_a_pod_that_was_allowed_can_no_longer_be_rejected(clock):
    room = PermitRoom(clock)
    room.enter(POD, "node-1", {"Gang": 60})
    room.allow("u1", "Gang")
    assert not room.reject("u1", "Gang", "too late")
    assert (await room.wait(POD, {"Gang": 60})).refusal is None


async def test_when_the_room_closes_no_pod_waits_any_longer(clock):
    room, waiting = await a_waiting_pod(clock, Gang=60)
    room.close()
    verdict = await waiting
    assert (verdict.is_closed, verdict.refusal) == (True, None)
    assert list(room) == []
