"""What is recorded of PodGroups, Workloads and pods of groups is what a real kube-apiserver responds.

With RECORD_STORED=1 the record is written again. The embedded server is compared with the record by
tests/apiserver/test_pod_groups.py.
"""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from tests.apiserver.pod_group_requests import GATE_SETS, RECORDED, SCENARIOS, Step, response, steps_of
from tests.cli.programs import private_home
from tests.real_apiserver.control_plane import Api, ApiError, ControlPlane

from mooring.deploy.upstream import granted_everywhere

SERVED = "--runtime-config=scheduling.k8s.io/v1alpha2=true"


def sent(api: Api, step: Step) -> list[Any]:
    try:
        return response(201 if step.method == "POST" else 200, api.request(*step[:3], content=step.content))
    except ApiError as error:
        return response(error.code, json.loads(str(error).partition(": ")[2]))


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


@pytest.mark.parametrize("gates", GATE_SETS)
def test_kube_apiserver_responds_what_is_recorded(gates: str):
    """Gang scheduling, 2, 9.1 and, for the rights of kube-scheduler, 9.3."""
    flag = "--feature-gates=" + ",".join(f"{name}=true" for name in GATE_SETS[gates])
    with private_home() as folder, ControlPlane(folder, flag, SERVED) as running:
        found = {name: [sent(running.api, step) for step in steps_of(name)] for name in SCENARIOS}
        assert rights_to_groups(running.api) == {
            (right.resource, right.verb)
            for right in granted_everywhere(with_pod_groups=True)
            if right.resource.startswith("podgroups")
        }
    recorded = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}
    if os.environ.get("RECORD_STORED"):
        RECORDED.write_text(json.dumps({**recorded, gates: found}, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    else:
        assert found == recorded[gates]
