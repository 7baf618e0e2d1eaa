"""Searches and counts that are kept equal new ones, whatever changed in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.plugins.default.dynamic_resources.builders import (
    World,
    a_claim,
    a_claiming_pod,
    a_class,
    a_device,
    a_slice,
    allocated,
    wants,
)

from mooring.base.errors import Fault
from mooring.framework import FeatureGates, Pod
from mooring.objects.resource import DeviceClass, ResourceClaim, ResourceSlice
from mooring.plugins.default.dynamic_resources import DynamicResources
from mooring.plugins.default.dynamic_resources.extended_resources import ExtendedResourceUsage
from mooring.plugins.default.dynamic_resources.features import Features
from mooring.plugins.default.dynamic_resources.pod_claims import PodClaims
from mooring.plugins.default.dynamic_resources.search_cache import MOST_TEMPLATES
from mooring.testing import Services, a_cycle, a_node, a_plugin

few = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
NODES = ["node-1", "node-2"]
GPU = "example.com/gpu"
MODEL = 'device.attributes["gpu.example.com"].model == "a"'
OWN = a_claim("own", wants("r", 2))

Change = Callable[[Services], None]


def holds(name: str, device: str, pool: str) -> Change:
    claim = a_claim(name, allocation=allocated(device, pool=pool, on=pool))
    return lambda services: services.objects(ResourceClaim).put(claim) and None


def releases(name: str) -> Change:
    return lambda services: services.objects(ResourceClaim).discard(f"default/{name}") and None


def is_in_flight(device: str, pool: str) -> Change:
    claim = a_claim("flying", allocation=allocated(device, pool=pool, on=pool))
    return lambda services: services.claims_in_flight.begin(claim)


def lands(services: Services) -> None:
    services.claims_in_flight.end(a_claim("flying").uid)


def offers(pool: str, count: int) -> Change:
    offered = a_slice(*(a_device(f"gpu-{at}", model="ab"[at % 2]) for at in range(count)), node=pool)
    return lambda services: services.objects(ResourceSlice).put(offered) and None


def selects(*selectors: str) -> Change:
    return lambda services: services.objects(DeviceClass).put(a_class("gpu", *selectors, provides=GPU)) and None


devices, pools = st.sampled_from(["gpu-0", "gpu-1", "gpu-2"]), st.sampled_from(NODES)
changes = st.one_of(
    st.builds(holds, st.sampled_from(["x", "y"]), devices, pools),
    st.builds(releases, st.sampled_from(["x", "y"])),
    st.builds(is_in_flight, devices, pools),
    st.just(lands),
    st.builds(offers, pools, st.integers(0, 4)),
    st.builds(selects, st.sampled_from([MODEL])),
    st.builds(selects),
)


def found(plugin: DynamicResources, world: World, pod: Pod) -> dict[str, Any]:
    """Node → the allocations that the pod would get there, or why it cannot be there."""
    verdicts: dict[str, Any] = {}
    cycle = a_cycle(pod, world.cluster)
    cycle.set_filter_state(plugin, plugin.pre_filter(pod, cycle))
    for node in world.cluster.nodes:
        try:
            rejection = plugin.filter(pod, node, cycle)
        except Fault as error:
            verdicts[node.name] = str(error)
            continue
        state: PodClaims = cycle.filter_state(plugin)
        verdicts[node.name] = rejection or state.found[node.name].allocations(node.name, Features())
    return verdicts


@few
@given(st.lists(changes, min_size=1, max_size=8))
def test_a_search_that_is_kept_finds_what_a_new_one_finds(history: list[Change]):
    slices = [a_slice(*(a_device(f"gpu-{at}", model="a") for at in range(3)), node=name) for name in NODES]
    world, pod = World(*map(a_node, NODES), slices=slices, claims=[OWN]), a_claiming_pod("own")
    found(world.plugin, world, pod)
    for change in history:
        change(world.services)
        fresh = a_plugin(DynamicResources, world.services)
        assert found(world.plugin, world, pod) == found(fresh, world, pod)


@few
@given(st.lists(changes, min_size=1, max_size=8))
def test_counts_that_are_kept_equal_new_ones(history: list[Change]):
    world = World(*map(a_node, NODES), classes=[a_class("gpu", provides=GPU)])
    services, nodes = world.services, world.cluster.nodes

    def usage() -> ExtendedResourceUsage:
        return ExtendedResourceUsage(
            services.objects(DeviceClass),
            services.objects(ResourceClaim),
            services.objects(ResourceSlice),
            services.claims_in_flight,
            FeatureGates(),
        )

    kept = usage()
    for change in history:
        change(services)
        assert [kept.at(node, GPU) for node in nodes] == [usage().at(node, GPU) for node in nodes]


def test_an_equal_claim_of_another_pod_gets_allocations_of_its_own():
    shared = a_device("gpu-0", shareable=True)
    world = World(
        slices=[a_slice(shared, node="node")], claims=[a_claim("one", wants("r")), a_claim("two", wants("r"))]
    )
    first = found_shares(world, "one")
    assert first != found_shares(world, "two")
    assert first == found_shares(world, "one")


def found_shares(world: World, claim: str) -> list[str | None]:
    pod, node = a_claiming_pod(claim), world.cluster.node("node")
    cycle = a_cycle(pod, world.cluster)
    assert world.plugin.filter(pod, node, cycle) is None
    state: PodClaims = cycle.filter_state(world.plugin)
    (allocation,) = state.found["node"].allocations("node", Features())
    return [result.share_id for result in allocation.devices.results]


def test_only_so_many_different_requests_are_kept():
    many = [a_claim(f"c{number}", wants(f"r{number}")) for number in range(MOST_TEMPLATES + 3)]
    world = World(slices=[a_slice(a_device(), node="node")], claims=many)
    for claim in many:
        assert world.filter(a_claiming_pod(claim.name)) is None
    assert len(world.plugin._search_cache._kept) == MOST_TEMPLATES
