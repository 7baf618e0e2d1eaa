"""Preemption: which pods are evicted, which events they get, and which pod is nominated to their node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.real_apiserver.cluster import OURS_ALONE, PODS, Cluster
from tests.real_apiserver.control_plane import SCHEDULER

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


@pytest.fixture
def priorities(cluster: Cluster) -> Iterator[Cluster]:
    cluster.priority("low", 10)
    cluster.priority("high", 1000)
    yield cluster
    cluster.api.delete(BUDGETS)


def test_the_higher_priority_takes_the_place_of_the_lower(priorities: Cluster):
    cluster = priorities
    cluster.nodes(1)
    cluster.scheduler()
    cluster.pod("batch", cpu="4", priorityClassName="low")
    cluster.running("batch")
    shop = cluster.pod("shop", cpu="4", priorityClassName="high")
    assert cluster.running("shop")["spec"]["nodeName"] == "node-1"
    cluster.gone("batch")
    assert (
        cluster.event("batch", "Preempted")["message"] == f"Preempted by pod {shop['metadata']['uid']} on node node-1"
    )

    cluster.pod("late", cpu="4", priorityClassName="high")
    assert cluster.refused("late")["message"] == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_a_victim_gets_its_event_before_it_is_deleted_and_the_place_is_kept(priorities: Cluster):
    """A victim whose finalizer delays its end: its condition and the nomination can be seen meanwhile."""
    cluster = priorities
    cluster.nodes(1)
    cluster.scheduler()
    cluster.pod("batch", cpu="4", finalizers=["example.com/slow"], priorityClassName="low")
    cluster.running("batch")
    cluster.pod("shop", cpu="4", priorityClassName="high")

    def nomination() -> str:
        found: str = cluster.api.get(f"{PODS}/shop").get("status", {}).get("nominatedNodeName", "")
        return found

    assert cluster.until(nomination, what="a nomination") == "node-1"
    cluster.event("batch", "Preempted")
    conditions = {each["type"]: each for each in cluster.api.get(f"{PODS}/batch")["status"]["conditions"]}
    assert conditions["DisruptionTarget"]["status"] == "True"
    assert conditions["DisruptionTarget"]["reason"] == "PreemptionByScheduler"
    assert (
        conditions["DisruptionTarget"]["message"]
        == "default-scheduler: preempting to accommodate a higher priority pod"
    )

    cluster.api.merge(f"{PODS}/batch", {"metadata": {"finalizers": None}})
    assert cluster.bound("shop") == "node-1"


def test_when_a_nominated_pod_goes_its_room_is_anybodys(priorities: Cluster):
    cluster = priorities
    cluster.nodes(1)
    cluster.scheduler()
    cluster.pod("filler", cpu="1", priorityClassName="high")
    cluster.pod("batch", cpu="2", finalizers=["example.com/slow"], priorityClassName="low")
    cluster.running("batch")
    cluster.pod("shop", cpu="3", priorityClassName="high")
    cluster.event("batch", "Preempted")
    # There is room for it, but shop is to have it.
    cluster.pod("small", cpu="1", priorityClassName="low")
    assert "1 Insufficient cpu" in cluster.refused("small")["message"]

    cluster.api.delete(f"{PODS}/shop")
    assert cluster.bound("small") == "node-1"
    cluster.api.merge(f"{PODS}/batch", {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("scheduler", ["mooring", "kube-scheduler"])
def test_a_budget_is_spared_while_there_is_another_way(priorities: Cluster, scheduler: str):
    cluster = priorities
    cluster.nodes(2)
    cluster.api.create(
        BUDGETS,
        {
            "metadata": {"name": "precious"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "precious"}}},
        },
    )
    for number, app in enumerate(("precious", "plain"), start=1):
        name = f"on-node-{number}"
        cluster.pod(name, cpu="4", priorityClassName="low", nodeName=f"node-{number}", labels={"app": app})
        cluster.running(name)
    start = {"mooring": cluster.scheduler, "kube-scheduler": cluster.kube_scheduler}[scheduler]
    start(f"--kubeconfig={cluster.control_plane.kubeconfig(SCHEDULER)}", *OURS_ALONE)

    cluster.pod("first", cpu="4", priorityClassName="high")
    assert cluster.bound("first") == "node-2"
    cluster.gone("on-node-2")
    assert cluster.api.get(f"{PODS}/on-node-1")["status"]["phase"] == "Running"
    # There is no other way: a budget is honoured only where possible.
    cluster.pod("second", cpu="4", priorityClassName="high")
    assert cluster.bound("second") == "node-1"
    cluster.gone("on-node-1")


def test_who_may_not_preempt_waits(priorities: Cluster):
    cluster = priorities
    cluster.nodes(1)
    cluster.scheduler()
    cluster.pod("batch", cpu="4", priorityClassName="low")
    cluster.running("batch")
    cluster.priority("polite", 1000, preemptionPolicy="Never")
    cluster.pod("shop", cpu="4", priorityClassName="polite")
    assert "not eligible due to preemptionPolicy=Never." in cluster.refused("shop")["message"]
    cluster.api.delete(f"{PODS}/batch")
    assert cluster.bound("shop") == "node-1"
