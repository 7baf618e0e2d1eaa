"""Objects of every kind as a real cluster has them: restored, decided on, and changed by clients as any others.

`tests/data/apiserver/real_cluster.jsonl` was recorded from kube-apiserver v1.37.1 with two kubelets, containerd and
kube-controller-manager, one object a line, as `kubectl get --raw` prints them. Names of the machine, certificates and
digests are replaced.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mooring.apiserver import EmbeddedApiServer
from mooring.apiserver.documents import copied
from mooring.config import default_configuration
from mooring.framework import FeatureGates
from mooring.plugins.catalogue import catalogue
from mooring.simulator import Cluster, Workload, capacity, drain_check, fit, simulate
from mooring.snapshots.kinds import SAVED
from mooring.testing import a_pod
from mooring.why import Recomputation, recomputed, why_not

Document = dict[str, Any]
RECORDED = Path(__file__).parents[1] / "data" / "apiserver" / "real_cluster.jsonl"
DOCUMENTS: list[Document] = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
GATED = {("scheduling.k8s.io/v1alpha2", "PodGroup"), ("scheduling.k8s.io/v1alpha2", "Workload")}


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """As `kubectl get -o json` writes it."""
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": DOCUMENTS}), encoding="utf-8")
    return Cluster.read(file)


def test_every_kind_of_a_snapshot_was_recorded():
    recorded = {(document["apiVersion"], document["kind"]) for document in DOCUMENTS}
    assert {saved.key for saved in SAVED} - GATED <= recorded
    assert [document["spec"] for document in DOCUMENTS if document["kind"] == "CSINode"] == [{"drivers": None}] * 2


def test_all_of_it_is_restored_and_nothing_of_it_is_unusual():
    server = EmbeddedApiServer()
    restored = server.restore(DOCUMENTS)
    assert (restored.problems, restored.unusual) == ([], [])
    assert restored.objects == len(DOCUMENTS) - sum(restored.unserved.values())
    assert set(restored.unserved) == {
        "apiregistration.k8s.io/v1 APIService",
        "certificates.k8s.io/v1 ClusterTrustBundle",
        "flowcontrol.apiserver.k8s.io/v1 FlowSchema",
        "flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration",
        "networking.k8s.io/v1 IPAddress",
        "networking.k8s.io/v1 ServiceCIDR",
    }


@pytest.mark.parametrize("status", [False, True], ids=["object", "status"])
def test_clients_can_change_each_of_them(status: bool):
    server = EmbeddedApiServer()
    server.restore(DOCUMENTS)

    def labelled(document: Document) -> Document:
        changed: Document = copied(document)
        changed["metadata"].setdefault("labels", {})["changed"] = "yes"
        return changed

    for row in server.registry.table:
        for document in server.registry.store.list(row.storage) if "update" in row.verbs else ():
            metadata = document["metadata"]
            server.registry.update(row, metadata.get("namespace", ""), metadata["name"], labelled, status=status)


DECISIONS: dict[str, Callable[[Cluster], bool]] = {
    "fit": lambda cluster: fit(cluster, a_pod("new", cpu="100m")).fits == 36,
    "capacity": lambda cluster: capacity(cluster, Workload([]), ["cpu=96,memory=1Gi"], pending=True).pods == 2,
    "drain-check": lambda cluster: not drain_check(cluster, ["node-2"], delete_emptydir_data=True).pending,
    "simulate": lambda cluster: [pod.name for pod in simulate(cluster, []).pending] == ["gated", "huge"],
}


@pytest.mark.parametrize("decide", DECISIONS.values(), ids=DECISIONS.keys())
def test_what_decides_on_a_copy_of_a_cluster_decides_on_it(cluster: Cluster, decide: Callable[[Cluster], bool]):
    assert decide(cluster)


def test_its_pods_are_explained(cluster: Cluster):
    registry = catalogue()
    [huge] = [pod for pod in cluster.pods if pod.name == "huge"]
    with Recomputation(cluster, default_configuration(registry), registry, FeatureGates()) as recomputation:
        assert recomputed(recomputation, huge)["decision"]["message"].startswith("0/2 nodes are available")
        assert why_not(recomputation, huge, "node-1")["node"] == "node-1"
