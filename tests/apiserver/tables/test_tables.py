"""Tables: the columns that kubectl prints."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.builders import NODES, PODS, a_config_map, a_node, a_pod
from tests.apiserver.conftest import Client

from mooring.apiserver.tables.ages import human_duration
from mooring.apiserver.tables.pods import POD_COLUMNS

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"

AGES = {
    0: "0s",
    119: "119s",
    120: "2m",
    200: "3m20s",
    600: "10m",
    10_799: "179m",
    10_800: "3h",
    11_000: "3h3m",
    8 * 3600: "8h",
    47 * 3600: "47h",
    48 * 3600: "2d",
    51 * 3600: "2d3h",
    8 * 86_400: "8d",
    729 * 86_400: "729d",
    730 * 86_400: "2y",
    770 * 86_400: "2y40d",
    9 * 365 * 86_400: "9y",
    -1: "0s",
    -5: "<invalid>",
}


@pytest.mark.parametrize(("seconds", "expected"), AGES.items())
def test_durations_have_about_two_figures(seconds: int, expected: str):
    assert human_duration(seconds) == expected


def cells(pod: dict[str, Any]) -> list[Any]:
    return [column.cell(pod, 1_700_000_000.0) for column in POD_COLUMNS][1:4]


def a_status(phase: str, *containers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"phase": phase, "containerStatuses": list(containers), **fields}


def a_container(state: dict[str, Any], *, ready: bool = False, **fields: Any) -> dict[str, Any]:
    return {"name": "main", "ready": ready, "restartCount": 0, "state": state, **fields}


RUNNING = a_container({"running": {}}, ready=True)
ENDED = a_container({"terminated": {"exitCode": 0, "reason": "Completed"}})
CRASHING = a_container({"waiting": {"reason": "CrashLoopBackOff"}})
STATES = {
    "pending": (a_status("Pending"), ["0/1", "Pending", "0"]),
    "running": (a_status("Running", RUNNING), ["1/1", "Running", "0"]),
    "pulling": (
        a_status("Pending", a_container({"waiting": {"reason": "ContainerCreating"}})),
        ["0/1", "ContainerCreating", "0"],
    ),
    "completed": (
        a_status("Succeeded", a_container({"terminated": {"exitCode": 0, "reason": "Completed"}})),
        ["0/1", "Completed", "0"],
    ),
    "failed without a reason": (
        a_status("Failed", a_container({"terminated": {"exitCode": 3}})),
        ["0/1", "ExitCode:3", "0"],
    ),
    "evicted": (a_status("Failed", reason="Evicted"), ["0/1", "Evicted", "0"]),
    "initialising": (
        a_status("Pending", initContainerStatuses=[a_container({"running": {}})]),
        ["0/1", "Init:0/0", "0"],
    ),
    "restarted a minute ago": (
        a_status(
            "Running",
            RUNNING | {"restartCount": 2, "lastState": {"terminated": {"finishedAt": "2023-11-14T22:12:20Z"}}},
        ),
        ["1/1", "Running", "2 (60s ago)"],
    ),
    "initialising for a reason": (
        a_status("Pending", initContainerStatuses=[a_container({"waiting": {"reason": "ImagePullBackOff"}})]),
        ["0/1", "Init:ImagePullBackOff", "0"],
    ),
    "failed to initialise": (
        a_status("Pending", initContainerStatuses=[a_container({"terminated": {"exitCode": 1, "signal": 9}})]),
        ["0/1", "Init:Signal:9", "0"],
    ),
    "initialised again and again": (
        a_status("Pending", initContainerStatuses=[a_container({"running": {}}, restartCount=4)]),
        ["0/1", "Init:0/0", "4"],
    ),
    "restarts of an init container that has ended do not count": (
        a_status("Running", RUNNING, initContainerStatuses=[ENDED | {"restartCount": 4}]),
        ["1/1", "Running", "0"],
    ),
    "the first container that fails decides the status of the pod": (
        a_status("Running", CRASHING, a_container({"waiting": {"reason": "ErrImagePull"}})),
        ["0/1", "CrashLoopBackOff", "0"],
    ),
    "one container has completed, one serves": (
        a_status("Running", ENDED, RUNNING, conditions=[{"type": "Ready", "status": "True"}]),
        ["1/1", "Running", "0"],
    ),
    "one container has completed, one serves, the pod is not ready": (
        a_status("Running", ENDED, RUNNING),
        ["1/1", "NotReady", "0"],
    ),
    "one container has completed, one serves, one has failed": (
        a_status("Running", ENDED, RUNNING, a_container({"terminated": {"exitCode": 1, "reason": "Error"}})),
        ["1/1", "Error", "0"],
    ),
    "gated": (
        a_status("Pending", conditions=[{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]),
        ["0/1", "SchedulingGated", "0"],
    ),
}


@pytest.mark.parametrize(("status", "expected"), STATES.values(), ids=STATES.keys())
def test_a_pods_state_in_one_word(status: dict[str, Any], expected: list[str]):
    assert cells(a_pod() | {"status": status}) == expected


SIDECAR = {"name": "proxy", "image": "proxy", "restartPolicy": "Always"}
SIDECAR_STATES = {
    "is counted beside the containers": ([a_container({"running": {}}, ready=True, started=True)], ["2/2", "0"]),
    "keeps its restarts": ([a_container({"running": {}}, started=True, restartCount=3)], ["1/2", "3"]),
}


@pytest.mark.parametrize(("statuses", "expected"), SIDECAR_STATES.values(), ids=SIDECAR_STATES.keys())
def test_a_started_sidecar(statuses: list[dict[str, Any]], expected: list[str]):
    init = [each | {"name": "proxy"} for each in statuses]
    pod = a_pod(initContainers=[SIDECAR]) | {"status": a_status("Running", RUNNING, initContainerStatuses=init)}
    ready, _, restarts = cells(pod)
    assert [ready, restarts] == expected


def test_a_sidecar_that_has_not_started_holds_the_others_back():
    init = [a_container({"running": {}}) | {"name": "proxy"}]
    pod = a_pod(initContainers=[SIDECAR]) | {"status": a_status("Pending", CRASHING, initContainerStatuses=init)}
    assert cells(pod) == ["0/2", "Init:0/1", "0"]


@pytest.mark.parametrize(
    ("phase", "reason", "word"),
    [("Running", None, "Terminating"), ("Running", "NodeLost", "Unknown"), ("Succeeded", None, "Succeeded")],
)
def test_the_word_for_a_pod_that_is_leaving(phase: str, reason: str | None, word: str):
    pod = a_pod() | {"status": {"phase": phase, "reason": reason}}
    pod["metadata"]["deletionTimestamp"] = "2023-11-14T22:12:20Z"
    assert cells(pod)[1] == word


def test_a_deleted_pod_is_terminating():
    pod = a_pod() | {"status": a_status("Running", RUNNING)}
    pod["metadata"]["deletionTimestamp"] = "2023-11-14T22:12:20Z"
    assert cells(pod)[1] == "Terminating"


async def test_a_list_as_a_table_carries_metadata_unless_the_client_includes_objects(api: Client):
    await api.post(PODS, a_pod())
    table = (await api.get(PODS, Accept=TABLE)).body
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [column["name"] for column in table["columnDefinitions"] if column["priority"] == 0] == [
        "Name",
        "Ready",
        "Status",
        "Restarts",
        "Age",
    ]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    whole = (await api.get(f"{PODS}?includeObject=Object", Accept=TABLE)).body
    assert whole["rows"][0]["object"]["spec"]
    bare = (await api.get(f"{PODS}?includeObject=None", Accept=TABLE)).body
    assert "object" not in bare["rows"][0]


async def test_one_object_as_a_table(api: Client):
    await api.post(NODES, a_node(labels={"node-role.kubernetes.io/worker": ""}, unschedulable=True))
    table = (await api.get(f"{NODES}/node-1", Accept=TABLE)).body
    assert table["rows"][0]["cells"][:4] == ["node-1", "Ready,SchedulingDisabled", "worker", "0s"]


async def test_a_watch_as_tables_names_the_columns_once(api: Client):
    response = await api._session.get(
        f"{api.server.url}{PODS}?watch=1", headers={"Accept": TABLE, "Content-Type": "application/json"}
    )
    await api.post(PODS, a_pod("a"))
    await api.post(PODS, a_pod("b"))
    lines = [await response.content.readline() for _ in range(2)]
    response.close()
    assert [b'"columnDefinitions":[]' in line for line in lines] == [False, True]


async def test_metadata_alone(api: Client):
    await api.post("/api/v1/namespaces/default/configmaps", a_config_map("m", a="b"))
    body = (await api.get("/api/v1/configmaps", Accept=METADATA)).body
    assert body["kind"] == "PartialObjectMetadataList"
    assert set(body["items"][0]) == {"kind", "apiVersion", "metadata"}


async def test_every_listed_kind_can_be_printed(api: Client):
    """Columns read what may be absent: an object with nothing but a name must not break a table."""
    from mooring.apiserver.tables.rendering import columns_for

    bare = {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x", "creationTimestamp": "2023-11-14T22:12:20Z"}}
    for row in api.server.registry.table:
        for column in columns_for(row):
            column.cell(bare, 1_700_000_000.0)


NETWORKING = {
    "networkpolicies": (
        {"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress"]},
        {"Name": "web", "Pod-Selector": "app=web"},
    ),
    "ingresses": (
        {
            "ingressClassName": "nginx",
            "rules": [{"host": f"{name}.example"} for name in "abcd"],
            "tls": [{"secretName": "cert"}],
        },
        {"Name": "web", "Class": "nginx", "Hosts": "a.example,b.example,c.example + 1 more...", "Ports": "80, 443"},
    ),
}


@pytest.mark.parametrize(("plural", "spec", "expected"), [(name, *each) for name, each in NETWORKING.items()])
async def test_networking_objects_are_stored_and_printed(api: Client, plural: str, spec: Any, expected: Any):
    path = f"/apis/networking.k8s.io/v1/namespaces/default/{plural}"
    kind = {"networkpolicies": "NetworkPolicy", "ingresses": "Ingress"}[plural]
    body = {"apiVersion": "networking.k8s.io/v1", "kind": kind, "metadata": {"name": "web"}, "spec": spec}
    assert (await api.post(path, body)).body["spec"] == spec
    table = (await api.get(path, Accept=TABLE)).body
    names = [column["name"] for column in table["columnDefinitions"]]
    shown = dict(zip(names, table["rows"][0]["cells"], strict=True))
    assert {name: shown[name] for name in expected} == expected
