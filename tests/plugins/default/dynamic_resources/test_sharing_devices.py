"""Devices that share counters, devices that several claims share, and devices with taints."""

from __future__ import annotations

import pytest
from msgspec.structs import force_setattr
from tests.plugins.default.dynamic_resources.builders import (
    World,
    a_claim,
    a_claiming_pod,
    a_device,
    a_slice,
    allocated,
    first_of,
    wants,
)

from mooring.base.errors import Fault
from mooring.objects.resource import (
    CapacityPolicy,
    CapacityRange,
    DeviceCapacity,
    DeviceRequest,
    DeviceTaint,
    DeviceToleration,
    ResourceClaim,
    ResourceSlice,
)
from mooring.plugins.default.dynamic_resources.consumable_capacity import consumed_amount, has_capacity
from mooring.plugins.default.dynamic_resources.device_requests import tolerates
from mooring.plugins.default.dynamic_resources.plugin import CANNOT_ALLOCATE

# Counters


def a_partitioned_gpu(memory: int = 8) -> list[ResourceSlice]:
    """A whole card, two halves and two quarters of it, of which eight parts of memory are there."""
    return [
        a_slice(name="counters", counters={"memory": memory}, of=2),
        a_slice(
            a_device("whole", consumes={"memory": 8}),
            a_device("half-0", consumes={"memory": 4}),
            a_device("half-1", consumes={"memory": 4}),
            a_device("quarter-0", consumes={"memory": 2}),
            a_device("quarter-1", consumes={"memory": 2}),
            name="devices",
            of=2,
        ),
    ]


COUNTED: dict[str, tuple[int, list[DeviceRequest], dict[str, list[str]] | str]] = {
    "the whole card, if all of it is there": (8, [wants()], {"r": ["whole"]}),
    "a part, if not all of it is there": (7, [wants()], {"r": ["half-0"]}),
    "parts that fit together": (8, [wants("r", 2)], {"r": ["half-0", "half-1"]}),
    "three parts: a half and the quarters": (8, [wants("r", 3)], {"r": ["half-0", "quarter-0", "quarter-1"]}),
    "four parts are too many": (8, [wants("r", 4)], CANNOT_ALLOCATE),
    "counters are given back on the way": (
        8,
        [first_of("r", wants("two", 2), wants("one", 1)), wants("s", 2)],
        {"r/one": ["half-0"], "s": ["quarter-0", "quarter-1"]},
    ),
}


@pytest.mark.parametrize(("memory", "requests", "chosen"), COUNTED.values(), ids=COUNTED.keys())
def test_devices_that_share_counters(memory, requests, chosen):
    world = World(slices=a_partitioned_gpu(memory), claims=[a_claim("claim", *requests)])
    assert world.chosen(a_claiming_pod("claim")) == chosen


def test_allocated_devices_have_consumed_their_counters():
    held = a_claim("other", allocation=allocated("half-1"))
    world = World(slices=a_partitioned_gpu(), claims=[held, a_claim("claim", wants())])
    assert world.chosen(a_claiming_pod("claim")) == {"r": ["half-0"]}


def test_devices_on_other_nodes_consume_the_counters_of_their_pool():
    slices = [
        a_slice(name="0", pool="p", counters={"links": 1}, of=3, everywhere=True),
        a_slice(a_device("here", consumes={"links": 1}), name="1", pool="p", of=3),
        a_slice(a_device("there", consumes={"links": 1}), name="2", pool="p", node="other", of=3),
    ]
    claim, held = a_claim("claim", wants()), a_claim("other", allocation=allocated("there", pool="p"))
    assert World(slices=slices, claims=[claim]).chosen(a_claiming_pod("claim")) == {"r": ["here"]}
    assert World(slices=slices, claims=[claim, held]).chosen(a_claiming_pod("claim")) == CANNOT_ALLOCATE


def test_without_the_gate_devices_that_consume_counters_are_left_alone():
    slices = [a_slice(a_device("part", consumes={"memory": 1}), a_device("plain"))]
    world = World(slices=slices, claims=[a_claim("claim", wants())], gates={"DRAPartitionableDevices": False})
    assert world.chosen(a_claiming_pod("claim")) == {"r": ["plain"]}


# Capacity

STEPS = CapacityPolicy(default="2Gi", valid_range=CapacityRange(min="1Gi", max="4Gi", step="1Gi"))
VALUES = CapacityPolicy(default="2Gi", valid_values=("1Gi", "2Gi", "4Gi"))
GIB = 2**30

CONSUMED: dict[str, tuple[str | None, CapacityPolicy | None, str]] = {
    "no amount requested, no policy: all of it": (None, None, "8Gi"),
    "no amount requested: the default": (None, STEPS, "2Gi"),
    "no policy: what is requested": ("3Gi", None, "3Gi"),
    "less than the least: the least": ("1Mi", STEPS, "1Gi"),
    "between two steps: the next": ("2500Mi", STEPS, str(3 * GIB)),
    "on a step: that": ("3Gi", STEPS, str(3 * GIB)),
    "between two values: the next": ("3Gi", VALUES, "4Gi"),
    "beyond every value: what is requested": ("5Gi", VALUES, "5Gi"),
    "a range without steps: what is requested": (
        "1500Mi",
        CapacityPolicy(default="1Gi", valid_range=CapacityRange(min="1Gi")),
        "1500Mi",
    ),
}


@pytest.mark.parametrize(("requested", "policy", "consumed"), CONSUMED.values(), ids=CONSUMED.keys())
def test_how_much_a_request_consumes(requested, policy, consumed):
    assert consumed_amount(requested, DeviceCapacity(value="8Gi", request_policy=policy)) == consumed


ROOM: dict[str, tuple[dict[str, str], CapacityPolicy | None, int, bool]] = {
    "all of an unused device": ({}, None, 0, True),
    "all of a used one": ({}, None, 1, False),
    "what is left": ({"memory": "4Gi"}, None, 4 * GIB, True),
    "a byte more": ({"memory": "4294967297"}, None, 4 * GIB, False),
    "a capacity that the device does not have": ({"cores": "1"}, None, 0, False),
    "more than the policy allows at once": ({"memory": "5Gi"}, STEPS, 0, False),
    "a value that the policy does not list": ({"memory": "5Gi"}, VALUES, 0, False),
    "the default": ({}, VALUES, 6 * GIB, True),
}


@pytest.mark.parametrize(("requested", "policy", "used", "fits"), ROOM.values(), ids=ROOM.keys())
def test_what_fits_into_a_shared_device(requested, policy, used, fits):
    capacities = {"memory": DeviceCapacity(value="8Gi", request_policy=policy)}
    consumed = {"memory": used * 10**9} if used else {}
    assert has_capacity(requested, capacities, consumed, {}) is fits
    assert has_capacity(requested, capacities, {}, consumed) is fits


A_SHARED_DEVICE = a_slice(
    a_device("shared", shareable=True, capacity={"memory": DeviceCapacity(value="8Gi", request_policy=STEPS)})
)
SHARES: dict[str, tuple[list[ResourceClaim], list[DeviceRequest], dict[str, list[str]] | str]] = {
    "several requests share a device": (
        [],
        [wants("a", capacity={"memory": "4Gi"}), wants("b", capacity={"memory": "4Gi"})],
        {"a": ["shared"], "b": ["shared"]},
    ),
    "until it is full": (
        [],
        [wants(name, capacity={"memory": "3Gi"}) for name in "abc"],
        CANNOT_ALLOCATE,
    ),
    "one request has a device only once": ([], [wants("r", 2, capacity={"memory": "1Gi"})], CANNOT_ALLOCATE),
    "other claims' shares count": (
        [a_claim("other", allocation=allocated("shared", share="s", consumed={"memory": "6Gi"}))],
        [wants(capacity={"memory": "3Gi"})],
        CANNOT_ALLOCATE,
    ),
    "and leave the rest": (
        [a_claim("other", allocation=allocated("shared", share="s", consumed={"memory": "6Gi"}))],
        [wants(capacity={"memory": "2Gi"})],
        {"r": ["shared"]},
    ),
    "who has it alone has all of it": (
        [a_claim("other", allocation=allocated("shared"))],
        [wants(capacity={"memory": "1Gi"})],
        CANNOT_ALLOCATE,
    ),
}


@pytest.mark.parametrize(("others", "requests", "chosen"), SHARES.values(), ids=SHARES.keys())
def test_claims_that_share_a_device(others, requests, chosen):
    world = World(slices=[A_SHARED_DEVICE], claims=[*others, a_claim("claim", *requests)])
    assert world.chosen(a_claiming_pod("claim")) == chosen


def test_a_claim_may_have_several_shares_of_a_device_and_give_them_back():
    twice = allocated("shared", share="s", consumed={"memory": "4Gi"})
    second = allocated("shared", request="q", share="t", consumed={"memory": "4Gi"})
    force_setattr(twice.devices, "results", (*twice.devices.results, *second.devices.results))
    claim = a_claim("claim", wants(capacity={"memory": "1Gi"}))
    world = World(slices=[A_SHARED_DEVICE], claims=[a_claim("other", allocation=twice), claim])
    assert world.chosen(a_claiming_pod("claim")) == CANNOT_ALLOCATE
    world.services.objects(ResourceClaim).put(a_claim("other"))
    assert world.chosen(a_claiming_pod("claim")) == {"r": ["shared"]}


def test_a_shared_device_consumes_its_counters_once():
    slices = [
        a_slice(name="0", counters={"memory": 4}, of=2),
        a_slice(a_device("shared", shareable=True, capacity={"lanes": 2}, consumes={"memory": 4}), name="1", of=2),
    ]
    claim = a_claim("claim", wants("a", capacity={"lanes": "1"}), wants("b", capacity={"lanes": "1"}))
    assert World(slices=slices, claims=[claim]).chosen(a_claiming_pod("claim")) == {"a": ["shared"], "b": ["shared"]}


WITHOUT = {"DRAConsumableCapacity": False}


def test_without_the_gate_a_share_is_the_whole_device():
    share = a_claim("other", allocation=allocated("shared", share="s", consumed={"memory": "1Gi"}))
    world = World(slices=[A_SHARED_DEVICE], claims=[share, a_claim("claim", wants())], gates=WITHOUT)
    assert world.chosen(a_claiming_pod("claim")) == CANNOT_ALLOCATE


def test_without_the_gate_a_request_for_capacity_is_a_fault():
    claim = a_claim("claim", wants(capacity={"memory": "1Gi"}))
    world = World(slices=[A_SHARED_DEVICE], claims=[claim], gates=WITHOUT)
    with pytest.raises(Fault, match="has capacity requests, but the DRAConsumableCapacity feature is disabled"):
        world.chosen(a_claiming_pod("claim"))


# Taints

TAINT = DeviceTaint(key="broken", value="fan", effect="NoSchedule")
TOLERATIONS = {
    "the same in all": (DeviceToleration(key="broken", operator="Equal", value="fan", effect="NoSchedule"), True),
    "no operator means equal": (DeviceToleration(key="broken", value="fan"), True),
    "another value": (DeviceToleration(key="broken", value="disk"), False),
    "any value": (DeviceToleration(key="broken", operator="Exists"), True),
    "any key": (DeviceToleration(operator="Exists"), True),
    "another key": (DeviceToleration(key="old", operator="Exists"), False),
    "another effect": (DeviceToleration(operator="Exists", effect="NoExecute"), False),
    "an unknown operator": (DeviceToleration(key="broken", operator="Gt", value="fan"), False),
}


@pytest.mark.parametrize(("toleration", "does"), TOLERATIONS.values(), ids=TOLERATIONS.keys())
def test_tolerations(toleration, does):
    assert tolerates(toleration, TAINT) is does


TAINTED: dict[str, tuple[str, list[DeviceToleration], dict[str, bool], dict[str, list[str]]]] = {
    "a tainted device is passed over": ("broken=fan:NoSchedule", [], {}, {"r": ["good"]}),
    "also if it only stops execution": ("broken=fan:NoExecute", [], {}, {"r": ["good"]}),
    "not if the taint has no effect": ("broken=fan:None", [], {}, {"r": ["bad"]}),
    "not if it is tolerated": ("broken=fan:NoSchedule", [DeviceToleration(operator="Exists")], {}, {"r": ["bad"]}),
    "not without the gate": ("broken=fan:NoSchedule", [], {"DRADeviceTaints": False}, {"r": ["bad"]}),
}


@pytest.mark.parametrize(("taint", "tolerating", "gates", "chosen"), TAINTED.values(), ids=TAINTED.keys())
def test_tainted_devices(taint, tolerating, gates, chosen):
    world = World(
        slices=[a_slice(a_device("bad", taint=taint), a_device("good"))],
        claims=[a_claim("claim", wants(tolerating=tolerating))],
        gates=gates,
    )
    assert world.chosen(a_claiming_pod("claim")) == chosen
