"""A cluster with its scheduler as a user starts them: what they write, how they can be queried, how they end."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.cli.conftest import Mooring
from tests.cli.programs import Program, private_home, until_gone

from mooring.scheduler.introspection.explain_client import QueryResult

CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: small}
status: {capacity: {cpu: "1", memory: 4Gi, pods: "110"}}
---
apiVersion: v1
kind: Node
metadata: {name: big}
status: {capacity: {cpu: "8", memory: 32Gi, pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {name: fits, namespace: default}
spec: {containers: [{name: main, image: pause, resources: {requests: {cpu: 500m}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: too-big, namespace: default}
spec: {containers: [{name: main, image: pause, resources: {requests: {cpu: "64"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: not-ours, namespace: default}
spec: {schedulerName: another-scheduler, containers: [{name: main, image: pause}]}
"""
# Its own kubeconfig would lead to a real cluster.
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}
profiles:
- plugins:
    score: {disabled: [{name: NodeResourcesFit}], enabled: [{name: NodeResourcesFit, weight: 7}]}
"""
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")


class Running(SimpleNamespace):
    program: Program
    kubeconfig: Path


@pytest.fixture(scope="module")
def up() -> Iterator[Running]:
    """One `mooring up` for the tests of this file that only look."""
    with private_home() as home:
        (home / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")
        (home / "scheduler.yaml").write_text(CONFIG, encoding="utf-8")
        with Program("up", "--cluster=cluster.yaml", "--config=scheduler.yaml", "-v=6", home=home) as program:
            program.ready()
            yield Running(program=program, kubeconfig=home / "mooring.kubeconfig", home=home)
            assert program.end() == 0
            assert not (home / "mooring.kubeconfig").exists()


@pytest.fixture
def on_cluster(up: Running, mooring: Mooring, monkeypatch: pytest.MonkeyPatch) -> Mooring:
    """`mooring` where the control socket of the running scheduler is found."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(up.home))
    monkeypatch.setenv("KUBECONFIG", str(up.kubeconfig))
    return mooring


def test_it_prints_how_to_point_kubectl_before_it_is_ready(up: Running):
    assert up.program.out[0] == f"Point kubectl at it:  export KUBECONFIG={up.kubeconfig}"
    assert up.program.out[1].startswith("Ready: scheduling for default-scheduler on https://127.0.0.1:")


def test_only_its_owner_may_read_the_kubeconfig(up: Running):
    assert stat.S_IMODE(up.kubeconfig.stat().st_mode) == 0o600


def test_the_kubeconfig_of_the_configuration_is_overridden_with_a_warning(up: Running):
    line = up.program.mentions("clientConnection.kubeconfig is not used here")
    assert line.startswith("W")
    assert 'kubeconfig="/etc/kubernetes/scheduler.conf"' in line


def test_a_defaulted_leader_election_is_no_risk_on_a_cluster_of_ones_own(up: Running):
    assert "leaderElect" not in "\n".join(up.program.err)


def test_nodes_are_not_missed_where_there_are_some(up: Running):
    assert "has no nodes" not in up.program.written()


def test_the_log_has_the_usual_lines(up: Running):
    up.program.mentions('"Add event for unscheduled pod" pod="default/fits"')
    up.program.mentions('"About to try and schedule pod" pod="default/fits"')
    up.program.mentions('"Attempting to schedule pod" pod="default/fits"')
    up.program.mentions('"Attempting to bind pod to node" pod="default/fits" node="big"')
    bound = up.program.mentions('"Successfully bound pod to node"')
    assert 'pod="default/fits" node="big" evaluatedNodes=2 feasibleNodes=2' in bound
    refused = up.program.mentions('"Unable to schedule pod; no fit; waiting"')
    assert 'pod="default/too-big"' in refused
    assert "0/2 nodes are available: 2 Insufficient cpu." in refused


def test_explain_shows_where_a_pod_went_and_the_scores(up: Running, on_cluster: Mooring):
    up.program.mentions('"Successfully bound pod to node"')
    result = on_cluster("explain", "fits")
    assert result.code == 0
    assert result.out.startswith("Pod default/fits runs on big (profile default-scheduler, ")
    assert "big was chosen: 2 of 2 nodes were feasible (2 looked at)." in result.out
    assert any(line.split()[0] == "NodeResourcesFit" for line in result.out.splitlines() if line.strip())
    assert "total" in result.out


def test_explain_shows_why_no_node_is_feasible_and_what_is_waited_for(up: Running, on_cluster: Mooring):
    up.program.mentions('"Unable to schedule pod; no fit; waiting"')
    result = on_cluster("explain", "too-big", "-n", "default")
    assert result.code == 0
    assert result.out.startswith("Pod default/too-big waits for a node")
    assert "0/2 nodes are available: 2 Insufficient cpu." in result.out
    assert "\n      2 nodes: " in result.out
    assert "It is tried again when one of these happens:" in result.out
    assert "registered by NodeResourcesFit" in result.out


def test_explain_decides_the_pod_again_and_shows_what_would_help(up: Running, on_cluster: Mooring):
    up.program.mentions('"Unable to schedule pod; no fit; waiting"')
    result = on_cluster("explain", "too-big")
    first = result.out.splitlines()[0]
    assert first.endswith("waits for a node (profile default-scheduler, Pending): both nodes have too little cpu.")
    assert "Recomputed with profile default-scheduler on the cluster as the API server shows it now:\n" in result.out
    assert "What would help? Each was verified by deciding again.\n" in result.out
    recorded = on_cluster("explain", "too-big", "--recorded").out
    assert "Recomputed" not in recorded
    assert "Without an event it is tried at " in recorded


def test_explain_decides_with_the_configuration_of_the_scheduler_that_runs(up: Running, on_cluster: Mooring):
    up.program.mentions('"Successfully bound pod to node"')
    found = json.loads(on_cluster("explain", "fits", "-o", "json").out)
    then = {score["plugin"]: score["weight"] for score in found["decision"]["scores"]}
    now = {plugin["plugin"]: plugin["weight"] for plugin in found["recomputed"]["table"]["plugins"]}
    assert now == then
    assert now["NodeResourcesFit"] == 7
    assert found["recomputed"]["runnerUp"]["node"] != found["node"]


def test_explain_prints_json(up: Running, on_cluster: Mooring):
    up.program.mentions('"Successfully bound pod to node"')
    found = json.loads(on_cluster("explain", "default/fits", "-o", "json").out)
    assert found["node"] == "big"
    assert found["decision"]["scores"][0].keys() >= {"plugin", "raw", "normalized", "weight", "weighted"}


def test_explain_of_a_pod_for_another_scheduler_lists_the_served_profiles(up: Running, on_cluster: Mooring):
    result = on_cluster("explain", "not-ours")
    assert result.code == 0
    assert "waits for a node (profile another-scheduler, Pending)" in result.out
    assert 'No scheduler here serves "another-scheduler"; the one that runs serves default-scheduler.' in result.out
    assert "create the pod again" in result.out


def test_explain_names_a_profile_once_that_two_schedulers_here_serve(up: Running, on_cluster: Mooring, monkeypatch):
    responses = QueryResult([{"profiles": ["b", "a"]}, {"profiles": ["a"]}], [])
    monkeypatch.setattr("mooring.scheduler.introspection.explain_client.query", lambda *_: responses)
    assert "the one that runs serves a, b." in on_cluster("explain", "not-ours").out


@pytest.mark.parametrize("name", ["pod/fits", "pods/fits", "default/fits"])
def test_explain_takes_names_as_kubectl_prints_them(up: Running, on_cluster: Mooring, name: str):
    result = on_cluster("explain", name)
    assert (result.code, result.out.splitlines()[0].startswith("Pod default/fits ")) == (0, True)


@pytest.mark.parametrize("arguments", [("nodes.v1/web",), ("shop/web", "-n", "default")])
def test_explain_refuses_what_is_no_pod(up: Running, on_cluster: Mooring, arguments: tuple[str, ...]):
    result = on_cluster("explain", *arguments)
    assert result.code == 2
    assert "is no pod; name a pod as NAME, NAMESPACE/NAME or pod/NAME." in result.err


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (("deploy/web",), "Deployment"),
        (("deployment.apps/web",), "Deployment"),
        (("statefulset/web",), "StatefulSet"),
        (("Job/web",), "Job"),
        (("rs/web", "-n", "shop"), "ReplicaSet"),
    ],
)
def test_explain_of_an_owner_that_is_not_there(up: Running, on_cluster: Mooring, arguments: tuple[str, ...], kind: str):
    result = on_cluster("explain", *arguments)
    assert result.code == 2
    assert f'there is no {kind} "web" in namespace "{"shop" if "-n" in arguments else "default"}".' in result.err


def test_explain_shows_that_evicting_pods_of_a_small_node_would_not_help(up: Running, on_cluster: Mooring):
    up.program.mentions('"Unable to schedule pod; no fit; waiting"')
    assert (
        "NodeResourcesFit: Insufficient cpu, even with all pods there evicted\n" in on_cluster("explain", "too-big").out
    )


def test_explain_of_an_unknown_pod_names_it_and_the_namespace(up: Running, on_cluster: Mooring):
    result = on_cluster("explain", "missing", "--namespace", "shop")
    assert result.code == 2
    assert 'there is no pod "missing" in namespace "shop"' in result.err


NO_NODES = {
    "an empty file": "",
    "pods alone": "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: c, image: pause}]}}",
}


@pytest.mark.parametrize("text", NO_NODES.values(), ids=NO_NODES.keys())
def test_a_cluster_file_without_nodes_is_reported_in_one_line(home: Path, text: str):
    (home / "cluster.yaml").write_text(text, encoding="utf-8")
    with Program("up", "--cluster=cluster.yaml", home=home) as program:
        program.ready()
        line = program.mentions("cluster.yaml has no nodes")
        assert program.end() == 0
    assert line.endswith("A SimulatedNodes document in the file makes some.")


@linux_only
def test_ctrl_c_ends_up_and_its_cluster(home: Path):
    with Program("up", "--nodes=1", home=home) as program:
        program.ready()
        children = program.children()
        assert len(children) == 1
        assert program.end(signal.SIGINT) == 0
        until_gone(children[0])
        assert not (home / "mooring.kubeconfig").exists()
        assert "Traceback" not in program.written()


@linux_only
def test_the_cluster_ends_even_if_up_is_killed(home: Path):
    with Program("up", "--nodes=1", home=home) as program:
        program.ready()
        children = program.children()
        assert program.end(signal.SIGKILL) == -signal.SIGKILL
        for child in children:
            until_gone(child)
        assert not (home / "mooring.kubeconfig").exists()


@linux_only
def test_a_cluster_that_dies_ends_up_with_a_fault(home: Path):
    with Program("up", "--nodes=1", home=home) as program:
        program.ready()
        (child,) = program.children()
        os.kill(child, signal.SIGKILL)
        assert program.ended() == 1
        assert "Error: the embedded cluster ended unexpectedly (exit code -9)." in program.err
        assert not (home / "mooring.kubeconfig").exists()


def test_cluster_and_run_are_two_programs_and_each_ends_on_its_signal(home: Path):
    (home / "c.yaml").write_text(CLUSTER, encoding="utf-8")
    with Program("cluster", "--cluster=c.yaml", "--write-kubeconfig=dev.kubeconfig", home=home) as cluster:
        assert cluster.ready().startswith("Ready: 2 simulated nodes on https://127.0.0.1:")
        flags = ["--kubeconfig=dev.kubeconfig", "-v=2", "--logging-format=json", "--leader-elect=false"]
        with Program("run", *flags, home=home) as run:
            run.ready()
            line = json.loads(run.mentions("Successfully bound pod to node"))
            assert (line["pod"], line["node"], line["feasibleNodes"]) == ("default/fits", "big", 2)
            assert line["level"] == "info"
            assert run.end(signal.SIGTERM) == 0
            assert all(json.loads(line)["v"] <= 2 for line in run.err)
        assert cluster.end(signal.SIGINT) == 0
        assert not (home / "dev.kubeconfig").exists()
        assert cluster.err == []


def test_a_scaffolded_plugin_schedules_with_its_own_configuration(home: Path, mooring: Mooring):
    mooring("plugin", "new", "HeadRoom", "--into", str(home))
    labelled = CLUSTER.replace("{name: small}", "{name: small, labels: {head-room: '7'}}")
    (home / "c.yaml").write_text(labelled.replace("another-scheduler", "head-room"), encoding="utf-8")
    options = ["--plugins=head_room.py", "--config=scheduler.yaml", "--cluster=c.yaml", "-v=2"]
    with Program("up", *options, home=home) as program:
        assert program.ready().startswith("Ready: scheduling for head-room on ")
        bound = program.mentions('"Successfully bound pod to node" pod="default/not-ours"')
        assert 'node="small"' in bound
        assert program.end() == 0


@pytest.mark.parametrize("command", ["up", "cluster"])
def test_a_second_cluster_does_not_take_the_kubeconfig_of_one_that_runs(home: Path, command: str):
    file = home / "mooring.kubeconfig"
    with Program("up", "--nodes=1", home=home) as first:
        first.ready()
        text = file.read_text(encoding="utf-8")
        with Program(command, "--nodes=2", home=home) as second:
            assert second.ended() == 2
            assert "mooring.kubeconfig is the kubeconfig of another embedded cluster" in second.written()
            assert f"which is running (process {first.process.pid})" in second.written()
            assert "--write-kubeconfig mooring-2.kubeconfig" in second.written()
        assert file.read_text(encoding="utf-8") == text
        with Program(command, "--nodes=2", "--write-kubeconfig=mooring-2.kubeconfig", home=home) as second:
            second.ready()
            assert second.end() == 0
        assert file.read_text(encoding="utf-8") == text
        assert first.end() == 0
    assert list(home.glob("*.kubeconfig")) == []


@linux_only
def test_the_kubeconfig_of_a_cluster_that_was_killed_is_replaced(home: Path):
    file = home / "mooring.kubeconfig"
    with Program("cluster", "--nodes=1", home=home) as first:
        first.ready()
        first.end(signal.SIGKILL)
    left = file.read_text(encoding="utf-8")
    with Program("cluster", "--nodes=1", home=home) as second:
        second.ready()
        assert file.read_text(encoding="utf-8") != left
        assert second.end() == 0
    assert not file.exists()


def test_a_cluster_leaves_a_kubeconfig_that_was_put_in_the_place_of_its_own(home: Path):
    with Program("cluster", "--nodes=1", home=home) as cluster:
        cluster.ready()
        (home / "mooring.kubeconfig").write_text("current-context: mooring\n", encoding="utf-8")
        assert cluster.end() == 0
    assert (home / "mooring.kubeconfig").exists()
