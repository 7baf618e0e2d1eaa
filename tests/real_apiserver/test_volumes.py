"""Claims that wait for a pod, on a real API server: with kube-scheduler's rights, and under its validation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.real_apiserver.cluster import Cluster

CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
WAIT = "WaitForFirstConsumer"


@pytest.fixture
def storage(cluster: Cluster) -> Iterator[Cluster]:
    """Two nodes, a volume controller and a provisioner."""
    yield from with_nodes(cluster, "--controllers")


@pytest.fixture
def no_provisioner(cluster: Cluster) -> Iterator[Cluster]:
    """Two nodes, and no controller for claims."""
    yield from with_nodes(cluster)


def with_nodes(cluster: Cluster, *flags: str) -> Iterator[Cluster]:
    """Objects that remain are removed, for no controller does it."""
    cluster.nodes(2, *flags)
    yield cluster
    cluster.__exit__()
    for path in (CLAIMS, VOLUMES, CLASSES):
        for each in cluster.api.items(path):
            one = f"{path}/{each['metadata']['name']}"
            cluster.api.merge(one, {"metadata": {"finalizers": None}})
            cluster.api.delete(one)


def a_class(cluster: Cluster, provisioner: str, mode: str = WAIT) -> None:
    body = {"metadata": {"name": "disks"}, "provisioner": provisioner, "volumeBindingMode": mode}
    cluster.api.create(CLASSES, body)


def a_claim(cluster: Cluster, name: str) -> None:
    spec = {
        "storageClassName": "disks",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    cluster.api.create(CLAIMS, {"metadata": {"name": name}, "spec": spec})


def a_pod(cluster: Cluster, name: str) -> None:
    """A pod with the claim of its name."""
    a_claim(cluster, name)
    cluster.pod(name, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": name}}])


def the_claim(cluster: Cluster, name: str) -> dict[str, Any]:
    claim: dict[str, Any] = cluster.api.get(f"{CLAIMS}/{name}")
    return claim


def test_a_volume_is_made_where_the_pod_goes(storage: Cluster):
    storage.scheduler()
    a_class(storage, "disks.example.com")
    a_pod(storage, "web")
    node = storage.running("web")["spec"]["nodeName"]
    claim = the_claim(storage, "web")
    assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == node
    assert claim["status"]["phase"] == "Bound"


def test_a_free_volume_goes_to_one_of_two_pods(storage: Cluster):
    storage.scheduler()
    a_class(storage, "kubernetes.io/no-provisioner")
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-2"]}
    spec = {
        "capacity": {"storage": "2Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "disks",
        "local": {"path": "/mnt"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
    }
    storage.api.create(VOLUMES, {"metadata": {"name": "disk"}, "spec": spec})
    for name in ("first", "second"):
        a_pod(storage, name)

    def with_a_node() -> list[dict[str, Any]]:
        return [pod for pod in storage.pods() if pod["spec"].get("nodeName")]

    [winner] = storage.until(with_a_node, what="a pod with the volume")
    assert winner["spec"]["nodeName"] == "node-2"
    [loser] = {"first", "second"} - {winner["metadata"]["name"]}
    storage.until(
        lambda: "didn't find available persistent volumes to bind" in storage.refused(loser)["message"],
        what="the other to be rejected",
    )
    claim = the_claim(storage, winner["metadata"]["name"])
    volume = storage.api.get(f"{VOLUMES}/disk")
    assert volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
    assert volume["spec"]["local"] == {"path": "/mnt"}
    assert [pod["metadata"]["name"] for pod in with_a_node()] == [winner["metadata"]["name"]]


def test_a_pod_waits_for_a_claim_with_immediate_binding(storage: Cluster):
    storage.scheduler()
    a_pod(storage, "web")
    why = storage.refused("web")["message"]
    assert "pod has unbound immediate PersistentVolumeClaims" in why
    a_class(storage, "disks.example.com", "Immediate")
    storage.running("web")
    assert the_claim(storage, "web")["status"]["phase"] == "Bound"


def test_an_ephemeral_volume_lives_with_its_pod(storage: Cluster):
    storage.scheduler()
    a_class(storage, "disks.example.com")
    spec = {
        "storageClassName": "disks",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    storage.pod("web", volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}])
    node = storage.running("web")["spec"]["nodeName"]
    claim = the_claim(storage, "web-scratch")
    assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == node
    assert claim["metadata"]["ownerReferences"][0]["name"] == "web"


def test_a_pod_is_retried_while_no_provisioner_responds(no_provisioner: Cluster):
    cluster = no_provisioner
    impatient = {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 2}}
    cluster.scheduler(
        cluster.configuration(profiles=[{"schedulerName": "default-scheduler", "pluginConfig": [impatient]}])
    )
    a_class(cluster, "slow.example.com")
    a_pod(cluster, "web")
    message = cluster.refused("web", "SchedulerError")["message"]
    assert "binding volumes: context deadline exceeded" in message
    # One that comes late still finds the pod trying.
    cluster.nodes(0, "--controllers")
    cluster.running("web")
