"""From reserve on a pod's devices are taken, in memory and for every profile; unreserve gives them back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import force_setattr
from tests.plugins.default.dynamic_resources.builders import (
    World,
    a_claim,
    a_claiming_pod,
    a_class,
    a_device,
    a_slice,
    allocated,
    devices,
    wants,
)
from tests.plugins.default.dynamic_resources.placing import claim_of, reserved, users_of

from mooring.objects.resource import MOST_USERS, DeviceCapacity
from mooring.plugins.default.dynamic_resources import DynamicResources
from mooring.plugins.default.dynamic_resources.plugin import CANNOT_ALLOCATE, IN_USE
from mooring.testing import a_cluster, a_node, a_plugin, a_pod

GPU = "example.com/gpu"


def a_world(*names: str) -> World:
    """A node with these devices, and a claim each for two pods."""
    return World(slices=[a_slice(*devices(*names))], claims=[a_claim("one", wants()), a_claim("two", wants())])


def test_reserved_devices_go_to_no_other_pod():
    world = a_world("gpu-0", "gpu-1")
    reserved(world, a_claiming_pod("one"))
    assert world.chosen(a_claiming_pod("two", uid="other")) == {"r": ["gpu-1"]}


def test_the_last_device_is_taken_once_it_is_reserved():
    world = a_world("gpu-0")
    reserved(world, a_claiming_pod("one"))
    assert world.chosen(a_claiming_pod("two", uid="other")) == CANNOT_ALLOCATE


async def test_what_is_reserved_is_released_however_often():
    world = a_world("gpu-0")
    first = reserved(world, a_claiming_pod("one"))
    assert await first.unreserve() == []
    second = reserved(world, a_claiming_pod("two", uid="other"))
    assert await first.unreserve() == []  # which leaves what others have reserved
    assert world.chosen(a_claiming_pod("one")) == CANNOT_ALLOCATE
    await second.unreserve()
    assert len(world.services.claims_in_flight) == 0
    assert world.services.claim_writer.written == []


def test_other_profiles_know_what_is_reserved():
    world = a_world("gpu-0")
    other = a_plugin(DynamicResources, world.services, filter_timeout=timedelta(seconds=5))
    reserved(world, a_claiming_pod("one"))
    decision = a_cluster(plugins=[other], services=world.services).decide(a_claiming_pod("two", uid="other"))
    assert f"1 {CANNOT_ALLOCATE}." in decision.message


async def test_shares_of_a_device_are_reserved_too():
    capacity = {"memory": DeviceCapacity(value="10Gi")}
    world = World(
        slices=[a_slice(a_device("gpu-0", shareable=True, capacity=capacity))],
        claims=[a_claim(name, wants(capacity={"memory": "6Gi"})) for name in ("one", "two")],
    )
    first = reserved(world, a_claiming_pod("one"))
    assert world.chosen(a_claiming_pod("two", uid="other")) == CANNOT_ALLOCATE
    await first.pre_bind()
    assert world.chosen(a_claiming_pod("two", uid="other")) == CANNOT_ALLOCATE


async def test_a_share_that_the_watch_shows_before_we_know_it_is_written_counts_once():
    capacity = {"memory": DeviceCapacity(value="10Gi")}
    world = World(
        slices=[a_slice(a_device("gpu-0", shareable=True, capacity=capacity))],
        claims=[a_claim(name, wants(capacity={"memory": "5Gi"})) for name in ("one", "two")],
    )
    first = reserved(world, a_claiming_pod("one"))
    claim, allocation = claim_of(world, "one"), first.state.allocations[0]
    force_setattr(claim.status, "allocation", None)
    shown = a_claim("one", wants(capacity={"memory": "5Gi"}), allocation=allocation)
    world.services.objects(type(claim)).put(shown)
    assert world.chosen(a_claiming_pod("two", uid="other")) == {"r": ["gpu-0"]}


def test_who_shares_a_claim_waits_until_it_is_allocated():
    world = a_world("gpu-0")
    reserved(world, a_claiming_pod("one"))
    decision = world.cluster.decide(a_claiming_pod("one", uid="other"))
    assert decision.message == (
        "0/1 nodes are available: resource claim default/one is in the process of being allocated."
        " no new claims to deallocate"
    )


@pytest.mark.parametrize(
    ("users", "refusal"),
    {
        "one more may use it": ([f"user-{at}" for at in range(MOST_USERS - 1)], None),
        "no other pod may": ([f"user-{at}" for at in range(MOST_USERS)], IN_USE),
        "those who do may go on": (["uid", *(f"user-{at}" for at in range(MOST_USERS - 1))], None),
    }.values(),
)
def test_a_claim_is_for_256_pods(users, refusal):
    world = World(claims=[a_claim("claim", allocation=allocated(), reserved_for=users)])
    decision = world.cluster.decide(a_claiming_pod("claim"))
    assert (decision.node is None) == (refusal is not None)
    assert refusal is None or refusal in decision.message


def test_an_allocated_claim_promises_nothing():
    world = World(claims=[a_claim("claim", allocation=allocated())])
    placing = reserved(world, a_claiming_pod("claim"))
    assert (placing.state.allocations, len(world.services.claims_in_flight)) == ({}, 0)


def test_a_pod_without_claims_reserves_nothing():
    assert not reserved(World(), a_pod()).state.claims


def test_extended_resources_of_the_node_itself_need_nothing():
    world = World(a_node(resources={GPU: 1}), classes=[a_class("gpu", provides=GPU)])
    reserved(world, a_pod(requests={GPU: 1}))
    assert len(world.services.claims_in_flight) == 0


async def test_unreserve_lets_go_of_claims_that_were_reserved_for_the_pod_before():
    world = World(claims=[a_claim("claim", allocation=allocated(), reserved_for=["other", "uid"])])
    placing = reserved(world, a_claiming_pod("claim"))
    await placing.unreserve()
    await placing.unreserve()
    assert users_of(claim_of(world)) == ["other"]
    assert world.services.claim_writer.written == [("remove_reserved_for", "default/claim")]


@pytest.mark.parametrize(("is_trial", "written"), [(True, []), (False, ["remove_reserved_for"])])
async def test_a_trial_gives_up_no_reservation_that_was_written_before(is_trial, written):
    """As after a crash between PreBind and Bind: the claim is reserved for the pod, which is tried with its group."""
    claim = a_claim("claim", wants(), allocation=allocated(), reserved_for=["uid"])
    world = World(slices=[a_slice(*devices("gpu-0"))], claims=[claim])
    placing = reserved(world, a_claiming_pod("claim"))
    placing.decision.cycle.is_trial = is_trial
    await placing.unreserve()
    assert [verb for verb, *_ in world.services.claim_writer.written] == written
