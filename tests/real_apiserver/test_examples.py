"""The five example systems on a real API server with RBAC: the steps of each README, and its other statements.

They have a control plane of their own: what they install stays, for no controller of namespaces would remove it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.programs import Program, private_home
from tests.real_apiserver.cluster import PODS, Cluster
from tests.real_apiserver.control_plane import ControlPlane, debian_program
from tests.real_apiserver.deployments import end_namespace, kubectl
from tests.real_apiserver.real_walk import account_kubeconfig, walked_for_real
from tests.real_kubectl.walkthrough import ROOT

NODE_CRD, RANDOM = ROOT / "examples" / "node-crd-resource-fit", ROOT / "examples" / "random-scheduler"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
KIND = "clusterscopedresources.scheduling.sigs.k8s.io"
READERS = "readers-of-resources"


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    with private_home() as folder, ControlPlane(folder) as running:
        yield running


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Iterator[Cluster]:
    """Afterwards nothing is left that controllers of another test would act for."""
    with private_home() as home, Cluster(control_plane, home) as empty:
        yield empty
        empty.wipe()
        kubectl(empty, "delete", "--wait=false", "--ignore-not-found", "-f", str(RANDOM / "from-scratch.yaml"))
        end_namespace(empty, "random-scheduler")
        for kind in ("clusterroles", "clusterrolebindings"):
            empty.api.delete_if_there(f"{RBAC}/{kind}/{READERS}")
        empty.api.delete_if_there(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{KIND}")


def allow_reading(cluster: Cluster) -> None:
    """The rule that NodeCRDResourceFit needs beside kube-scheduler's rights."""
    plural, _, group = KIND.partition(".")
    rule = {"apiGroups": [group], "resources": [plural], "verbs": ["list", "watch"]}
    cluster.api.create(f"{RBAC}/clusterroles", {"metadata": {"name": READERS}, "rules": [rule]})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": READERS}
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:kube-scheduler"}
    body = {"metadata": {"name": READERS}, "roleRef": role, "subjects": [user]}
    cluster.api.create(f"{RBAC}/clusterrolebindings", body)


@pytest.mark.parametrize("example", ["score-by-label", "sample-filter", "random-scheduler"])
def test_the_walk_is_the_same_on_a_real_server(cluster: Cluster, example: str):
    with walked_for_real(example, cluster.control_plane) as walk:
        assert len(walk.programs) >= 2


def test_the_walk_with_a_custom_resource_is_the_same(cluster: Cluster):
    allow_reading(cluster)
    with walked_for_real("node-crd-resource-fit", cluster.control_plane):
        assert cluster.api.get(f"{PODS}/nginx")["spec"]["nodeName"] in ("node-5", "node-6")


def test_the_walk_with_a_real_prometheus_is_the_same(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    for name in ("prometheus", "prometheus-node-exporter"):
        debian_program(name)
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    # A reader's home is a folder of its own.
    monkeypatch.setenv("MOORING_CACHE", os.environ.get("MOORING_CACHE") or str(caches / "mooring"))
    with walked_for_real("network-traffic", cluster.control_plane):
        assert cluster.api.get(f"{PODS}/web")["spec"]["nodeName"] == "node-3"


def test_a_kind_that_may_not_be_read_is_named_with_the_rule_that_allows_it(cluster: Cluster):
    cluster.nodes(6)
    cluster.kubectl.run("apply", "-f", str(NODE_CRD / "crds.yaml"))
    cluster.kubectl.run("wait", "--for=condition=Established", f"crd/{KIND}", "--timeout=60s")
    cluster.kubectl.run("apply", "-f", str(NODE_CRD / "clusterscopedresources-cr.yaml"))
    cluster.scheduler(f"--config={NODE_CRD / 'scheduler-config.yaml'}", "-v=5")
    cluster.kubectl.run("apply", "-f", str(NODE_CRD / "simple-pod.yaml"))
    message = cluster.refused("nginx")["message"]
    assert "NodeCRDResourceFit" in message
    assert KIND in message
    plural, _, group = KIND.partition(".")
    rule = f'{{apiGroups: ["{group}"], resources: ["{plural}"], verbs: ["list", "watch"]}}'
    assert f"this RBAC rule would allow it: {rule}" in message
    allow_reading(cluster)
    assert cluster.bound("nginx") in ("node-5", "node-6")


def test_the_scheduler_from_scratch_needs_no_more_than_its_role(cluster: Cluster):
    cluster.kubectl.in_namespace("random-scheduler").run("apply", "-f", str(RANDOM / "from-scratch.yaml"))
    kubeconfig = account_kubeconfig(
        cluster.control_plane, "random-scheduler", "random-scheduler", cluster.home / "account"
    )
    cluster.nodes(3)
    program = (sys.executable, str(RANDOM / "random_scheduler.py"))
    with Program(f"--kubeconfig={kubeconfig}", "--seed=7", home=cluster.home, program=program) as scheduler:
        cluster.kubectl.run("apply", "-f", str(RANDOM / "pod.yaml"))
        node = cluster.running("nginx")["spec"]["nodeName"]
        message = cluster.event("nginx", "Scheduled")["message"]
        assert message == f"pod [default/nginx] is successfully scheduled to node {node}"
        assert scheduler.end() == 0, scheduler.written()
    assert "Traceback" not in scheduler.written()
