"""What a pod requests, and what it counts as on its node."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import force_setattr

from mooring.objects import Pod
from mooring.objects.requests import (
    AmountsOrZero,
    PodRequests,
    requests_of,
    requests_of_containers,
    requests_on_node,
)

MI = 1024 * 1024


def a_pod(**parts: Any) -> Pod:
    """A pod by its containers (`c0`, …), init containers, pod level and status, as on the wire."""

    def containers(name: str, lists: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            {
                "name": f"{name}{number}",
                "resources": {"requests": {key: value for key, value in requested.items() if key != "restart"}},
                "restartPolicy": requested.get("restart"),
            }
            for number, requested in enumerate(lists)
        ]

    return msgspec.convert(
        {
            "spec": {
                "containers": containers("c", parts.get("containers", [{}])),
                "initContainers": containers("i", parts.get("init", [])),
                "overhead": parts.get("overhead", {}),
                **({"resources": {"requests": parts["pod_level"]}} if "pod_level" in parts else {}),
            },
            "status": parts.get("status", {}),
        },
        Pod,
    )


SPECS = {
    "containers add up": ({"containers": [{"cpu": "1"}, {"cpu": "500m"}]}, {"cpu": 1500}),
    "an init container counts where it is larger": (
        {"containers": [{"cpu": "1"}], "init": [{"cpu": "3"}]},
        {"cpu": 3000},
    ),
    "a sidecar counts all the time": (
        {"containers": [{"cpu": "1"}], "init": [{"cpu": "1", "restart": "Always"}, {"cpu": "2"}]},
        {"cpu": 3000},
    ),
    "overhead comes on top": ({"containers": [{"cpu": "1"}], "overhead": {"cpu": "250m"}}, {"cpu": 1250}),
    "the pod level replaces what it names": (
        {"containers": [{"cpu": "1", "example.com/gpu": "1"}], "pod_level": {"cpu": "4"}},
        {"cpu": 4000, "example.com/gpu": 1},
    ),
    "what scheduling does not account for is left out": ({"containers": [{"cpu": "1", "unknown": "1"}]}, {"cpu": 1000}),
}


@pytest.mark.parametrize(("parts", "amounts"), SPECS.values(), ids=SPECS.keys())
def test_requests_by_the_spec(parts, amounts):
    assert requests_of(a_pod(**parts)).amounts == amounts


FILLED = {
    "every container that names none counts": ({"containers": [{}, {"cpu": "1"}]}, (1100, 400 * MI)),
    "not where the pod level names it": ({"containers": [{}], "pod_level": {"cpu": "1"}}, (1000, 200 * MI)),
    "nor where, with a pod level, any container does": (
        {"containers": [{}, {"cpu": "1"}], "pod_level": {"memory": "1Mi"}},
        (1000, 1 * MI),
    ),
}


@pytest.mark.parametrize(("parts", "expected"), FILLED.values(), ids=FILLED.keys())
def test_what_counts_when_nodes_are_ranked(parts, expected):
    requested = requests_of(a_pod(**parts))
    assert (requested.nonzero_cpu_milli, requested.nonzero_memory_bytes) == expected


def test_a_pod_requests_nothing_of_what_its_containers_do_not_name():
    pod = a_pod(containers=[{"cpu": "500m"}])
    assert (pod.request("cpu"), pod.request("memory"), pod.request("example.com/gpu")) == (500, 0, 0)


def test_pods_on_different_nodes_that_request_the_same_share_it():
    one, two = a_pod(containers=[{"cpu": "1"}]), a_pod(containers=[{"cpu": "1"}])
    force_setattr(one.spec, "node_name", "a")
    force_setattr(two.spec, "node_name", "b")
    assert one.requests is two.requests


@pytest.mark.parametrize(
    ("parts", "others"),
    [
        ({"containers": [{"cpu": "1"}]}, {"containers": [{"cpu": "1", "memory": "1Gi"}]}),
        ({"init": [{"cpu": "1", "restart": "Always"}]}, {"init": [{"cpu": "1"}]}),
    ],
)
def test_pods_that_request_something_else_share_nothing(parts, others):
    parts = {"containers": [{"cpu": "1"}]} | parts
    others = {"containers": [{"cpu": "1"}]} | others
    assert requests_of(a_pod(**parts)) != requests_of(a_pod(**others))


def test_an_incoming_pod_is_ranked_by_its_containers_alone():
    pod = a_pod(containers=[{"cpu": "1"}], pod_level={"cpu": "4", "memory": "1Mi"})
    assert requests_of_containers(pod) == PodRequests(AmountsOrZero(cpu=1000), 1000, 200 * MI)


def held(cpu: str, **more: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "c0", "resources": {"requests": {"cpu": cpu}}}], **more}


INFEASIBLE = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]}
RESIZED = {
    "a pod that grows counts as what it will be": ("2", held("1"), 2000),
    "a pod that shrinks counts as what it still is": ("1", held("2"), 2000),
    "an infeasible resize does not count": ("9", held("1", **INFEASIBLE), 1000),
    "what was allocated counts too": (
        "1",
        {
            "containerStatuses": [
                {"name": "c0", "resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "3"}}
            ]
        },
        3000,
    ),
    "a status without resources is ignored": ("1", {"containerStatuses": [{"name": "c0"}]}, 1000),
}


@pytest.mark.parametrize(("requested", "status", "expected"), RESIZED.values(), ids=RESIZED.keys())
def test_while_a_pod_is_resized_on_its_node(requested, status, expected):
    pod = a_pod(containers=[{"cpu": requested}], status=status)
    assert requests_on_node(pod).amounts == {"cpu": expected}


POD_LEVEL = {
    "a pod that grows counts as what it will be": ({"cpu": "4"}, {"cpu": "2"}, {}, {"cpu": 4000}),
    "a pod that shrinks counts as what it still is": ({"cpu": "2"}, {"cpu": "4"}, {}, {"cpu": 4000}),
    "an infeasible resize does not count": ({"cpu": "9"}, {"cpu": "2"}, INFEASIBLE, {"cpu": 2000}),
    "where it holds nothing, that is nothing": ({"cpu": "9"}, {"memory": "1Gi"}, INFEASIBLE, {"cpu": 0}),
    "what the spec does not name does not count": ({"cpu": "2"}, {"cpu": "2", "memory": "1Gi"}, {}, {"cpu": 2000}),
    "what was allocated counts where resources are reported": (
        {"cpu": "2"},
        {"cpu": "2"},
        {"allocatedResources": {"cpu": "3"}},
        {"cpu": 3000},
    ),
    "and not otherwise": ({"cpu": "2"}, None, {"allocatedResources": {"cpu": "3"}}, {"cpu": 2000}),
}


@pytest.mark.parametrize(("requested", "reported", "more", "expected"), POD_LEVEL.values(), ids=POD_LEVEL.keys())
def test_while_a_pod_is_resized_as_a_whole(requested, reported, more, expected):
    status = {**({} if reported is None else {"resources": {"requests": reported}}), **more}
    pod = a_pod(containers=[{"cpu": "1"}], pod_level=requested, status=status)
    assert requests_on_node(pod).amounts == expected
