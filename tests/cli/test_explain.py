"""`mooring explain` and `mooring why-not` without a scheduler: on a file, and on an API server with pods of others."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import yaml
from tests.cli.clusters import a_server
from tests.cli.conftest import Mooring, Result
from tests.cli.programs import Program

from mooring.apiserver import EmbeddedApiServer
from mooring.base.errors import ApiError, Fault, OperatorMistake, Problem
from mooring.cli.explained_cluster import ExplainedSource
from mooring.client import ApiClient, Connection
from mooring.objects import Node, Pod
from mooring.scheduler.introspection.explain_client import QueryResult
from mooring.testing import a_pod

CLUSTER = """
apiVersion: mooring.dev/v1alpha1
kind: SimulatedNodes
names: [small-1, small-2]
allocatable: {cpu: "4", memory: 8Gi, pods: "110"}
---
apiVersion: mooring.dev/v1alpha1
kind: SimulatedNodes
names: [gpu-1]
taints: [{key: gpu, value: "true", effect: NoSchedule}]
allocatable: {cpu: "16", memory: 64Gi, pods: "110"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, uid: d1, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-5d
  uid: r1
  creationTimestamp: "2026-01-01T00:00:00Z"
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: d1, controller: true}]
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}
"""
POD = """
---
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  uid: {name}
  creationTimestamp: "2026-01-01T00:00:00Z"
  ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: web-5d, uid: r1, controller: true}}]
spec: {{{node}containers: [{{name: c, image: i, resources: {{requests: {{cpu: "{cpu}"}}}}}}]}}
status: {{phase: {phase}}}
"""


def a_pod_document(name: str, cpu: int, node: str = "") -> str:
    where, phase = (f"nodeName: {node}, ", "Running") if node else ("", "Pending")
    return POD.format(name=name, cpu=cpu, node=where, phase=phase)


PODS = [a_pod_document("web-1", 2, "small-1"), a_pod_document("web-2", 3, "small-2"), a_pod_document("big", 3)]


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER + "".join(PODS), encoding="utf-8")
    return f"--cluster={path}"


def test_a_pending_pod_of_a_file_shows_the_reason_first_and_what_would_help(mooring: Mooring, file: str):
    result = mooring("explain", "big", file)
    assert result.code == 0
    first, *others = result.out.splitlines()
    assert (
        first
        == "Pod default/big waits for a node (profile default-scheduler, Pending): 2 of 3 nodes have too little cpu."
    )
    assert "Recomputed with profile default-scheduler on the cluster of the file:" in others
    assert "    2 nodes fit but for this; nearest is small-1: it lacks 1 cpu." not in others
    assert "    nearest is small-1: it lacks 1 cpu." in others
    assert not any("delete default/web-1" in line for line in others), "it belongs to the same Deployment"
    assert "    - shrink default/web-1 by 1 cpu" in others
    assert "    - add this toleration:" in others
    assert "          - key: gpu" in others


def test_a_bound_pod_of_a_file_shows_runner_up_and_scores(mooring: Mooring, file: str):
    result = mooring("explain", "web-1", file)
    assert result.code == 0
    assert result.out.startswith("Pod default/web-1 runs on small-1 (profile default-scheduler, Running).\n")
    assert "It would go to small-1 again: it is the only feasible one of 3 nodes." in result.out


def test_wide_shows_every_node(mooring: Mooring, tmp_path: Path):
    path = tmp_path / "many.yaml"
    nodes = "{apiVersion: mooring.dev/v1alpha1, kind: SimulatedNodes, count: 9}"
    path.write_text(nodes + a_pod_document("web", 1, "node-3"), encoding="utf-8")
    narrow, wide = (mooring("explain", "web", f"--cluster={path}", "-o", form).out for form in ("text", "wide"))
    assert "… and 4 more nodes: -o wide shows all." in narrow
    assert all(f"\n  node-{number} " in wide for number in range(1, 10))


def test_json_and_yaml_are_the_same_document(mooring: Mooring, file: str):
    found = json.loads(mooring("explain", "big", file, "-o", "json").out)
    assert yaml.safe_load(mooring("explain", "big", file, "-o", "yaml").out) == found
    assert found["summary"] == "2 of 3 nodes have too little cpu"
    changes = found["recomputed"]["nearest"][0]["changes"]
    assert changes[0] == {"change": "shrink default/web-1 by 1 cpu", "node": "small-1"}


def test_the_pods_of_a_deployment_are_grouped_by_cause(mooring: Mooring, file: str):
    result = mooring("explain", "deployment.apps/web", file)
    assert result.code == 0
    assert result.out.startswith(
        "deployment/web in namespace default: 1 of 3 pods wait for a node: 2 of 3 nodes have too little cpu.\n"
    )
    assert "Running: 2 pods: web-1, web-2" in result.out
    found = json.loads(mooring("explain", "rs/web-5d", file, "-o", "json").out)
    assert [(group["isPending"], group["count"]) for group in found["groups"]] == [(True, 1), (False, 2)]


def test_why_not_shows_every_filter_both_scores_and_the_smallest_change(mooring: Mooring, file: str):
    result = mooring("why-not", "web-1", "gpu-1", file)
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0] == "Pod default/web-1 cannot run on gpu-1: it has the taint gpu=true:NoSchedule."
    assert any(line.split()[:2] == ["TaintToleration", "rejects"] for line in lines)
    assert any(line.split()[:2] == ["NodeResourcesFit", "passes"] for line in lines)
    assert any(line.split()[:3] == ["PLUGIN", "gpu-1", "small-1"] for line in lines)
    assert "  - add this toleration:" in lines
    found = json.loads(mooring("why-not", "pod/web-1", "node/gpu-1", file, "-o", "json").out)
    assert found["changes"][0]["node"] == "gpu-1"


def test_why_not_with_a_configuration_that_lacks_the_filter(mooring: Mooring, file: str, tmp_path: Path):
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: "
        "[{plugins: {filter: {disabled: [{name: TaintToleration}]}}}]}",
        encoding="utf-8",
    )
    result = mooring("why-not", "web-1", "gpu-1", file, f"--config={config}")
    assert result.out.startswith("Pod default/web-1 runs on small-1, and would go to gpu-1 if it were decided now.")


def test_all_pending_pods_are_grouped_by_cause(mooring: Mooring, tmp_path: Path):
    path = tmp_path / "cluster.yaml"
    path.write_text(
        CLUSTER + "".join([*PODS, a_pod_document("big-2", 3), a_pod_document("small", 1)]), encoding="utf-8"
    )
    result = mooring("explain", "-A", f"--cluster={path}")
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0] == "3 pods are pending; each was decided alone."
    assert lines[2] == "2 pods: 2 of 3 nodes have too little cpu"
    assert lines[3].startswith("  NodeResourcesFit: 0/3 nodes are available: ")
    assert lines[4].split() == ["POD", "OWNER", "PRIORITY", "SINCE"]
    assert [line.split()[:2] for line in lines[5:7]] == [
        ["default/big", "ReplicaSet/web-5d"],
        ["default/big-2", "ReplicaSet/web-5d"],
    ]
    found = json.loads(mooring("explain", "-A", f"--cluster={path}", "-o", "json").out)
    assert (found["pending"], found["namespace"]) == (3, None)
    assert [(group["total"], group["plugin"]) for group in found["groups"]] == [
        (2, "NodeResourcesFit"),
        (1, ""),
    ]
    assert found["groups"][1]["reason"] == "it fits, and waits for its turn"


def test_the_pending_pods_of_a_namespace(mooring: Mooring, file: str):
    assert mooring("explain", "-n", "default", file).out.startswith("1 pod is pending in namespace default; ")
    assert mooring("explain", "-n", "shop", file).out == "No pod is pending in namespace shop.\n"


MISTAKES = {
    "neither a pod nor a namespace": (["explain"], "Name a pod", "give -A for all pending pods"),
    "a pod, and all namespaces": (["explain", "big", "-A"], "-A shows all pending pods", "leave out the pod"),
    "a record of all pods": (["explain", "-A", "--recorded"], "--recorded is about one pod", "name it"),
    "a name that begins so": (
        ["explain", "web"],
        'there is no pod "web" in namespace "default"',
        "There are web-1, web-2.",
    ),
    "a name of similar letters": (["explain", "bigg"], 'no pod "bigg"', 'Did you mean "big"?'),
    "another namespace": (
        ["explain", "shop/big"],
        'in namespace "shop"',
        'There is one in namespace "default": choose it with -n default.',
    ),
    "an unknown node": (["why-not", "big", "gpu-2"], 'there is no node "gpu-2".', 'Did you mean "gpu-1"?'),
    "an unknown owner": (["explain", "deploy/wep"], 'there is no Deployment "wep"', 'Did you mean "web"?'),
    "an owner instead of a pod": (["why-not", "deploy/web", "gpu-1"], '"deploy/web" is no pod', "name a pod as NAME"),
    "a node instead of a pod": (["why-not", "node/gpu-1", "gpu-1"], '"node/gpu-1" is no pod', "name a pod as NAME"),
    "no name": (["explain", "pod/"], '"pod/" is no pod', "name a pod as NAME"),
    "a recording that is not there": (
        ["explain", "big", "--recording=absent.mooring"],
        "absent.mooring",
        "No such file",
    ),
    "two clusters": (["explain", "big", "--kubeconfig=k"], "--cluster is a file", "leave out --kubeconfig"),
    "a record of a file": (
        ["explain", "big", "--recorded"],
        "--recorded is about a scheduler that runs",
        "a file has none",
    ),
}


@pytest.mark.parametrize(("arguments", "what", "hint"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_are_named_with_what_is_near(mooring: Mooring, file: str, arguments: list[str], what: str, hint: str):
    result = mooring(*arguments, file)
    assert result.code == 2
    assert what in result.err
    assert hint in result.err


# On an API server. Its pods are bound by the test: no Mooring scheduler knows them.


async def _filled(client: ApiClient) -> None:
    for name, cpu in (("one", "4"), ("two", "2")):
        allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
        await client.create(Node.KIND, {"metadata": {"name": name}, "status": {"allocatable": allocatable}})
    for name in ("bound", "pending"):
        resources = {"requests": {"cpu": "3"}}
        spec = {"containers": [{"name": "c", "image": "i", "resources": resources}]}
        await client.create(Pod.KIND, {"metadata": {"name": name}, "spec": spec}, "default")
    pod = await client.get_as(Pod, "bound", "default")
    await client.bind("default", "bound", pod.uid, "one")


async def _called(server: EmbeddedApiServer, home: Path, *arguments: str) -> Result:
    server.write_kubeconfig(home / "k")
    program = Program(*arguments, "--kubeconfig=k", home=home)
    with program:
        code = await asyncio.to_thread(program.ended)
    return Result(code, "\n".join(program.out), "\n".join(program.err))


async def test_pods_that_another_scheduler_bound_are_explained_and_nothing_is_written(home: Path):
    async with a_server() as (server, client, _):
        await _filled(client)
        before = server.registry.store.revision
        bound = await _called(server, home, "explain", "bound")
        pending = await _called(server, home, "explain", "pending", "-o", "json")
        why_not = await _called(server, home, "why-not", "pending", "one")
        recorded = await _called(server, home, "explain", "pending", "--recorded")
        pending_pods = await _called(server, home, "explain", "-A")
        assert server.registry.store.revision == before
    assert "No Mooring scheduler of yours runs on this machine for that API server." in bound.out
    assert "It would go to one again: it is the only feasible one of 2 nodes." in bound.out
    found = json.loads(pending.out)
    assert found["summary"] == "both nodes have too little cpu"
    assert [(miss["node"], miss["missing"]) for miss in found["recomputed"]["nearest"]] == [
        ("one", ["lacks 2 cpu"]),
        ("two", ["has only 2 of the 3 cpu requested"]),
    ]
    assert why_not.out.startswith("Pod default/pending cannot run on one: it lacks 2 cpu.")
    assert "so this is all that is known." in recorded.out
    assert pending_pods.out.startswith(
        "1 pod is pending; each was decided alone.\n\n1 pod: both nodes have too little cpu"
    )


async def test_an_unknown_pod_of_an_api_server_names_those_that_are_near(home: Path):
    async with a_server() as (server, client, _):
        await _filled(client)
        result = await _called(server, home, "explain", "pendingg")
    assert (result.code, 'Did you mean "pending"?' in result.err) == (2, True)


def test_a_cluster_that_may_not_be_listed_leaves_what_is_recorded(mooring: Mooring, monkeypatch: pytest.MonkeyPatch):
    async def found(*_: object) -> Pod:
        return a_pod("web")

    def refuse(*_: object) -> None:
        raise Fault("a snapshot needs nodes, which cannot be listed: nodes is forbidden")

    monkeypatch.setattr(ApiClient, "get_as", found)
    monkeypatch.setattr(ExplainedSource, "read_live", refuse)
    connection = Connection(server="https://cluster.invalid:6443", source="the test")
    monkeypatch.setattr("mooring.cli.kubeconfig_file.connection_here", lambda _: connection)
    result = mooring("explain", "web")
    assert result.code == 0
    assert result.out.startswith("Pod default/web waits for a node")
    assert result.out.endswith(
        "It was not decided again: a snapshot needs nodes, which cannot be listed: nodes is forbidden\n"
    )


def test_a_cluster_that_cannot_be_read_is_no_matter_of_the_configuration(mooring: Mooring, monkeypatch):
    async def found(*_: object) -> Pod:
        return a_pod("web")

    def unreadable(*_: object) -> None:
        raise OperatorMistake.found_in("https://cluster.invalid", [Problem('Pod "default/x"', "is no pod")])

    configuration = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    responses = QueryResult([{"found": False, "profiles": ["default-scheduler"], "configuration": configuration}], [])
    monkeypatch.setattr(ApiClient, "get_as", found)
    monkeypatch.setattr("mooring.scheduler.introspection.explain_client.query", lambda *_: responses)
    monkeypatch.setattr("mooring.cli.explained_cluster.ExplainedSource.read_live", unreadable)
    connection = Connection(server="https://cluster.invalid:6443", source="the test")
    monkeypatch.setattr("mooring.cli.kubeconfig_file.connection_here", lambda _: connection)
    assert mooring("explain", "web").out.endswith(
        'It was not decided again: https://cluster.invalid has 1 problem. Pod "default/x": is no pod\n'
    )


def test_a_configuration_that_cannot_be_read_here_is_named_once(mooring: Mooring, monkeypatch: pytest.MonkeyPatch):
    async def found(*_: object) -> Pod:
        return a_pod("web")

    plugins = {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}}
    args = [{"name": "GangScheduling", "args": {"kind": "GangSchedulingArgs"}}]
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", "plugins": plugins, "pluginConfig": args}],
    }
    responses = QueryResult([{"found": False, "profiles": ["default-scheduler"], "configuration": configuration}], [])
    monkeypatch.setattr(ApiClient, "get_as", found)
    monkeypatch.setattr("mooring.scheduler.introspection.explain_client.query", lambda *_: responses)
    connection = Connection(server="https://cluster.invalid:6443", source="the test")
    monkeypatch.setattr("mooring.cli.kubeconfig_file.connection_here", lambda _: connection)
    assert mooring("explain", "web").out.endswith(
        'It was not decided again: plugin "GangScheduling" is about pod groups: it needs --feature-gates '
        "GangScheduling=true. Give --plugins and --feature-gates as the scheduler has them.\n"
    )


def test_a_namespace_that_may_not_be_read(mooring: Mooring, monkeypatch: pytest.MonkeyPatch):
    async def refuse(*_: object) -> None:
        raise ApiError(403, "Forbidden", 'pods "web" is forbidden: User "ann" cannot get resource "pods"')

    monkeypatch.setattr(ApiClient, "get_as", refuse)
    connection = Connection(server="https://cluster.invalid:6443", source="the test")
    monkeypatch.setattr("mooring.cli.kubeconfig_file.connection_here", lambda _: connection)
    result = mooring("explain", "web", "-n", "secret")
    assert result.code == 2
    assert 'you may not read pods in namespace "secret" on https://cluster.invalid:6443' in result.err
    assert 'User "ann" cannot get resource "pods"' in result.err


def test_a_node_is_explained_in_text_and_as_a_document(mooring: Mooring, file: str):
    result = mooring("explain", "node/small-1", file)
    assert result.code == 0
    assert "It rejects 1 pod: default/big" in result.out
    found = json.loads(mooring("explain", "no/gpu-1", file, "-o", "json").out)
    assert found["taints"] == ["gpu=true:NoSchedule"]
    assert [each["plugin"] for each in found["rejected"][0]["filters"]] == ["TaintToleration"]


def test_a_node_that_does_not_exist_is_a_mistake_with_near_names(mooring: Mooring, file: str):
    result = mooring("explain", "node/small-9", file)
    assert result.code == 2
    assert 'there is no node "small-9". Did you mean' in result.err
