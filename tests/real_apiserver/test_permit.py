"""Pods that wait for permission with a place reserved: what the API server shows meanwhile, and how it can end."""

from __future__ import annotations

from pathlib import Path

from tests.cli.programs import Program
from tests.real_apiserver.cluster import PODS, Cluster
from tests.real_apiserver.hold import COMPANY, SECONDS

PLUGIN = Path(__file__).with_name("hold.py")


def holding(cluster: Cluster) -> Program:
    profile = {"schedulerName": "default-scheduler", "plugins": {"multiPoint": {"enabled": [{"name": "Hold"}]}}}
    return cluster.scheduler(cluster.configuration(profiles=[profile]), f"--plugins={PLUGIN}")


def nominated(cluster: Cluster, name: str) -> str:
    """Wait until the pod's status names its nominated node; a bound pod has none any more."""

    def look() -> str:
        pod = cluster.api.get(f"{PODS}/{name}")
        assert not pod["spec"].get("nodeName"), f"{name} was bound"
        node: str = pod["status"].get("nominatedNodeName", "")
        return node

    return cluster.until(look, what=f"{name} to be promised a node")


def test_a_waiting_pod_keeps_its_place_and_delays_no_other(cluster: Cluster):
    cluster.nodes(1)
    holding(cluster)
    cluster.pod("first", cpu="2", labels={COMPANY: "wedding"})
    assert nominated(cluster, "first") == "node-1"
    # Others are placed meanwhile, but not where the first is about to go.
    cluster.pod("other")
    assert cluster.bound("other") == "node-1"
    cluster.pod("large", cpu="2")
    assert "1 Insufficient cpu" in cluster.refused("large")["message"]
    assert not cluster.api.get(f"{PODS}/first")["spec"].get("nodeName")

    cluster.pod("second", labels={COMPANY: "wedding"})
    assert {cluster.bound("first"), cluster.bound("second")} == {"node-1"}


def test_who_waits_too_long_gives_its_place_back(cluster: Cluster):
    cluster.nodes(1)
    holding(cluster)
    cluster.pod("lonely", cpu="4", labels={COMPANY: "none", SECONDS: "3"})
    nominated(cluster, "lonely")
    cluster.pod("web", cpu="4")
    message = cluster.event("lonely", "FailedScheduling")["message"]
    assert "1 rejected due to timeout after waiting 3s at plugin Hold" in message
    assert cluster.bound("web") == "node-1"


def test_a_victim_that_waits_is_taken_back_and_stays_alive(cluster: Cluster):
    cluster.priority("low", 10)
    cluster.priority("high", 1000)
    cluster.nodes(1)
    scheduler = holding(cluster)
    batch = cluster.pod("batch", cpu="4", priorityClassName="low", labels={COMPANY: "none", SECONDS: "600"})
    nominated(cluster, "batch")
    shop = cluster.pod("shop", cpu="4", priorityClassName="high")
    assert cluster.bound("shop") == "node-1"
    message = cluster.event("batch", "Preempted")["message"]
    assert message == f"Preempted by pod {shop['metadata']['uid']} on node node-1 (in kube-scheduler memory)."
    cluster.until(
        lambda: "1 Insufficient cpu" in cluster.refused("batch")["message"], what="the victim to be tried again"
    )
    cluster.until(
        lambda: not cluster.api.get(f"{PODS}/batch")["status"].get("nominatedNodeName"), what="no place to be its own"
    )
    now = cluster.api.get(f"{PODS}/batch")
    assert now["metadata"]["uid"] == batch["metadata"]["uid"]
    assert "deletionTimestamp" not in now["metadata"]
    assert scheduler.end() == 0, scheduler.written()
