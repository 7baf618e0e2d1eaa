"""What `/metrics/resources` reports of pods."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import force_setattr
from prometheus_client.parser import text_string_to_metric_families
from tests.lists import list_into

from mooring.objects import Pod
from mooring.objects.core import Container, ResourceRequirements
from mooring.scheduler.metrics.pod_resources import PodResources
from mooring.testing import a_pod


def shown(text: bytes) -> dict[tuple[str, str, str, str], float]:
    """(request or limit, pod, resource, unit) → value."""
    return {
        (
            sample.name.removeprefix("kube_pod_resource_"),
            sample.labels["pod"],
            sample.labels["resource"],
            sample.labels["unit"],
        ): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def reported(pod: Pod) -> dict[str, float]:
    """`request cpu` → value."""
    resources = PodResources()
    page = resources.served()
    resources.changed(pod)
    return {f"{what} {resource}": value for (what, _, resource, _), value in shown(page()).items()}


def calling(limits: dict[str, Any] | None = None, **requests: Any) -> Container:
    return Container(resources=ResourceRequirements(requests=requests, limits=limits or {}))


def built(*containers: Container, **spec: Any) -> Pod:
    pod = a_pod()
    force_setattr(pod.spec, "containers", tuple(containers))
    for name, value in spec.items():
        force_setattr(pod.spec, name, value)
    return pod


def a_sidecar(**requests: Any) -> Container:
    sidecar = calling(**requests)
    force_setattr(sidecar, "restart_policy", "Always")
    return sidecar


CASES: dict[str, tuple[Pod, dict[str, float]]] = {
    "containers add up": (built(calling(cpu="100m"), calling(cpu="250m")), {"request cpu": 0.35}),
    "an init container that requests more counts alone": (
        built(calling(cpu="1"), init_containers=[calling(cpu="3")]),
        {"request cpu": 3},
    ),
    "a sidecar counts beside what comes after it": (
        built(calling(cpu="1"), init_containers=[a_sidecar(cpu="500m"), calling(cpu="2")]),
        {"request cpu": 2.5},
    ),
    "what the whole pod requests replaces the sum": (
        built(calling(cpu="1"), resources=ResourceRequirements(requests={"cpu": "4"})),
        {"request cpu": 4},
    ),
    "overhead is added to requests, and only to limits that there are": (
        built(calling({"cpu": "2"}, cpu="1"), overhead={"cpu": "1", "memory": "1Mi"}),
        {"request cpu": 2, "request memory": 2**20, "limit cpu": 3},
    ),
    "resources that scheduling does not count are reported too": (
        built(calling(storage="1Ki")),
        {"request storage": 1024},
    ),
    "an amount of zero is not reported": (built(calling(cpu="0")), {}),
    "what cannot be read is not reported": (built(calling(cpu="many", memory="1Ki")), {"request memory": 1024}),
}


@pytest.mark.parametrize(("pod", "expected"), CASES.values(), ids=CASES.keys())
def test_what_a_pod_requests(pod, expected):
    assert reported(pod) == expected


def test_labels_are_kube_schedulers():
    resources = PodResources()
    page = resources.served()
    resources.changed(a_pod("web", namespace="shop", cpu="1", node="n1", priority=7, scheduler='odd "one"'))
    (family,) = text_string_to_metric_families(page().decode())
    assert (family.name, family.type) == ("kube_pod_resource_request", "gauge")
    assert family.documentation.startswith("[STABLE] ")
    assert family.samples[0].labels == {
        "namespace": "shop",
        "pod": "web",
        "node": "n1",
        "scheduler": 'odd "one"',
        "priority": "7",
        "resource": "cpu",
        "unit": "cores",
    }


@pytest.mark.parametrize(
    ("resource", "unit"),
    [
        ("memory", "bytes"),
        ("hugepages-2Mi", "bytes"),
        ("ephemeral-storage", "bytes"),
        ("attachable-volumes-csi", "integer"),
        ("example.com/gpu", ""),
    ],
)
def test_units(resource, unit):
    resources = PodResources()
    page = resources.served()
    resources.changed(a_pod(requests={resource: "3"}))
    assert shown(page()) == {("request", "pod", resource, unit): 3}


def test_pods_come_change_and_go():
    resources = PodResources()
    page = resources.served()
    web, db = a_pod("web", cpu="1"), a_pod("db", cpu="2")
    list_into(resources, [web, db])
    assert {pod for _, pod, _, _ in shown(page())} == {"web", "db"}
    resources.deleted(web)
    resources.changed(a_pod("db", uid=db.uid, cpu="3"))
    assert shown(page()) == {("request", "db", "cpu", "cores"): 3}


def test_nothing_is_kept_where_it_is_not_served():
    resources = PodResources()
    list_into(resources, [a_pod("web", cpu="1")])
    assert resources.text() == b""


def test_who_stands_by_serves_an_empty_page():
    resources = PodResources()
    page = resources.served(is_leading=lambda: False)
    resources.changed(a_pod("web", cpu="1"))
    assert page() == b""
