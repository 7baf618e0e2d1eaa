"""The five examples on a real API server: their manifests are applied, and the scheduler runs as its pod specifies.

The command line, the mounts and the user are the pod's; `containers` runs them without a container engine.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.programs import Program
from tests.examples.conftest import EXAMPLES
from tests.ports import free_ports
from tests.real_apiserver.cluster import PODS, Cluster, Document
from tests.real_apiserver.containers import Container, can_contain
from tests.real_apiserver.control_plane import SCHEDULER, debian_program
from tests.real_apiserver.deployments import Deployment, documents_in, kubectl, new_folder, own_port

NODES = "/api/v1/nodes"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KIND = "clusterscopedresources.scheduling.sigs.k8s.io"


def text_of(example: str, file: str) -> str:
    return (EXAMPLES / example / file).read_text(encoding="utf-8")


def deployed(cluster: Cluster, root: Path, example: str, manifest: str) -> Deployment:
    return Deployment(cluster, text_of(example, manifest), root)


def label(cluster: Cluster, node: str, **labels: str) -> None:
    cluster.api.merge(
        f"{NODES}/{node}", {"metadata": {"labels": {key.replace("_", "-"): labels[key] for key in labels}}}
    )


def test_score_by_label(cluster: Cluster, image_root: Path):
    cluster.nodes(3)
    for node, number in (("node-1", "1"), ("node-2", "5"), ("node-3", "10")):
        label(cluster, node, score_by_label=number)
    with deployed(cluster, image_root, "score-by-label", "install.yaml") as deployment:
        scheduler = deployment.start(*own_port())
        scheduler.ready()
        kubectl(cluster, "create", "-f", "-", input=text_of("score-by-label", "testpod.yaml"))
        assert cluster.bound("testpod") == "node-3"
        scheduler.mentions("[ScoreByLabel] Nodes final score: [{node-1 10} {node-2 50} {node-3 100}]")
        if can_contain():
            explained = deployment.container.run("mooring", "explain", "testpod", "--namespace=default")
            assert "node-3 was chosen: 3 of 3 nodes were feasible" in explained.written()
        assert scheduler.end() == 0, scheduler.written()


def test_sample_filter(cluster: Cluster, image_root: Path):
    cluster.nodes_of(documents_in(text_of("sample-filter", "cluster.yaml")))
    with deployed(cluster, image_root, "sample-filter", "sample-scheduler.yaml") as deployment:
        scheduler = deployment.start(*own_port())
        scheduler.ready()
        # No controller makes the Deployment's pod here.
        cluster.pod("test-scheduler", schedulerName="sample-scheduler")
        assert "0/2 nodes are available" in cluster.refused("test-scheduler")["message"]
        label(cluster, "gpu02", cpu="true")
        assert cluster.bound("test-scheduler") == "gpu02"
        assert scheduler.end() == 0, scheduler.written()


def test_random_scheduler_as_a_profile(cluster: Cluster, image_root: Path):
    cluster.nodes(3)
    with deployed(cluster, image_root, "random-scheduler", "install.yaml") as deployment:
        scheduler = deployment.start(*own_port())
        scheduler.ready()
        kubectl(cluster, "create", "-f", "-", input=text_of("random-scheduler", "pod.yaml"))
        assert cluster.bound("nginx")
        assert scheduler.end() == 0, scheduler.written()


def test_random_scheduler_from_scratch(cluster: Cluster, image_root: Path):
    cluster.nodes(3)
    program = {"random-scheduler": {"random_scheduler.py": text_of("random-scheduler", "random_scheduler.py")}}
    with deployed(cluster, image_root, "random-scheduler", "from-scratch.yaml") as deployment:
        scheduler = deployment.start(config_maps=program)
        scheduler.mentions("Start a scheduler")
        kubectl(cluster, "create", "-f", "-", input=text_of("random-scheduler", "pod.yaml"))
        node = cluster.bound("nginx")
        scheduler.mentions(f"pod [default/nginx] is successfully scheduled to node {node}")
        assert cluster.event("nginx", "Scheduled")["source"] == {"component": "random-scheduler"}
        assert scheduler.end() == 0, scheduler.written()


@pytest.fixture
def custom_kind(cluster: Cluster) -> Iterator[None]:
    """The kind of the example, for as long as the test needs it."""
    kubectl(cluster, "apply", "-f", "-", input=text_of("node-crd-resource-fit", "crds.yaml"))
    kubectl(cluster, "wait", "--for=condition=Established", f"crd/{KIND}", "--timeout=60s")
    yield
    cluster.api.delete(f"{DEFINITIONS}/{KIND}")


@pytest.mark.usefixtures("custom_kind")
def test_node_crd_resource_fit(cluster: Cluster, image_root: Path):
    cluster.nodes(6)
    kubectl(cluster, "apply", "-f", "-", input=text_of("node-crd-resource-fit", "clusterscopedresources-cr.yaml"))
    with deployed(cluster, image_root, "node-crd-resource-fit", "install.yaml") as deployment:
        scheduler = deployment.start(*own_port())
        scheduler.ready()
        kubectl(cluster, "create", "-f", "-", input=text_of("node-crd-resource-fit", "simple-pod.yaml"))
        assert cluster.bound("nginx") in ("node-5", "node-6")
        assert scheduler.end() == 0, scheduler.written()


@pytest.fixture
def prometheus(cluster: Cluster) -> Iterator[str]:
    """A real one that has measured less traffic on each later node."""
    for program in ("prometheus", "prometheus-node-exporter"):
        debian_program(program)
    port = free_ports(1)[0]
    script = str(EXAMPLES / "network-traffic" / "traffic.py")
    traffic = ("node-1=1400000000", "node-2=1200000", "node-3=1000")
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cache = os.environ.get("MOORING_CACHE") or caches / "mooring"
    command = ("env", f"MOORING_CACHE={cache}", sys.executable, script)
    with Program(*traffic, f"--port={port}", home=cluster.home, program=command) as running:
        running.mentions("Prometheus is ready")
        yield f"http://127.0.0.1:{port}"


def test_network_traffic_in_place_of_kube_scheduler(cluster: Cluster, image_root: Path, prometheus: str):
    text = text_of("network-traffic", "kube-scheduler.yaml")
    assert "created" in kubectl(cluster, "create", "--dry-run=server", "-f", "-", input=text)
    (pod,) = documents_in(text)
    folder = new_folder(cluster, "static-pod")
    config = folder / "mooring-config.yaml"
    config.write_text(text_of("network-traffic", "networktraffic-config.yaml"), encoding="utf-8")
    kubeconfig = folder / "scheduler.conf"
    kubeconfig.write_text(json.dumps(whole_kubeconfig(cluster)), encoding="utf-8")
    kubeconfig.chmod(0o600)
    container = Container(
        pod["spec"],
        root=image_root,
        folder=folder,
        config_maps={},
        server=("127.0.0.1", cluster.control_plane.port),
        token="",
        ca_pem="",
        namespace="kube-system",
        node={"/etc/kubernetes/scheduler.conf": kubeconfig, "/etc/kubernetes/mooring-config.yaml": config},
        # The cluster's DNS would lead there.
        environment={"http_proxy": prometheus},
    )
    cluster.nodes(3)
    with container.start(*own_port()) as scheduler:
        scheduler.ready()
        scheduler.mentions("Prometheus responds")
        kubectl(cluster, "create", "-f", "-", input=text_of("network-traffic", "pod.yaml"))
        assert cluster.bound("web") == "node-3"
        assert scheduler.end() == 0, scheduler.written()
    assert cluster.api.get(f"{PODS}/web")["spec"]["nodeName"] == "node-3"


def whole_kubeconfig(cluster: Cluster) -> Document:
    """As kubeadm writes scheduler.conf: with everything in it, and no path."""
    path = cluster.control_plane.kubeconfig(SCHEDULER)
    document: Document = json.loads(path.read_text(encoding="utf-8"))
    (entry,) = document["clusters"]
    del entry["cluster"]["certificate-authority"]
    pem = cluster.control_plane.ca_pem.encode()
    entry["cluster"]["certificate-authority-data"] = base64.b64encode(pem).decode()
    return document
