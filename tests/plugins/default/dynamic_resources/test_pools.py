"""Which pools a node can use: complete ones, of the newest generation, in the order of their names."""

from __future__ import annotations

import pytest
from tests.plugins.default.dynamic_resources.builders import (
    World,
    a_claim,
    a_claiming_pod,
    a_device,
    a_slice,
    devices,
    labelled,
    wants,
)

from mooring.base.errors import Fault
from mooring.objects.resource import ResourceSlice
from mooring.plugins.default.dynamic_resources.plugin import CANNOT_ALLOCATE
from mooring.testing import a_node

INVALID = "invalid resource pools were encountered"
ONE, TWO = devices("one", "two")

SLICES: dict[str, tuple[list[ResourceSlice], dict[str, list[str]] | str]] = {
    "slices come by name": (
        [a_slice(TWO, name="a", of=2), a_slice(ONE, name="b", of=2)],
        {"r": ["two"]},
    ),
    "pools come by driver, then by name": (
        [
            a_slice(a_device("z"), pool="a", driver="z.example.com"),
            a_slice(a_device("b"), pool="b"),
            a_slice(a_device("a"), pool="a"),
        ],
        {"r": ["a"]},
    ),
    "pools with binding conditions come last": (
        [a_slice(a_device("bound", conditions=["Ready"]), pool="a"), a_slice(a_device("free"), pool="b")],
        {"r": ["free"]},
    ),
    "nothing is taken from a pool with a missing slice": ([a_slice(ONE, of=2)], CANNOT_ALLOCATE),
    "a pool that is complete on another node is complete": (
        [a_slice(ONE, name="here", pool="p", of=2), a_slice(TWO, name="there", pool="p", node="other", of=2)],
        {"r": ["one"]},
    ),
    "an older generation is forgotten": (
        [a_slice(ONE, name="old", generation=1), a_slice(TWO, name="new", generation=2)],
        {"r": ["two"]},
    ),
    "an old generation is not used while a newer one comes elsewhere": (
        [
            a_slice(ONE, name="old", pool="p", generation=1, of=2),
            a_slice(TWO, name="new", pool="p", node="other", generation=2, of=2),
        ],
        CANNOT_ALLOCATE,
    ),
    "two devices of one name make a pool invalid": (
        [a_slice(ONE, name="a", of=2), a_slice(ONE, name="b", of=2)],
        INVALID,
    ),
    "an invalid pool does not matter while another has devices": (
        [a_slice(ONE, ONE, pool="bad"), a_slice(TWO, pool="good")],
        {"r": ["two"]},
    ),
    "counters that are nowhere make a pool invalid": ([a_slice(a_device("one", consumes={"memory": 1}))], INVALID),
    "a device of another node is of no use": ([a_slice(ONE, node="other")], CANNOT_ALLOCATE),
    "a slice for all nodes is for this one": ([a_slice(ONE, everywhere=True)], {"r": ["one"]}),
    "a slice for labelled nodes": ([a_slice(ONE, selector=labelled("zone", "a"))], {"r": ["one"]}),
    "a slice for nodes with another label": ([a_slice(ONE, selector=labelled("zone", "b"))], CANNOT_ALLOCATE),
    "devices that name their nodes themselves": (
        [a_slice(a_device("one", node="other"), a_device("two", node="node"), per_device=True)],
        {"r": ["two"]},
    ),
    "a slice that names no node at all is left alone": ([a_slice(ONE, node=None, pool="p")], CANNOT_ALLOCATE),
}


@pytest.mark.parametrize(("slices", "chosen"), SLICES.values(), ids=SLICES.keys())
def test_what_a_node_can_use(slices, chosen):
    world = World(a_node("node", labels={"zone": "a"}), slices=slices, claims=[a_claim("claim", wants(of="gpu"))])
    assert world.chosen(a_claiming_pod("claim")) == chosen


ALL = {
    "incomplete": ([a_slice(ONE, of=2)], "is currently being updated"),
    "invalid": ([a_slice(ONE, ONE)], "is currently invalid"),
}


@pytest.mark.parametrize(("slices", "why"), ALL.values(), ids=ALL.keys())
def test_all_devices_of_a_pool_that_is_not_whole_are_a_fault(slices, why):
    world = World(slices=slices, claims=[a_claim("claim", wants(all=True))])
    with pytest.raises(Fault, match=f"asks for all devices, but resource pool gpu.example.com/node {why}"):
        world.chosen(a_claiming_pod("claim"))


def test_a_new_slice_is_seen():
    world = World(claims=[a_claim("claim", wants())])
    assert world.chosen(a_claiming_pod("claim")) == CANNOT_ALLOCATE
    world.services.objects(ResourceSlice).put(a_slice(ONE))
    assert world.chosen(a_claiming_pod("claim")) == {"r": ["one"]}


def test_a_new_label_of_the_node_is_seen():
    world = World(
        a_node("node"), slices=[a_slice(ONE, selector=labelled("zone", "a"))], claims=[a_claim("claim", wants())]
    )
    assert world.chosen(a_claiming_pod("claim")) == CANNOT_ALLOCATE
    world.cluster.state.set_node(a_node("node", labels={"zone": "a"}).object)  # type: ignore[attr-defined]
    assert world.chosen(a_claiming_pod("claim")) == {"r": ["one"]}
