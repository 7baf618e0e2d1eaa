"""One pod and one scheduler on a real API server: its node, its events, and what requeues it."""

from __future__ import annotations

import json

from tests.real_apiserver.cluster import PODS, Cluster


def test_a_pod_is_scheduled_and_runs(cluster: Cluster):
    cluster.nodes(2)
    scheduler = cluster.scheduler()
    created = cluster.pod("web")
    pod = cluster.running("web")
    node = pod["spec"]["nodeName"]
    assert node in ("node-1", "node-2")

    event = cluster.event("web", "Scheduled")
    assert event["message"] == f"Successfully assigned default/web to {node}"
    assert event["reportingComponent"] == "default-scheduler"
    assert event["involvedObject"]["uid"] == created["metadata"]["uid"]
    assert [row["NODE"] for row in cluster.kubectl.rows("get", "pods", "--output=wide")] == [node]
    assert scheduler.end() == 0, scheduler.written()
    assert "Traceback" not in scheduler.written()


def test_a_pod_that_fits_nowhere_gets_the_reason_and_a_label_requeues_it(cluster: Cluster):
    cluster.nodes(2)
    cluster.scheduler()
    cluster.pod("picky", nodeSelector={"disk": "ssd"})
    condition = cluster.refused("picky")
    why = (
        "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector. "
        "no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    assert condition["message"] == why
    event = cluster.event("picky", "FailedScheduling")
    assert (event["type"], event["message"]) == ("Warning", why)

    cluster.kubectl.run("label", "node", "node-2", "disk=ssd")
    assert cluster.bound("picky") == "node-2"


def test_a_gated_pod_waits_until_its_gates_are_gone(cluster: Cluster):
    cluster.nodes(1)
    cluster.scheduler()
    cluster.pod("gated", schedulingGates=[{"name": "example.com/quota"}])
    # The server itself writes the condition; the scheduler adds nothing, and a pod created later overtakes.
    assert (
        cluster.refused("gated", "SchedulingGated")["message"]
        == "Scheduling is blocked due to non-empty scheduling gates"
    )
    cluster.pod("free")
    assert cluster.bound("free") == "node-1"
    gated = cluster.api.get(f"{PODS}/gated")
    assert "nodeName" not in gated["spec"]
    assert not cluster.events("gated", "FailedScheduling")

    cluster.api.merge(f"{PODS}/gated", {"spec": {"schedulingGates": None}})
    assert cluster.bound("gated") == "node-1"


def test_an_uncordoned_node_wakes_the_pod(cluster: Cluster):
    cluster.nodes(1)
    cluster.kubectl.run("cordon", "node-1")
    cluster.scheduler()
    cluster.pod("web")
    assert "1 node(s) were unschedulable" in cluster.refused("web")["message"]
    cluster.kubectl.run("uncordon", "node-1")
    assert cluster.bound("web") == "node-1"


def test_a_pod_of_another_scheduler_is_left_alone(cluster: Cluster):
    cluster.nodes(1)
    cluster.scheduler()
    cluster.pod("theirs", schedulerName="other")
    cluster.pod("ours")
    cluster.bound("ours")
    assert "nodeName" not in cluster.api.get(f"{PODS}/theirs")["spec"]
    assert not cluster.api.get(f"{PODS}/theirs")["status"].get("conditions")


def test_a_pod_that_shrinks_makes_room(cluster: Cluster):
    cluster.nodes(1)
    cluster.scheduler()
    cluster.pod("big", cpu="3")
    cluster.running("big")
    cluster.pod("web", cpu="2")
    assert "1 Insufficient cpu" in cluster.refused("web")["message"]
    smaller = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}}
    cluster.kubectl.run("patch", "pod", "big", "--subresource=resize", f"--patch={json.dumps(smaller)}")
    # Until its kubelet has done it, the pod still has what it had.
    [container] = cluster.api.get(f"{PODS}/big")["status"]["containerStatuses"]
    container["allocatedResources"]["cpu"] = container["resources"]["requests"]["cpu"] = "1"
    cluster.api.merge(f"{PODS}/big/status", {"status": {"containerStatuses": [container]}})
    assert cluster.bound("web") == "node-1"


def test_who_waits_longest_does_not_go_first_but_who_matters_most(cluster: Cluster):
    for name, value in (("low", 10), ("high", 1000)):
        cluster.priority(name, value, preemptionPolicy="Never")
    cluster.nodes(1)
    for number in range(3):
        cluster.pod(f"early-{number}", cpu="1", priorityClassName="low")
    for number in range(3):
        cluster.pod(f"late-{number}", cpu="1", priorityClassName="high")
    cluster.scheduler()
    for number in range(3):
        cluster.bound(f"late-{number}")
    # Room is left for one more, the oldest of the others.
    assert cluster.bound("early-0") == "node-1"
    for name in ("early-1", "early-2"):
        assert "1 Insufficient cpu" in cluster.refused(name)["message"]


def test_a_tainted_node_runs_pods_that_tolerate_it_and_all_pods_once_the_taint_is_removed(cluster: Cluster):
    cluster.nodes(1)
    cluster.kubectl.run("taint", "node", "node-1", "dedicated=batch:NoSchedule")
    cluster.scheduler()
    cluster.pod("web")
    assert "1 node(s) had untolerated taint(s)" in cluster.refused("web")["message"]
    cluster.pod("batch", tolerations=[{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}])
    assert cluster.bound("batch") == "node-1"
    assert not cluster.api.get(f"{PODS}/web")["spec"].get("nodeName")
    cluster.kubectl.run("taint", "node", "node-1", "dedicated-")
    assert cluster.bound("web") == "node-1"


def test_a_pod_that_its_kubelet_turns_away_makes_room(cluster: Cluster):
    cluster.nodes(1)
    cluster.scheduler()
    cluster.pod("big", cpu="4")
    cluster.running("big")
    cluster.pod("web", cpu="4")
    assert "1 Insufficient cpu" in cluster.refused("web")["message"]
    cluster.api.merge(f"{PODS}/big/status", {"status": {"phase": "Failed", "reason": "OutOfcpu"}})
    assert cluster.bound("web") == "node-1"


def test_each_profile_takes_its_own_pods(cluster: Cluster):
    cluster.nodes(2)
    cluster.kubectl.run("label", "node", "node-2", "score-by-label=5")
    only_labels = {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "ScoreByLabel"}]}}
    cluster.scheduler(
        cluster.configuration(
            profiles=[{"schedulerName": "plain"}, {"schedulerName": "labels", "plugins": only_labels}],
        )
    )
    cluster.pod("default")
    for number in range(2):
        cluster.pod(f"labels-{number}", schedulerName="labels", cpu="2")
        assert cluster.bound(f"labels-{number}") == "node-2"
    cluster.pod("plain", schedulerName="plain")
    assert cluster.bound("plain") == "node-1"  # the emptier one
    assert cluster.event("plain", "Scheduled")["reportingComponent"] == "plain"
    assert not cluster.api.get(f"{PODS}/default")["spec"].get("nodeName")
