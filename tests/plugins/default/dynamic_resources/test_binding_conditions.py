"""Devices with binding conditions: pre_bind records an event, polls every five seconds, ends with the timeout."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import force_setattr
from tests.plugins.default.dynamic_resources.builders import (
    World,
    a_claim,
    a_claiming_pod,
    a_device,
    a_slice,
    allocated,
    wants,
)
from tests.plugins.default.dynamic_resources.placing import Placing, claim_of, reserved

from mooring.base.errors import Fault
from mooring.objects.resource import DeviceCondition, DeviceStatus, ResourceClaim
from mooring.plugins.default.dynamic_resources.binding_conditions import POLL_SECONDS, is_overdue

TIMEOUT_SECONDS = 600


def a_world() -> World:
    device = a_device("gpu-0", conditions=["Attached"], failures=["Broken"])
    return World(slices=[a_slice(device)], claims=[a_claim("claim", wants())])


def report(world: World, condition: str, *, reason: str = "", message: str = "") -> None:
    """What the driver reports."""
    claim = claim_of(world)
    reported = DeviceCondition(type=condition, status="True", reason=reason, message=message)
    force_setattr(
        claim.status,
        "devices",
        (DeviceStatus(driver="gpu.example.com", pool="node", device="gpu-0", conditions=(reported,)),),
    )
    world.services.objects(ResourceClaim).put(claim)


async def started(world: World) -> tuple[Placing, asyncio.Task[None]]:
    placing = reserved(world, a_claiming_pod("claim"))
    task = asyncio.ensure_future(placing.pre_bind())
    await settle()
    return placing, task


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def pass_time(world: World, seconds: float) -> None:
    world.services.clock.advance(seconds)
    await settle()


async def test_the_pod_waits_until_the_driver_reports():
    world = a_world()
    _, task = await started(world)
    assert world.services.events.recorded == [
        ("default/pod", "BindingConditionsPending", "waiting for binding conditions for device on node node")
    ]
    await pass_time(world, POLL_SECONDS)
    assert not task.done()
    report(world, "Attached")
    await pass_time(world, POLL_SECONDS)
    await task


async def test_a_failure_ends_the_wait():
    world = a_world()
    placing, task = await started(world)
    report(world, "Broken", reason="Fire", message='it "burns"')
    await pass_time(world, POLL_SECONDS)
    with pytest.raises(Fault) as raised:
        await task
    assert str(raised.value) == 'device binding failed: claim=claim, reason=Fire, message="it \\"burns\\""'
    await placing.unreserve()
    assert claim_of(world).status.reserved_for == ()


async def test_after_the_timeout_the_attempt_has_failed_and_the_claim_is_overdue():
    world = a_world()
    _, task = await started(world)
    for _ in range(int(TIMEOUT_SECONDS / POLL_SECONDS)):
        assert not task.done()
        await pass_time(world, POLL_SECONDS)
    with pytest.raises(Fault) as raised:
        await task
    assert str(raised.value) == "device binding timeout: context deadline exceeded"
    assert is_overdue(claim_of(world), world.services.clock.now() + 1, TIMEOUT_SECONDS)


async def test_a_claim_that_was_allocated_too_long_ago_is_not_waited_for():
    world = a_world()
    _, task = await started(world)
    allocation = claim_of(world).status.allocation
    assert allocation is not None
    force_setattr(allocation, "allocation_timestamp", "2001-01-01T00:00:00Z")
    await pass_time(world, POLL_SECONDS)
    with pytest.raises(Fault, match=r"^device binding timeout: claim=claim$"):
        await task


async def test_a_claim_that_goes_meanwhile_ends_the_wait():
    world = a_world()
    _, task = await started(world)
    world.services.objects(ResourceClaim).remove(claim_of(world))
    await pass_time(world, POLL_SECONDS)
    with pytest.raises(Fault, match=r'^could not find ResourceClaim "default/claim"$'):
        await task


async def test_without_the_gate_no_pod_waits():
    claim = a_claim("claim", allocation=allocated(conditions=["Attached"]))
    world = World(claims=[claim], gates={"DRADeviceBindingConditions": False})
    _, task = await started(world)
    await task
    assert world.services.events.recorded == []
