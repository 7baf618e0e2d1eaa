"""A pod of high priority on a full cluster, as a user of kubectl sees it."""

from __future__ import annotations

from tests.real_kubectl.conftest import mooring_up

A_POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  priorityClassName: %s
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: pause, resources: {requests: {cpu: "%s"}}}]
"""


def test_the_higher_priority_wins_the_node_and_both_pods_get_events():
    with mooring_up("--nodes=1") as up:
        for name, value in (("low", 10), ("high", 1000)):
            up.run("create", "priorityclass", name, f"--value={value}")
        [node] = up.json("get", "nodes")["items"]
        whole = node["status"]["allocatable"]["cpu"]
        up.run("apply", "-f", "-", input=A_POD % ("batch", "low", whole))
        up.run("wait", "--for=condition=Ready", "pod/batch", "--timeout=60s")
        up.run("apply", "-f", "-", input=A_POD % ("shop", "high", whole))
        up.run("wait", "--for=condition=Ready", "pod/shop", "--timeout=60s")

        shop = up.json("get", "pod", "shop")
        assert shop["spec"]["nodeName"] == node["metadata"]["name"]
        assert 'pods "batch" not found' in up.refusal("get", "pod", "batch")
        preempted = next(event for event in up.events("batch", "Preempted") if event["reason"] == "Preempted")
        uid = shop["metadata"]["uid"]
        assert preempted["message"] == f"Preempted by pod {uid} on node {node['metadata']['name']}"

        # A pod that preemption cannot help gets the reason.
        up.run("apply", "-f", "-", input=A_POD % ("late", "high", whole))
        up.events("late", "FailedScheduling")
        up.run("wait", "--for=condition=PodScheduled=False", "pod/late", "--timeout=60s")
        assert "Evicting pods of lower priority would not help:" in up.explain("late")
        [condition] = up.json("get", "pod", "late")["status"]["conditions"]
        assert condition["message"].endswith(
            "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
        )
