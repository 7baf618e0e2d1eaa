"""Which devices a claim gets on a node: the first that will do, in the order of pools, slices and devices."""

from __future__ import annotations

from datetime import timedelta

import msgspec
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
    first_of,
    wants,
)

from mooring.base.errors import Fault
from mooring.objects.resource import DeviceAttribute, DeviceRequest, ResourceClaim
from mooring.plugins.default.dynamic_resources.plugin import CANNOT_ALLOCATE

FOUR = a_slice(*(a_device(f"gpu-{at}", index=at, model="ab"[at % 2]) for at in range(4)))
EVEN = 'device.attributes["gpu.example.com"].model == "a"'
LATE = 'device.attributes["gpu.example.com"].index >= 2'

REQUESTS: dict[str, tuple[list[DeviceRequest], dict[str, list[str]] | str]] = {
    "one device is the first": ([wants()], {"r": ["gpu-0"]}),
    "several are the first ones": ([wants("r", 3)], {"r": ["gpu-0", "gpu-1", "gpu-2"]}),
    "more than there are cannot be had": ([wants("r", 5)], CANNOT_ALLOCATE),
    "a selector leaves devices out": ([wants("r", 2, EVEN)], {"r": ["gpu-0", "gpu-2"]}),
    "every selector must select": ([wants("r", 1, EVEN, LATE)], {"r": ["gpu-2"]}),
    "all means all that are selected": ([wants("r", all=True)], {"r": ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]}),
    "all of nothing cannot be had": ([wants("r", 1, EVEN, "!(" + EVEN + ")", all=True)], CANNOT_ALLOCATE),
    "two requests get different devices": ([wants("a"), wants("b")], {"a": ["gpu-0"], "b": ["gpu-1"]}),
    "an early request gives way to a late one that needs its device": (
        [wants("a", 2), wants("b", 1, EVEN), wants("c", 1, EVEN)],
        {"a": ["gpu-1", "gpu-3"], "b": ["gpu-0"], "c": ["gpu-2"]},
    ),
    "backtracking finds the combination": (
        [wants("a"), wants("b", 2, EVEN)],
        {"a": ["gpu-1"], "b": ["gpu-0", "gpu-2"]},
    ),
    "the first alternative that can be had is taken": (
        [first_of("r", wants("big", 5), wants("small", 2), wants("tiny", 1))],
        {"r/small": ["gpu-0", "gpu-1"]},
    ),
    "an alternative is given up for a later request": (
        [first_of("r", wants("all", all=True), wants("one")), wants("s", 3)],
        {"r/one": ["gpu-0"], "s": ["gpu-1", "gpu-2", "gpu-3"]},
    ),
    "no alternative will do": ([first_of("r", wants("a", 5), wants("b", 6))], CANNOT_ALLOCATE),
}


@pytest.mark.parametrize(("requests", "chosen"), REQUESTS.values(), ids=REQUESTS.keys())
def test_what_a_claim_gets(requests, chosen):
    world = World(slices=[FOUR], claims=[a_claim("claim", *requests)])
    assert world.chosen(a_claiming_pod("claim")) == chosen


def test_two_claims_get_different_devices():
    world = World(slices=[FOUR], claims=[a_claim("one", wants("a", 2)), a_claim("two", wants("b", 2))])
    assert world.chosen(a_claiming_pod("two", "one")) == {"b": ["gpu-0", "gpu-1"], "a": ["gpu-2", "gpu-3"]}


IN_USE: dict[str, tuple[ResourceClaim, DeviceRequest, dict[str, list[str]] | str]] = {
    "a device that another claim holds is passed over": (
        a_claim("other", allocation=allocated("gpu-0")),
        wants(),
        {"r": ["gpu-1"]},
    ),
    "all devices cannot be had while one is in use": (
        a_claim("other", allocation=allocated("gpu-3")),
        wants(all=True),
        CANNOT_ALLOCATE,
    ),
    "access for administration holds nothing": (
        a_claim("other", allocation=allocated("gpu-0", admin=True)),
        wants(),
        {"r": ["gpu-0"]},
    ),
    "an administrator has devices that are in use": (
        a_claim("other", allocation=allocated("gpu-0")),
        wants(admin=True),
        {"r": ["gpu-0"]},
    ),
    "a device of that name in another pool is another device": (
        a_claim("other", allocation=allocated("gpu-0", pool="elsewhere")),
        wants(),
        {"r": ["gpu-0"]},
    ),
}


@pytest.mark.parametrize(("other", "request_", "chosen"), IN_USE.values(), ids=IN_USE.keys())
def test_devices_in_use(other, request_, chosen):
    world = World(slices=[FOUR], claims=[other, a_claim("claim", request_)])
    assert world.chosen(a_claiming_pod("claim")) == chosen


def test_a_device_is_free_again_once_its_claim_is_deallocated():
    other = a_claim("other", allocation=allocated("gpu-0"))
    world = World(slices=[a_slice(a_device("gpu-0"))], claims=[other, a_claim("claim", wants())])
    assert world.chosen(a_claiming_pod("claim")) == CANNOT_ALLOCATE
    world.services.objects(ResourceClaim).put(a_claim("other"))
    assert world.chosen(a_claiming_pod("claim")) == {"r": ["gpu-0"]}


def test_a_claim_holds_at_most_32_devices():
    many = a_slice(*devices(*(f"gpu-{at:02d}" for at in range(40))))
    world = World(slices=[many], claims=[a_claim("claim", wants("r", 33))])
    with pytest.raises(
        Fault, match="claim default/claim: number of requested devices 33 exceeds the claim limit of 32"
    ):
        world.chosen(a_claiming_pod("claim"))


def test_an_alternative_with_too_many_devices_is_passed_over():
    many = a_slice(*devices(*(f"gpu-{at:02d}" for at in range(40))))
    claim = a_claim("claim", wants("a", 30), first_of("r", wants("more", 3), wants("two", 2)))
    chosen = World(slices=[many], claims=[claim]).chosen(a_claiming_pod("claim"))
    assert isinstance(chosen, dict)
    assert chosen["r/two"] == ["gpu-30", "gpu-31"]


def test_the_search_is_as_deep_as_a_claim_can_request():
    claims = [a_claim(f"claim-{at}", wants(f"r{at}", 32)) for at in range(40)]
    many = a_slice(*devices(*(f"gpu-{at:04d}" for at in range(40 * 32))))
    chosen = World(slices=[many], claims=claims).chosen(a_claiming_pod(*(claim.name for claim in claims)))
    assert isinstance(chosen, dict)
    assert chosen["r39"][-1] == "gpu-1279"


WRONG: dict[str, tuple[ResourceClaim, str]] = {
    "a selector that does not compile": (
        a_claim("claim", wants("r", 1, "device.unknown")),
        "claim default/claim: selector #0: CEL compile error: ",
    ),
    "a selector without a value": (
        a_claim("claim", wants("r", 1, 'device.attributes["gpu.example.com"].missing == 1')),
        "claim default/claim: selector #0: CEL runtime error: no such key: missing",
    ),
    "a selector of the class": (
        a_claim("claim", wants(of="broken")),
        "class broken: selector #0: CEL runtime error: no such key: missing",
    ),
}


@pytest.mark.parametrize(("claim", "message"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_selector_fails_the_attempt(claim, message):
    broken = a_class("broken", 'device.attributes["gpu.example.com"].missing == 1')
    world = World(slices=[FOUR], claims=[claim], classes=[a_class(), broken])
    with pytest.raises(Fault) as fault:
        world.chosen(a_claiming_pod("claim"))
    assert str(fault.value).startswith(message)


@pytest.mark.parametrize("mode", ["", "Most"])
@pytest.mark.parametrize("form", ["exactly", "firstAvailable"])
def test_an_unknown_allocation_mode_fails_the_attempt(mode, form):
    """The API server fills in the mode. Without one, the number of devices is unknown."""
    requested = wants("r", 0)
    assert requested.exactly is not None
    force_setattr(requested.exactly, "allocation_mode", mode)
    claim = a_claim("claim", requested if form == "exactly" else first_of("first", requested))
    with pytest.raises(Fault) as fault:
        World(slices=[FOUR], claims=[claim]).chosen(a_claiming_pod("claim"))
    assert str(fault.value) == f"claim default/claim, request r: unsupported count mode {mode}"


def test_a_selector_is_not_evaluated_for_a_device_in_use():
    odd = a_slice(a_device("gpu-0"), a_device("gpu-1", model="a"))
    held = a_claim("other", allocation=allocated("gpu-0"))
    world = World(slices=[odd], claims=[held, a_claim("claim", wants("r", 1, EVEN))])
    assert world.chosen(a_claiming_pod("claim")) == {"r": ["gpu-1"]}


@pytest.mark.parametrize("value", [{}, {"strings": ["a"]}, {"ints": []}])
def test_an_attribute_that_is_empty_or_a_list_fails_every_selector(value):
    odd = a_device("gpu-0", model="a")
    force_setattr(odd, "attributes", {**odd.attributes, "names": msgspec.convert(value, DeviceAttribute)})
    claim = a_claim("claim", wants("r", 1, "true"))
    with pytest.raises(Fault) as fault:
        World(slices=[a_slice(odd)], claims=[claim]).chosen(a_claiming_pod("claim"))
    assert str(fault.value) == (
        "claim default/claim: selector #0: CEL runtime error: attribute names: unsupported attribute value"
    )


def test_a_limit_of_less_than_a_microsecond_is_over_at_once():
    world = World(slices=[FOUR], claims=[a_claim("claim", wants())], filter_timeout=timedelta(microseconds=1))
    with pytest.raises(Fault, match="node node: timed out trying to allocate devices"):
        world.chosen(a_claiming_pod("claim"))


def test_a_search_without_end_is_ended():
    many = a_slice(*(a_device(f"gpu-{at:02d}", model="a") for at in range(30)))
    claim = a_claim("claim", wants("a", 15), wants("b", 16))
    world = World(slices=[many], claims=[claim])
    world.services.clock.monotonic = iter(range(0, 10**9, 6)).__next__  # type: ignore[method-assign]
    with pytest.raises(Fault, match="node node: timed out trying to allocate devices"):
        world.chosen(a_claiming_pod("claim"))
