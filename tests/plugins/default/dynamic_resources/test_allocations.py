"""What a claim's status will hold: devices, configuration for drivers, and the nodes that can use them."""

from __future__ import annotations

import pytest
from msgspec.structs import force_setattr
from tests.plugins.default.dynamic_resources.builders import (
    World,
    a_claim,
    a_claiming_pod,
    a_class,
    a_device,
    a_slice,
    first_of,
    labelled,
    named,
    wants,
)

from mooring.base.errors import Fault
from mooring.objects.core import NodeSelector, NodeSelectorTerm
from mooring.objects.resource import (
    Allocation,
    DeviceCapacity,
    DeviceClaimConfiguration,
    DeviceClassConfiguration,
    DeviceToleration,
    ResourceClaim,
    ResourceSlice,
)
from mooring.plugins.default.dynamic_resources.features import Features
from mooring.plugins.default.dynamic_resources.pod_claims import PodClaims
from mooring.testing import a_cycle, a_node


def allocation(world: World) -> Allocation:
    """What the claim "claim" gets on the node "node"."""
    pod = a_claiming_pod("claim")
    cycle = a_cycle(pod, world.cluster)
    assert world.plugin.filter(pod, world.cluster.node("node"), cycle) is None
    state: PodClaims = cycle.filter_state(world.plugin)
    return state.found["node"].allocations("node", Features())[0]


SELECTORS: dict[str, tuple[ResourceSlice, NodeSelector | None]] = {
    "a device of the node": (a_slice(a_device()), named("node")),
    "a device of all nodes": (a_slice(a_device(), everywhere=True), None),
    "a device of all nodes that binds to one": (a_slice(a_device(binds_to_node=True), everywhere=True), named("node")),
    "a device of some nodes": (a_slice(a_device(), selector=labelled("zone", "a")), labelled("zone", "a")),
    "a device that names its node itself": (a_slice(a_device(node="node"), per_device=True), named("node")),
    "a device that is everywhere by itself": (a_slice(a_device(everywhere=True), per_device=True), None),
    "a device that selects its nodes itself": (
        a_slice(a_device(selector=labelled("zone", "a")), per_device=True),
        labelled("zone", "a"),
    ),
}


@pytest.mark.parametrize(("offered", "selector"), SELECTORS.values(), ids=SELECTORS.keys())
def test_which_nodes_can_use_an_allocation(offered, selector):
    world = World(a_node("node", labels={"zone": "a"}), slices=[offered], claims=[a_claim("claim", wants())])
    assert allocation(world).node_selector == selector


def test_selectors_of_several_devices_are_joined_without_repetition():
    slices = [
        a_slice(a_device("a"), pool="a", selector=labelled("zone", "a")),
        a_slice(a_device("b"), pool="b", selector=labelled("zone", "a")),
        a_slice(a_device("c"), pool="c", selector=labelled("rack", "1")),
    ]
    node = a_node("node", labels={"zone": "a", "rack": "1"})
    selector = allocation(World(node, slices=slices, claims=[a_claim("claim", wants("r", 3))])).node_selector
    assert selector is not None
    (term,) = selector.node_selector_terms
    assert [part.key for part in term.match_expressions] == ["zone", "rack"]


def test_a_selector_with_several_terms_is_a_fault():
    two = NodeSelector(node_selector_terms=(*labelled("zone", "a").node_selector_terms, NodeSelectorTerm()))
    world = World(
        a_node("node", labels={"zone": "a"}),
        slices=[a_slice(a_device(), selector=two)],
        claims=[a_claim("claim", wants())],
    )
    with pytest.raises(Fault, match=r"unsupported ResourceSlice.NodeSelector with 2 terms"):
        world.chosen(a_claiming_pod("claim"))


def test_a_result_repeats_what_kubelet_and_driver_must_know():
    toleration = DeviceToleration(key="broken", operator="Exists")
    device = a_device(conditions=["Ready"], failures=["Failed"])
    claim = a_claim("claim", wants(admin=True, tolerating=[toleration]))
    (result,) = allocation(World(slices=[a_slice(device)], claims=[claim])).devices.results
    assert (result.request, result.driver, result.pool, result.device) == ("r", "gpu.example.com", "node", "gpu-0")
    assert (result.admin_access, result.tolerations) == (True, (toleration,))
    assert (result.binding_conditions, result.binding_failure_conditions) == (("Ready",), ("Failed",))
    assert (result.share_id, result.consumed_capacity) == (None, {})


def shares() -> list[tuple[str | None, dict[str, object]]]:
    device = a_device(shareable=True, capacity={"memory": DeviceCapacity(value="8Gi")})
    claim = a_claim("claim", *(wants(name, capacity={"memory": "2Gi"}) for name in "ab"))
    results = allocation(World(slices=[a_slice(device)], claims=[claim])).devices.results
    return [(result.share_id, dict(result.consumed_capacity)) for result in results]


def test_every_share_has_an_id_of_its_own_and_always_the_same():
    (first, consumed), (second, _) = shares()
    assert consumed == {"memory": "2Gi"}
    assert first != second
    assert shares() == [(first, consumed), (second, consumed)]


def test_drivers_get_the_configuration_of_the_class_once_and_then_of_the_claim():
    def parameters(name: str) -> dict[str, object]:
        return {"driver": "gpu.example.com", "parameters": {"name": name}}

    def a_configured_claim() -> ResourceClaim:
        claim = a_claim("claim", wants("a"), first_of("b", wants("x", 9), wants("y")), wants("c", of="other"))
        force_setattr(
            claim.spec.devices,
            "config",
            (
                DeviceClaimConfiguration(opaque=parameters("for all")),
                DeviceClaimConfiguration(requests=("a",), opaque=parameters("for a")),
                DeviceClaimConfiguration(requests=("b/y",), opaque=parameters("for b, the second")),
                DeviceClaimConfiguration(requests=("b/x",), opaque=parameters("for b, the first")),
                DeviceClaimConfiguration(requests=("b",), opaque=parameters("for b")),
            ),
        )
        return claim

    gpu = a_class()
    force_setattr(gpu.spec, "config", (DeviceClassConfiguration(opaque=parameters("class")),))
    slices = [a_slice(a_device("0"), a_device("1"), a_device("2"))]
    world = World(slices=slices, classes=[gpu, a_class("other")], claims=[a_configured_claim()])
    config = [
        (each.source, each.requests, each.opaque["parameters"]["name"])
        for each in allocation(world).devices.config
        if each.opaque
    ]
    assert config == [
        ("FromClass", ("a", "b/y"), "class"),
        ("FromClaim", (), "for all"),
        ("FromClaim", ("a",), "for a"),
        ("FromClaim", ("b/y",), "for b, the second"),
        ("FromClaim", ("b",), "for b"),
    ]
