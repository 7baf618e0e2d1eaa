"""The scheduler from scratch as a process of its own, and the same as a plugin, on real kubectl."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.programs import Program, private_home
from tests.real_kubectl.conftest import Kubectl, Up, mooring_up, real_program

RANDOM = Path(__file__).parents[2] / "examples" / "random-scheduler"


@pytest.fixture
def cluster() -> Iterator[Kubectl]:
    """Simulated nodes and no scheduler at all."""
    real_program("kubectl")
    with private_home() as home, Program("cluster", "--nodes=3", "--write-kubeconfig=kubeconfig", home=home) as program:
        program.ready()
        yield Kubectl(home / "kubeconfig")
        assert program.end() == 0, program.written()


def random_scheduler(kubectl: Kubectl, *options: str) -> Program:
    file = [str(RANDOM / "random_scheduler.py")]
    home = kubectl.kubeconfig.parent
    return Program(f"--kubeconfig={kubectl.kubeconfig}", *options, home=home, program=(sys.executable, *file))


def test_a_pod_runs_where_the_scheduler_from_scratch_put_it(cluster: Kubectl):
    with random_scheduler(cluster, "--seed=7") as scheduler:
        for node in ("node-1", "node-2", "node-3"):
            scheduler.mentions(f"New node is added. {node}")
        cluster.run("apply", "-f", str(RANDOM / "pod.yaml"))
        cluster.run("wait", "--for=condition=Ready", "pod/nginx", "--timeout=60s")
        (row,) = cluster.rows("get", "pod", "nginx")
        assert (row["READY"], row["STATUS"]) == ("1/1", "Running")

        node = cluster.out("get", "pod", "nginx", "-o", "jsonpath={.spec.nodeName}")
        message = f"pod [default/nginx] is successfully scheduled to node {node}"
        for line in (
            "found a pod to schedule: [default/nginx]",
            "calculated priorities: {",
            f"node {node} is chosen for Pod [default/nginx]",
            message,
        ):
            scheduler.mentions(line)
        (event,) = [event for event in cluster.events("nginx", "Scheduled") if event["reason"] == "Scheduled"]
        uid = cluster.out("get", "pod", "nginx", "-o", "jsonpath={.metadata.uid}")
        assert event["apiVersion"] == "v1"
        assert event["metadata"]["generateName"] == "nginx-"
        assert event["involvedObject"] == {"kind": "Pod", "namespace": "default", "name": "nginx", "uid": uid}
        assert (event["type"], event["count"], event["message"]) == ("Normal", 1, message)
        assert event["source"] == {"component": "random-scheduler"}
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", event["firstTimestamp"])
        assert event["lastTimestamp"] == event["firstTimestamp"]
        assert re.search(
            rf"Normal +Scheduled +\S+ +random-scheduler +{re.escape(message)}", cluster.out("describe", "pod", "nginx")
        )
        assert scheduler.end() == 0
    assert "Traceback" not in scheduler.written()
    assert scheduler.err[-1].endswith("Stopped")


def test_many_pods_are_bound_however_often_no_node_passes(cluster: Kubectl):
    with random_scheduler(cluster, "--seed=1") as scheduler:
        template = '{"spec": {"template": {"spec": {"schedulerName": "random-scheduler"}}}}'
        cluster.run("create", "deployment", "web", "--image=nginx", "--replicas=0")
        cluster.run("patch", "deployment", "web", "-p", template)
        cluster.run("scale", "deployment/web", "--replicas=20")
        cluster.run("rollout", "status", "deployment/web", "--timeout=60s")
        # On three nodes one draw in eight finds none; with this seed, some of the first twenty do.
        scheduler.mentions("trying again in 1 s")
        assert len({row["NODE"] for row in cluster.rows("get", "pods", "-o", "wide")}) == 3
        assert scheduler.end() == 0


def test_the_same_as_a_plugin():
    config = (RANDOM / "random-profile.yaml").read_text(encoding="utf-8")
    with mooring_up("--nodes=3", "--config=config.yaml", "-v=3", files={"config.yaml": config}) as up:
        kubectl: Up = up
        kubectl.run("apply", "-f", str(RANDOM / "pod.yaml"))
        kubectl.run("wait", "--for=condition=Ready", "pod/nginx", "--timeout=60s")
        (row,) = kubectl.rows("get", "pod", "nginx")
        assert (row["READY"], row["STATUS"]) == ("1/1", "Running")
        assert kubectl.explain("nginx").startswith("Pod default/nginx runs on node-")
