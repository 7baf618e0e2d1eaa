"""Extended resources that device classes provide: who provides what, and what containers request."""

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
    devices,
    named,
    wants,
)
from tests.plugins.verdicts import verdict

from mooring.engine import Decision
from mooring.framework import UNRESOLVABLE, Pod, PostFilterRefusal
from mooring.framework.verdicts import ClaimRelease
from mooring.objects.core import Container, ResourceRequirements
from mooring.objects.quantity import QuantityText
from mooring.objects.resource import EXTENDED_RESOURCE_CLAIM, Allocation, DeviceClass
from mooring.plugins.default.dynamic_resources.extended_resources import ExtendedResourceCache, extended_requests
from mooring.plugins.default.dynamic_resources.plugin import CANNOT_ALLOCATE, CANNOT_FIT, DELETED, LEFT_OVER
from mooring.testing import Services, a_node, a_pod

GPU = "example.com/gpu"
OWN_NAME = "deviceclass.resource.kubernetes.io/"


def provider(resource: str, *classes: DeviceClass) -> str | None:
    return ExtendedResourceCache(Services(objects={DeviceClass: classes}).objects(DeviceClass)).class_of(resource)


PROVIDERS: dict[str, tuple[str, list[DeviceClass], str | None]] = {
    "the class that names it": (GPU, [a_class("any"), a_class("gpu", provides=GPU)], "gpu"),
    "every class by its own name": (OWN_NAME + "any", [a_class("any")], "any"),
    "no class": (GPU, [a_class("any")], None),
    "the newest of several": (
        GPU,
        [
            a_class("a", provides=GPU, created="2025-01-01T00:00:00Z"),
            a_class("b", provides=GPU, created="2025-01-02T00:00:00Z"),
        ],
        "b",
    ),
    "the first by name of equally new ones": (GPU, [a_class("b", provides=GPU), a_class("a", provides=GPU)], "a"),
    "a class that loses is not known by its own name either, as upstream": (
        OWN_NAME + "b",
        [a_class("b", provides=GPU), a_class("a", provides=GPU)],
        None,
    ),
}


@pytest.mark.parametrize(("resource", "classes", "name"), PROVIDERS.values(), ids=PROVIDERS.keys())
def test_who_provides_a_resource(resource, classes, name):
    assert provider(resource, *classes) == name


def a_container(name: str, *, sidecar: bool = False, **amounts: QuantityText) -> Container:
    requests = {f"example.com/{resource}": amount for resource, amount in amounts.items()}
    return Container(
        name=name,
        resources=ResourceRequirements(requests={"cpu": "1", **requests}),
        restart_policy="Always" if sidecar else None,
    )


def a_pod_of(*containers: Container, init: tuple[Container, ...] = ()) -> Pod:
    pod = a_pod(uid="uid")
    force_setattr(pod.spec, "containers", containers)
    force_setattr(pod.spec, "init_containers", init)
    return pod


REQUESTED: dict[str, tuple[Pod, dict[str, int], list[tuple[str, str]]]] = {
    "a container's request is named after their places": (
        a_pod_of(a_container("c", gpu=2)),
        {"container-0-request-1": 2},
        [("c", "container-0-request-1")],
    ),
    "containers have a request each": (
        a_pod_of(a_container("a", gpu=1), a_container("b"), a_container("c", gpu=3)),
        {"container-0-request-1": 1, "container-2-request-1": 3},
        [("a", "container-0-request-1"), ("c", "container-2-request-1")],
    ),
    "resources have a request each, in the order of the requests' names": (
        a_pod_of(a_container("c", nic=1, gpu=2)),
        {"container-0-request-1": 2, "container-0-request-2": 1},
        [("c", "container-0-request-1"), ("c", "container-0-request-2")],
    ),
    "an init container uses what a later container will have": (
        a_pod_of(a_container("c", gpu=2), init=(a_container("i", gpu=1),)),
        {"container-1-request-1": 2},
        [("c", "container-1-request-1"), ("i", "container-1-request-1")],
    ),
    "and requests what it needs beyond": (
        a_pod_of(a_container("c", gpu=2), init=(a_container("i", gpu=5),)),
        {"container-0-request-1": 3, "container-1-request-1": 2},
        [
            ("c", "container-1-request-1"),
            ("i", "container-1-request-1"),
            ("i", "container-0-request-1"),
        ],
    ),
    "init containers share the largest of their requests": (
        a_pod_of(a_container("c"), init=(a_container("i", gpu=1), a_container("j", gpu=4))),
        {"container-1-request-1": 4},
        [("i", "container-1-request-1"), ("j", "container-1-request-1")],
    ),
    "a sidecar lives as long as the pod": (
        a_pod_of(a_container("c", gpu=1), init=(a_container("s", gpu=1, sidecar=True),)),
        {"container-0-request-1": 1, "container-1-request-1": 1},
        [("s", "container-0-request-1"), ("c", "container-1-request-1")],
    ),
    "an init container does not use an earlier sidecar's": (
        a_pod_of(a_container("c"), init=(a_container("s", gpu=1, sidecar=True), a_container("i", gpu=1))),
        {"container-0-request-1": 1, "container-1-request-1": 1},
        [("s", "container-0-request-1"), ("i", "container-1-request-1")],
    ),
}


@pytest.mark.parametrize(("pod", "counts", "mappings"), REQUESTED.values(), ids=REQUESTED.keys())
def test_what_containers_request(pod, counts, mappings):
    classes = Services(
        objects={DeviceClass: [a_class("gpu", provides=GPU), a_class("nic", provides="example.com/nic")]}
    )
    made = extended_requests(pod, [GPU, "example.com/nic"], ExtendedResourceCache(classes.objects(DeviceClass)))
    found = {request.name: request.exactly.count for request in made.requests if request.exactly}
    assert (found, list(found)) == (counts, list(counts))
    assert [(each.container_name, each.request_name) for each in made.mappings] == mappings


CLASSES = [a_class("gpu", provides=GPU), a_class("other")]
TWO_HERE = a_slice(*devices("gpu-0", "gpu-1"), node="node")


def a_world(*claims, node=None, gates=None, slices=(TWO_HERE,)) -> World:
    return World(node or a_node(), slices=slices, classes=CLASSES, claims=claims, gates=gates)


def test_devices_stand_in_where_the_node_lacks_the_resource():
    assert a_world().chosen(a_pod(requests={GPU: 2})) == {"container-0-request-0": ["gpu-0", "gpu-1"]}
    assert a_world().chosen(a_pod(requests={GPU: 3})) == CANNOT_ALLOCATE


def test_a_node_that_has_the_resource_needs_no_devices():
    pod = a_pod(requests={GPU: 3})
    assert a_world(node=a_node(resources={GPU: 1})).filter(pod) is None


def test_a_resource_that_is_reported_as_none_counts_as_lacking():
    assert a_world(node=a_node(resources={GPU: 0})).chosen(a_pod(requests={GPU: 1})) == {
        "container-0-request-0": ["gpu-0"]
    }


def test_a_resource_that_is_to_be_had_in_no_way_refuses_the_node():
    pod = a_pod(requests={GPU: 1, "example.com/nowhere": 1})
    assert verdict(a_world().filter(pod)) == (UNRESOLVABLE, (CANNOT_FIT,))
    assert a_world(node=a_node(resources={"example.com/nowhere": 0})).filter(pod) is None


def test_claims_and_extended_resources_come_together():
    pod = a_claiming_pod("claim", requests={GPU: 1})
    assert a_world(a_claim("claim", wants())).chosen(pod) == {"r": ["gpu-0"], "container-0-request-0": ["gpu-1"]}


def test_without_the_gate_the_plugin_has_nothing_to_do():
    world = a_world(gates={"DRAExtendedResource": False})
    assert "DynamicResources" in world.cluster.decide(a_pod(requests={GPU: 1})).cycle.skipped_filters


def a_left_over_claim(allocation: Allocation | None = None):
    return a_claim(
        "pod-extended-resources-x",
        wants("container-0-request-0"),
        made_for="uid",
        annotations={EXTENDED_RESOURCE_CLAIM: "true"},
        allocation=allocation,
    )


@pytest.mark.parametrize("allocation", [None, Allocation(node_selector=named("elsewhere"))], ids=["", "allocated"])
def test_a_claim_of_an_earlier_attempt_is_deleted_first(allocation):
    world = a_world(a_left_over_claim(allocation))
    decision: Decision = world.cluster.decide(a_pod(uid="uid", requests={GPU: 1}))
    assert decision.message == f"0/1 nodes are available: 1 {LEFT_OVER}. {DELETED}"
    remedy = decision.post_filtered.remedies[0]
    assert isinstance(remedy, PostFilterRefusal)
    assert remedy.deallocate == (
        ClaimRelease("default", "pod-extended-resources-x", "claim-pod-extended-resources-x", delete=True),
    )


def test_a_claim_of_another_pod_is_not_in_the_way():
    pod = a_pod(uid="another", requests={GPU: 1})
    assert a_world(a_left_over_claim()).chosen(pod) == {"container-0-request-0": ["gpu-0"]}


def test_a_class_that_comes_later_is_seen():
    world = World(slices=[a_slice(a_device())], classes=[a_class("other")])
    pod = a_pod(requests={GPU: 1})
    assert "DynamicResources" in world.cluster.decide(pod).cycle.skipped_filters
    world.services.objects(DeviceClass).put(a_class("gpu", provides=GPU))
    assert world.chosen(pod) == {"container-0-request-0": ["gpu-0"]}
