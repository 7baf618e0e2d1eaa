"""Templates are shared by pods that differ in their names, families by templates that differ in requests."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.objects import Pod
from mooring.objects.core import Container, ContainerClaim, ContainerStatus, PodSpec, PodStatus, ResourceRequirements
from mooring.objects.quantity import BadQuantity
from mooring.testing import a_pod


def with_containers(*containers: Container, **spec: Any) -> Pod:
    return Pod(spec=PodSpec(containers=tuple(containers), **spec))


def with_resources(**resources: Any) -> Pod:
    return with_containers(Container(name="web", resources=ResourceRequirements(**resources)))


def test_pods_that_differ_in_their_names_have_one_template():
    one, other = (a_pod(name, cpu="100m", labels={"app": "web"}) for name in ("one", "other"))
    assert one.template is other.template


def test_what_is_read_ahead_is_what_is_read_later():
    pod = with_resources(requests={"cpu": "1"})
    pod.read_ahead()
    assert pod.requests is with_resources(requests={"cpu": "1"}).requests
    assert pod.requests.amounts == {"cpu": 1000}


def test_reading_ahead_leaves_a_quantity_that_cannot_be_read_to_the_decision():
    pod = with_resources(requests={"cpu": "much"})
    pod.read_ahead()
    with pytest.raises(BadQuantity):
        _ = pod.requests


ONE_FAMILY = {
    "requests": (with_resources(requests={"cpu": "1"}), with_resources(requests={"cpu": "2"})),
    "no requests": (with_resources(), with_resources(requests={"cpu": "2"})),
    "limits": (with_resources(limits={"cpu": "1"}), with_resources(limits={"memory": "2Gi"})),
    "requests of init containers": (
        with_containers(init_containers=[Container(resources=ResourceRequirements(requests={"cpu": "1"}))]),
        with_containers(init_containers=[Container(resources=ResourceRequirements(requests={"cpu": "2"}))]),
    ),
}


@pytest.mark.parametrize(("one", "other"), ONE_FAMILY.values(), ids=ONE_FAMILY.keys())
def test_templates_that_differ_in_what_containers_request_are_a_family(one: Pod, other: Pod):
    assert one.template is not other.template
    assert one.template.family is other.template.family


NO_FAMILY = {
    "namespaces": (a_pod(namespace="one"), a_pod(namespace="other")),
    "labels": (a_pod(labels={"app": "one"}), a_pod(labels={"app": "other"})),
    "images": (with_containers(Container(image="one")), with_containers(Container(image="other"))),
    "containers": (
        with_containers(Container(name="one")),
        with_containers(Container(name="one"), Container(name="two")),
    ),
    "an init container": (with_containers(Container()), with_containers(init_containers=[Container()])),
    "claims": (with_resources(), with_resources(claims=[ContainerClaim(name="gpu")])),
    "priorities": (with_containers(priority=1), with_containers(priority=2)),
    "overhead": (with_containers(overhead={"cpu": "1"}), with_containers(overhead={"cpu": "2"})),
    "requests of the whole pod": (
        with_containers(resources=ResourceRequirements(requests={"cpu": "1"})),
        with_containers(resources=ResourceRequirements(requests={"cpu": "2"})),
    ),
    "reported resources": (
        with_containers(Container()),
        Pod(spec=PodSpec(containers=(Container(),)), status=PodStatus(container_statuses=(ContainerStatus(name="a"),))),
    ),
}


@pytest.mark.parametrize(("one", "other"), NO_FAMILY.values(), ids=NO_FAMILY.keys())
def test_templates_that_differ_in_anything_else_are_none(one: Pod, other: Pod):
    assert one.template.family is not other.template.family
