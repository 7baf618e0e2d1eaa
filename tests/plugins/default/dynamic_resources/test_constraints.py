"""What the devices of a claim must have in common, or must not."""

from __future__ import annotations

import pytest
from tests.plugins.default.dynamic_resources.builders import (
    World,
    a_claim,
    a_claiming_pod,
    a_device,
    a_slice,
    distinct,
    first_of,
    same,
    wants,
)

from mooring.base.errors import Fault
from mooring.objects.resource import DeviceConstraint, DeviceRequest
from mooring.plugins.default.dynamic_resources.plugin import CANNOT_ALLOCATE

NUMA = "gpu.example.com/numa"
DEVICES = a_slice(
    a_device("a0", numa=0), a_device("b1", numa=1), a_device("c0", numa=0), a_device("d1", numa=1), a_device("none")
)
PAIR = [wants("a"), wants("b")]

CASES: dict[str, tuple[list[DeviceRequest], list[DeviceConstraint], dict[str, list[str]] | str]] = {
    "one value for all devices": ([wants("r", 2)], [same(NUMA)], {"r": ["a0", "c0"]}),
    "over several requests": (PAIR, [same(NUMA)], {"a": ["a0"], "b": ["c0"]}),
    "only for the requests that it names": (PAIR, [same(NUMA, "a")], {"a": ["a0"], "b": ["b1"]}),
    "a device without the attribute is out": ([wants("r", 3)], [same(NUMA)], CANNOT_ALLOCATE),
    "an attribute that no device has": ([wants()], [same("gpu.example.com/missing")], CANNOT_ALLOCATE),
    "a domain that is not the driver's": ([wants()], [same("example.org/numa")], CANNOT_ALLOCATE),
    "a subrequest is meant by its request": (
        [first_of("r", wants("two", 2)), wants("s")],
        [same(NUMA, "r")],
        {"r/two": ["a0", "c0"], "s": ["b1"]},
    ),
    "and by its own name": (
        [first_of("r", wants("two", 2)), wants("s")],
        [same(NUMA, "r/two")],
        {"r/two": ["a0", "c0"], "s": ["b1"]},
    ),
    "but not by another's": (
        [first_of("r", wants("two", 2))],
        [same(NUMA, "r/one")],
        {"r/two": ["a0", "b1"]},
    ),
    "different values": (PAIR, [distinct(NUMA)], {"a": ["a0"], "b": ["b1"]}),
    "more requests than values": ([*PAIR, wants("c")], [distinct(NUMA)], CANNOT_ALLOCATE),
    "of one request only the last device is remembered, as upstream": (
        [wants("r", 3)],
        [distinct(NUMA)],
        {"r": ["a0", "b1", "c0"]},
    ),
    "both at once": (
        [wants("a"), wants("b")],
        [same(NUMA), distinct("gpu.example.com/numa")],
        CANNOT_ALLOCATE,
    ),
}


@pytest.mark.parametrize(("requests", "constraints", "chosen"), CASES.values(), ids=CASES.keys())
def test_constraints(requests, constraints, chosen):
    world = World(slices=[DEVICES], claims=[a_claim("claim", *requests, constraints=constraints)])
    assert world.chosen(a_claiming_pod("claim")) == chosen


def test_values_of_different_types_differ():
    mixed = a_slice(a_device("int", numa=1), a_device("bool", numa=True), a_device("text", numa="1"))
    world = World(slices=[mixed], claims=[a_claim("claim", wants("r", 2), constraints=[same(NUMA)])])
    assert world.chosen(a_claiming_pod("claim")) == CANNOT_ALLOCATE


def test_all_devices_that_may_not_be_together_are_a_fault():
    world = World(slices=[DEVICES], claims=[a_claim("claim", wants(all=True), constraints=[same(NUMA)])])
    with pytest.raises(Fault) as fault:
        world.chosen(a_claiming_pod("claim"))
    assert str(fault.value) == (
        "claim default/claim, request r: cannot add device gpu.example.com/node/b1"
        " because a claim constraint would not be satisfied"
    )


EMPTY = {
    "a constraint of an unknown kind": (DeviceConstraint(), {}),
    "distinct attributes where the newest features are off": (
        distinct(NUMA),
        {"DRAConsumableCapacity": False, "DRADeviceBindingConditions": False},
    ),
}


@pytest.mark.parametrize(("constraint", "gates"), EMPTY.values(), ids=EMPTY.keys())
def test_an_empty_constraint_is_a_fault(constraint, gates):
    world = World(slices=[DEVICES], claims=[a_claim("claim", wants(), constraints=[constraint])], gates=gates)
    with pytest.raises(Fault, match="claim default/claim, constraint #0: empty constraint"):
        world.chosen(a_claiming_pod("claim"))
