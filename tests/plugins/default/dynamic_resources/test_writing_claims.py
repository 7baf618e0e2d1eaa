"""pre_bind writes finalizer, allocation and user of each claim; a conflict is tried again, a failure is undone."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import force_setattr
from tests.plugins.default.dynamic_resources.builders import (
    World,
    a_claim,
    a_claiming_pod,
    a_class,
    a_slice,
    allocated,
    devices,
    wants,
)
from tests.plugins.default.dynamic_resources.placing import Placing, bound, claim_of, devices_of, reserved, users_of

from mooring.base.clock import timestamp
from mooring.base.errors import ApiError, Fault, Unreachable
from mooring.objects import ObjectMeta
from mooring.objects.resource import ResourceClaim
from mooring.plugins.default.dynamic_resources import claim_binder
from mooring.plugins.default.dynamic_resources.claim_binder import PAUSE_SECONDS, TRIES, UNKNOWN_WRITE_SECONDS
from mooring.testing import a_node, a_pod
from mooring.testing.claims import a_conflict

GPU = "example.com/gpu"


def a_world(*claims: ResourceClaim, gates: dict[str, bool] | None = None) -> World:
    return World(
        slices=[a_slice(*devices("gpu-0", "gpu-1"))],
        classes=[a_class(provides=GPU)],
        claims=claims or [a_claim("claim", wants())],
        gates=gates,
    )


class Hurried:
    """Sleeps of the plugin take no time, but are counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, world: World) -> None:
        self.slept: list[float] = []

        async def sleep(seconds: float) -> None:
            self.slept.append(seconds)

        monkeypatch.setattr(world.services.clock, "sleep", sleep)


async def test_a_claim_is_protected_then_allocated_and_reserved_for_the_pod():
    world = a_world()
    await bound(world, a_claiming_pod("claim"))
    claim = claim_of(world)
    assert (devices_of(claim), users_of(claim)) == (["gpu-0"], ["uid"])
    assert claim.status.reserved_for[0].resource == "pods"
    writer = world.services.claim_writer
    assert writer.written == [("add_finalizer", "default/claim"), ("write_reserved_for", "default/claim")]
    assert writer.protected == {"default/claim"}
    assert len(world.services.claims_in_flight) == 0


@pytest.mark.parametrize("is_on", [True, False])
async def test_when_it_was_allocated_is_written_where_drivers_may_take_their_time(is_on):
    world = a_world(gates={"DRADeviceBindingConditions": is_on})
    await bound(world, a_claiming_pod("claim"))
    allocation = claim_of(world).status.allocation
    assert allocation is not None
    assert allocation.allocation_timestamp == (timestamp(world.services.clock.now()) if is_on else None)


async def test_claims_of_a_pod_are_written_before_those_of_the_next_begin(monkeypatch):
    monkeypatch.setattr(claim_binder, "MOST_WRITERS", 1)
    world = a_world(a_claim("first", wants()), a_claim("second", wants()))
    writer = world.services.claim_writer
    add_finalizer = writer.add_finalizer

    async def add_slowly(claim: ResourceClaim) -> ResourceClaim:
        protected = await add_finalizer(claim)
        await asyncio.sleep(0)  # another pod would begin now
        return protected

    monkeypatch.setattr(writer, "add_finalizer", add_slowly)
    pods = [a_claiming_pod(name, uid=name) for name in ("first", "second")]
    await asyncio.gather(*(each.pre_bind() for each in [reserved(world, pod) for pod in pods]))
    assert [claim for _, claim in writer.written] == ["default/first"] * 2 + ["default/second"] * 2


async def test_an_allocated_claim_gets_one_more_user():
    world = a_world(a_claim("claim", allocation=allocated(at="2026-01-01T00:00:00Z"), reserved_for=["other"]))
    await bound(world, a_claiming_pod("claim"))
    assert users_of(claim_of(world)) == ["other", "uid"]
    assert claim_of(world).status.allocation == allocated(at="2026-01-01T00:00:00Z")
    assert world.services.claim_writer.written == [("write_reserved_for", "default/claim")]


async def test_a_claim_that_is_reserved_for_the_pod_is_left_alone():
    world = a_world(a_claim("claim", allocation=allocated(), reserved_for=["uid"]))
    await bound(world, a_claiming_pod("claim"))
    assert world.services.claim_writer.written == []


async def test_whether_there_is_something_to_do_is_known_before():
    world = a_world()
    for pod, is_needed in ((a_pod(), False), (a_claiming_pod("claim"), True)):
        placing = Placing(world, pod)
        assert placing.decision.view is not None
        needed = world.plugin.needs_pre_bind(pod, placing.decision.view, placing.decision.cycle.shown)
        assert needed is is_needed


async def test_after_a_conflict_the_claim_is_read_again_and_what_others_wrote_stays(monkeypatch):
    world = a_world(a_claim("claim", allocation=allocated()))
    hurried, placing = Hurried(monkeypatch, world), reserved(world, a_claiming_pod("claim"))
    changed = a_claim("claim", allocation=allocated(), reserved_for=["other"])
    force_setattr(changed.metadata, "resource_version", "7")
    writer = world.services.claim_writer
    write = writer.write_reserved_for

    async def write_after_another(claim: ResourceClaim, *, with_allocation: bool) -> ResourceClaim:
        if users_of(claim) == ["uid"]:
            world.services.objects(ResourceClaim).put(changed)
        return await write(claim, with_allocation=with_allocation)

    monkeypatch.setattr(writer, "write_reserved_for", write_after_another)
    await placing.pre_bind()
    assert users_of(claim_of(world)) == ["other", "uid"]
    assert hurried.slept == [PAUSE_SECONDS]
    assert [verb for verb, _ in world.services.claim_writer.written] == [
        "write_reserved_for",
        "read",
        "write_reserved_for",
    ]


@pytest.mark.parametrize("verb", ["add_finalizer", "write_reserved_for"])
async def test_conflicts_are_tried_again_five_times_at_most(monkeypatch, verb):
    world = a_world()
    hurried, placing = Hurried(monkeypatch, world), reserved(world, a_claiming_pod("claim"))
    world.services.claim_writer.failures[verb] = [a_conflict("claim") for _ in range(TRIES)]
    words = "add finalizer" if verb == "add_finalizer" else "add allocation and reservation"
    with pytest.raises(Fault, match=f"{words} to claim default/claim: Operation cannot be fulfilled"):
        await placing.pre_bind()
    assert hurried.slept == [PAUSE_SECONDS] * (TRIES - 1)
    await placing.unreserve()
    assert (devices_of(claim_of(world)), len(world.services.claims_in_flight)) == ([], 0)


def _changed(**status: object) -> ResourceClaim:
    claim = a_claim("claim", wants(), **status)  # type: ignore[arg-type]
    force_setattr(claim.metadata, "resource_version", "7")
    return claim


def _a_recreated_claim() -> ResourceClaim:
    claim = _changed()
    force_setattr(claim, "metadata", ObjectMeta(name="claim", namespace="default", uid="another", resource_version="7"))
    return claim


OVERTAKEN: dict[str, tuple[ResourceClaim, ResourceClaim, str]] = {
    "allocated by another client": (
        a_claim("claim", wants()),
        _changed(allocation=allocated("gpu-1")),
        "claim default/claim got allocated elsewhere in the meantime",
    ),
    "being deleted": (
        a_claim("claim", wants()),
        _changed(deleted=True),
        "claim default/claim got deleted in the meantime",
    ),
    "deleted and made again": (
        a_claim("claim", wants()),
        _a_recreated_claim(),
        "claim default/claim got deleted in the meantime",
    ),
    "deallocated": (
        a_claim("claim", wants(), allocation=allocated()),
        _changed(),
        "claim default/claim got deallocated elsewhere in the meantime",
    ),
}


@pytest.mark.parametrize(("before", "after", "fault"), OVERTAKEN.values(), ids=OVERTAKEN.keys())
async def test_what_others_did_to_the_claim_can_end_the_attempt(monkeypatch, before, after, fault):
    world = a_world(before)
    Hurried(monkeypatch, world)
    placing = reserved(world, a_claiming_pod("claim"))
    world.services.objects(ResourceClaim).put(after)
    with pytest.raises(Fault) as raised:
        await placing.pre_bind()
    assert str(raised.value) == fault
    await placing.unreserve()
    assert len(world.services.claims_in_flight) == 0


async def test_a_claim_that_is_gone_ends_the_attempt(monkeypatch):
    world = a_world()
    Hurried(monkeypatch, world)
    placing = reserved(world, a_claiming_pod("claim"))
    world.services.objects(ResourceClaim).remove(claim_of(world))
    with pytest.raises(Fault, match=r'add finalizer to claim default/claim: .* "claim" not found'):
        await placing.pre_bind()


async def test_when_the_second_claim_fails_the_first_is_not_reserved_any_more():
    world = a_world(a_claim("one", wants()), a_claim("two", wants()))
    placing = reserved(world, a_claiming_pod("one", "two"))
    assert len(world.services.claims_in_flight) == 2
    writer = world.services.claim_writer
    world.services.objects(ResourceClaim).remove(claim_of(world, "two"))
    with pytest.raises(Fault):
        await placing.pre_bind()
    assert users_of(claim_of(world, "one")) == ["uid"]
    assert await placing.unreserve() == []
    assert (users_of(claim_of(world, "one")), len(world.services.claims_in_flight)) == ([], 0)
    assert writer.written[-1] == ("remove_reserved_for", "default/one")


def lose_responses(
    monkeypatch: pytest.MonkeyPatch, world: World, fault: BaseException, *, is_written: bool
) -> list[int]:
    """The server writes the status, but the response is lost; then it is away for two requests.

    Returns how many claims were in flight at each request.
    """
    writer, seen = world.services.claim_writer, list[int]()
    write, read, hidden = writer.write_reserved_for, writer.read, list[ResourceClaim]()

    async def lost(claim: ResourceClaim, *, with_allocation: bool) -> ResourceClaim:
        if is_written:
            before = claim_of(world)
            hidden.append(await write(claim, with_allocation=with_allocation))
            world.services.objects(ResourceClaim).put(before)
        raise fault

    async def read_later(claim: ResourceClaim) -> ResourceClaim:
        seen.append(len(world.services.claims_in_flight))
        if len(seen) < 3:
            raise Unreachable("connection refused")
        for each in hidden:
            world.services.objects(ResourceClaim).put(each)
        return await read(claim)

    monkeypatch.setattr(writer, "write_reserved_for", lost)
    monkeypatch.setattr(writer, "read", read_later)
    return seen


LOST = {
    "no response": Unreachable("connection refused"),
    "the server gave up": ApiError(504, "Timeout", "request did not complete within the allotted timeout"),
    "the scheduler stops": asyncio.CancelledError(),
}


@pytest.mark.parametrize("is_written", [True, False], ids=["written", "not written"])
@pytest.mark.parametrize("fault", LOST.values(), ids=LOST.keys())
async def test_devices_stay_taken_until_it_is_known_whether_they_were_written(monkeypatch, fault, is_written):
    world = a_world()
    Hurried(monkeypatch, world)
    placing = reserved(world, a_claiming_pod("claim"))
    seen = lose_responses(monkeypatch, world, fault, is_written=is_written)
    with pytest.raises((Fault, asyncio.CancelledError)):
        await placing.pre_bind()
    assert await placing.unreserve() == []
    assert seen == [1, 1, 1]
    assert len(world.services.claims_in_flight) == 0
    claim = claim_of(world)
    assert (devices_of(claim), users_of(claim)) == (["gpu-0"] if is_written else [], [])


async def test_a_server_that_never_responds_is_not_waited_for_for_ever(monkeypatch):
    world = a_world()
    placing = reserved(world, a_claiming_pod("claim"))
    away: list[Exception] = [Unreachable("connection refused")] * 1000
    world.services.claim_writer.failures |= {"write_reserved_for": [away[0]], "read": away}
    with pytest.raises(Fault):
        await placing.pre_bind()

    async def sleep(seconds: float) -> None:
        world.services.clock.advance(seconds)

    monkeypatch.setattr(world.services.clock, "sleep", sleep)
    began = world.services.clock.now()
    await placing.unreserve()
    assert UNKNOWN_WRITE_SECONDS <= world.services.clock.now() - began < UNKNOWN_WRITE_SECONDS + 2
    assert len(world.services.claims_in_flight) == 0


async def test_an_unreserve_that_fails_is_logged_and_keeps_no_other_claim():
    world = a_world(a_claim("one", wants()), a_claim("two", wants()))
    placing = await bound(world, a_claiming_pod("one", "two"))
    world.services.claim_writer.failures["remove_reserved_for"] = [ApiError(500, "InternalError", "not now")]
    assert await placing.unreserve() == []
    assert (users_of(claim_of(world, "one")), users_of(claim_of(world, "two"))) == (["uid"], [])
    assert world.services.log.messages == ["Unreserve failed"]


# Extended resources


async def test_a_claim_for_extended_resources_is_made_allocated_and_named_in_the_pod():
    world = a_world(a_claim("claim", wants()))
    pod = a_pod("train", uid="uid", requests={GPU: 1})
    placing = await bound(world, pod)
    claim = claim_of(world, "train-extended-resources-x")
    assert (devices_of(claim), users_of(claim)) == (["gpu-0"], ["uid"])
    assert (claim.metadata.owner_references[0].name, claim.metadata.owner_references[0].controller) == ("train", True)
    name, mappings = world.services.claim_writer.extended_claims[pod.key]
    assert (name, [each.resource_name for each in mappings]) == (claim.name, [GPU])
    assert [verb for verb, _ in world.services.claim_writer.written] == [
        "create",
        "add_finalizer",
        "write_reserved_for",
        "write_extended_claim",
    ]
    assert len(world.services.claims_in_flight) == 0
    assert world.chosen(a_claiming_pod("claim", uid="other")) == {"r": ["gpu-1"]}
    await placing.unreserve()
    await placing.unreserve()
    assert world.services.objects(ResourceClaim).get(claim.name, "default") is None


async def test_beside_claims_of_the_spec_extended_resources_of_the_node_itself_need_none():
    classes = [a_class(provides=GPU)]
    world = World(
        a_node(resources={GPU: 1}),
        slices=[a_slice(*devices("gpu-0"))],
        classes=classes,
        claims=[a_claim("claim", wants())],
    )
    await bound(world, a_claiming_pod("claim", requests={GPU: 1}))
    assert world.services.claim_writer.written == [
        ("add_finalizer", "default/claim"),
        ("write_reserved_for", "default/claim"),
    ]
    assert len(world.services.claims_in_flight) == 0


async def test_its_devices_are_held_until_the_claim_is_shown(monkeypatch):
    world = a_world(a_claim("claim", wants()))
    writer, store = world.services.claim_writer, world.services.objects(ResourceClaim)
    placing = reserved(world, a_pod("train", uid="uid", requests={GPU: 1}))
    hidden: list[ResourceClaim] = []
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        assert world.chosen(a_claiming_pod("claim", uid="other")) == {"r": ["gpu-1"]}
        store.put(hidden[0])

    async def hide(*_: object) -> None:
        hidden.append(claim_of(world, "train-extended-resources-x"))
        store.remove(hidden[0])

    monkeypatch.setattr(world.services.clock, "sleep", sleep)
    monkeypatch.setattr(writer, "write_extended_claim", hide)
    await placing.pre_bind()
    assert (len(slept), len(world.services.claims_in_flight)) == (1, 0)


FAILURES = {
    "create": "create claim for extended resources default/: not now",
    "add_finalizer": "add finalizer to claim default/train-extended-resources-x: not now",
    "write_reserved_for": "add allocation and reservation to claim default/train-extended-resources-x: not now",
    "write_extended_claim": "update pod default/train ExtendedResourceClaimStatus: not now",
}


@pytest.mark.parametrize(("verb", "fault"), FAILURES.items(), ids=FAILURES.keys())
async def test_of_a_claim_that_could_not_be_finished_nothing_is_left(verb, fault):
    world = a_world(a_claim("claim", wants()))
    placing = reserved(world, a_pod("train", uid="uid", requests={GPU: 1}))
    world.services.claim_writer.failures[verb] = [ApiError(500, "InternalError", "not now")]
    with pytest.raises(Fault) as raised:
        await placing.pre_bind()
    assert str(raised.value) == fault
    assert await placing.unreserve() == []
    assert [claim.name for claim in world.services.objects(ResourceClaim).all()] == ["claim"]
    assert len(world.services.claims_in_flight) == 0
