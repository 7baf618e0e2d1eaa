"""What is recorded of PodGroups, Workloads and pods of groups is what a real kube-apiserver responds.

With RECORD_STORED=1 the record is written again. The embedded server is compared with the record by
tests/apiserver/test_pod_groups.py.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.apiserver.pod_group_requests import (
    CLASSES,
    GATE_SETS,
    PODS,
    RECORDED,
    SCENARIOS,
    Step,
    response,
    steps_of,
)
from tests.cli.programs import PATIENCE_SECONDS, private_home
from tests.real_apiserver.cluster import Cluster
from tests.real_apiserver.control_plane import LOOK_AGAIN_SECONDS, Api, ApiError, ControlPlane, with_gates

from mooring.deploy.upstream import granted_everywhere


def sent(api: Api, step: Step) -> list[Any]:
    try:
        responded = response(201 if step.method == "POST" else 200, api.request(*step[:3], content=step.content))
    except ApiError as error:
        return response(error.code, json.loads(str(error).partition(": ")[2]))
    if (step.method, step.path) == ("POST", CLASSES):
        until_admitted(api, step.body["metadata"]["name"])
    return responded


def until_admitted(api: Api, priority_class: str) -> None:
    """Admission reads priority classes from a watch of its own: the next request may come before it."""
    spec = {"priorityClassName": priority_class, "containers": [{"name": "main", "image": "pause"}]}
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            api.create(f"{PODS}?dryRun=All", {"metadata": {"name": "dry"}, "spec": spec})
            return
        except ApiError:
            if time.monotonic() > deadline:
                raise
        time.sleep(LOOK_AGAIN_SECONDS)


def rights_to_groups(api: Api) -> set[tuple[str, str]]:
    """Of kube-scheduler's role: resources of pod groups and the verbs on them."""
    rules = api.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/system:kube-scheduler")["rules"]
    return {
        (resource, verb)
        for rule in rules
        for resource in rule.get("resources", ())
        for verb in rule["verbs"]
        if resource.startswith("podgroups")
    }


@pytest.fixture(params=GATE_SETS)
def gates_and_server(request: pytest.FixtureRequest) -> Iterator[tuple[str, Api]]:
    """The server with all gates also serves other tests."""
    gates = request.param
    with private_home() as folder:
        if gates == "all":
            running = request.getfixturevalue("control_plane_of_groups")
            yield gates, running.api
            Cluster(running, folder).wipe_groups()
        else:
            with ControlPlane(folder, *with_gates(GATE_SETS[gates])) as running:
                yield gates, running.api


def test_kube_apiserver_responds_what_is_recorded(gates_and_server: tuple[str, Api]):
    """Gang scheduling, 2, 9.1 and, for the rights of kube-scheduler, 9.3."""
    gates, api = gates_and_server
    found = {name: [sent(api, step) for step in steps_of(name)] for name in SCENARIOS}
    assert rights_to_groups(api) == {
        (right.resource, right.verb)
        for right in granted_everywhere(with_pod_groups=True)
        if right.resource.startswith("podgroups")
    }
    recorded = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}
    if os.environ.get("RECORD_STORED"):
        RECORDED.write_text(json.dumps({**recorded, gates: found}, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    else:
        assert found == recorded[gates]
