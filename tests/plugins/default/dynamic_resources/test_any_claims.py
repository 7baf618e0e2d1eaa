"""Whatever claims and devices there are: what is found keeps every rule, and both forms of the filter agree."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from msgspec.structs import force_setattr
from tests.plugins.default.dynamic_resources.builders import (
    World,
    a_claim,
    a_claiming_pod,
    a_device,
    a_slice,
    allocated,
    first_of,
    labelled,
    same,
    wants,
)

from mooring.base.errors import Fault
from mooring.framework import Pod
from mooring.objects.resource import DeviceRequest, ResourceClaim
from mooring.plugins.default.dynamic_resources.pod_claims import PodClaims
from mooring.testing import a_cycle, a_node, refused_at_once, refused_one_by_one

few = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

NODES = ["node-1", "node-2", "node-3"]
ZONES = ["a", "b"]
MODEL = 'device.attributes["gpu.example.com"].model == "a"'


@st.composite
def requests(draw: DrawFn, name: str) -> DeviceRequest:
    def one(of: str) -> DeviceRequest:
        selectors = draw(st.sampled_from([[], [MODEL]]))
        return wants(of, draw(st.integers(1, 3)), *selectors, all=draw(st.sampled_from([False] * 5 + [True])))

    if draw(st.booleans()):
        return first_of(name, *(one(f"s{at}") for at in range(draw(st.integers(1, 3)))))
    return one(name)


@st.composite
def worlds(draw: DrawFn) -> tuple[World, Pod]:
    """Up to three nodes with up to four devices each, some of them in use; a pod with up to two claims."""
    nodes = [a_node(name, labels={"zone": draw(st.sampled_from(ZONES))}) for name in NODES[: draw(st.integers(1, 3))]]
    slices, claims = [], []
    for node in nodes:
        offered = [
            a_device(
                f"gpu-{at}", model=draw(st.sampled_from("ab")), taint=draw(st.sampled_from(["", "", "x:NoSchedule"]))
            )
            for at in range(draw(st.integers(0, 4)))
        ]
        slices.append(a_slice(*offered, node=node.name))
        claims += [
            a_claim(f"{node.name}-{device.name}", allocation=allocated(device.name, pool=node.name, on=node.name))
            for device in offered
            if draw(st.sampled_from([False, False, True]))
        ]
    own: list[ResourceClaim] = []
    for name in ["first", "second"][: draw(st.integers(1, 2))]:
        if draw(st.sampled_from([False, False, True])):
            allocation = allocated("elsewhere", pool="elsewhere", on=None)
            force_setattr(
                allocation, "node_selector", draw(st.sampled_from([None, labelled("zone", "a"), labelled("zone", "c")]))
            )
            own.append(a_claim(name, wants("r"), allocation=allocation))
        else:
            requested = [draw(requests(f"r{at}")) for at in range(draw(st.integers(1, 2)))]
            rules = draw(st.sampled_from([[], [same("gpu.example.com/model")]]))
            own.append(a_claim(name, *requested, constraints=rules))
    world = World(*nodes, slices=slices, claims=[*claims, *own])
    return world, a_claiming_pod(*(claim.name for claim in own))


@few
@given(worlds())
def test_both_forms_of_the_filter_agree(given_world):
    world, pod = given_world
    try:
        expected = refused_one_by_one(world.plugin, pod, world.cluster)
    except Fault:
        return
    assert refused_at_once(world.plugin, pod, world.cluster) == expected


@few
@given(worlds())
def test_what_is_found_keeps_every_rule(given_world):
    world, pod = given_world
    in_use = {
        (result.pool, result.device)
        for claim in world.services.objects(ResourceClaim).all()
        if claim.status.allocation
        for result in claim.status.allocation.devices.results
    }
    for node in world.cluster.nodes:
        cycle = a_cycle(pod, world.cluster)
        try:
            if world.plugin.filter(pod, node, cycle) is not None:
                continue
        except Fault:
            continue
        state: PodClaims = cycle.filter_state(world.plugin)
        here = state.found.get(node.name)
        found = [] if here is None else here.found
        taken = [device.offered.id for claim in found for device in claim.devices]
        assert max(Counter(taken).values(), default=1) == 1
        assert not in_use & {(device.pool, device.device) for device in taken}
        for wanted_claim, claim in zip(here.claims if here is not None else (), found, strict=True):
            per_request = Counter(device.wanted for device in claim.devices)
            for wanted in claim.chosen:
                assert per_request[wanted] == wanted.count or (wanted.takes_all and per_request[wanted] > 0)
            assert all(device.offered.id.pool == node.name for device in claim.devices)
            assert not any(device.offered.device.taints for device in claim.devices)
            models = {device.offered.device.attributes["model"].string_value for device in claim.devices}
            assert len(models) == 1 or not wanted_claim.claim.spec.devices.constraints
            for device in claim.devices:
                chosen_by_model = any(expression == MODEL for expression, _ in device.wanted.selectors)
                assert not chosen_by_model or device.offered.device.attributes["model"].string_value == "a"
