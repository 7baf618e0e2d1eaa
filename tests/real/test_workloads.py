"""StatefulSets, DaemonSets and CronJobs under `mooring up`, as kubectl shows and changes them."""

from __future__ import annotations

from tests.real.conftest import Kubectl

STATEFUL_SET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  serviceName: web
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: app, image: "nginx:1.27", volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""

DAEMON_SET = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: app, image: "agent:1"}]}
"""


def revisions(kubectl: Kubectl, workload: str) -> list[str]:
    """The numbers that `kubectl rollout history` lists."""
    return [line.split()[0] for line in kubectl.out("rollout", "history", workload).splitlines()[2:] if line]


def test_a_stateful_set_is_rolled_out_and_back(shop: Kubectl):
    shop.run("apply", "-f", "-", input=STATEFUL_SET)
    told = shop.out("rollout", "status", "sts/web", "--timeout=60s")
    assert "partitioned roll out complete" in told or "statefulset rolling update complete 3 pods" in told
    assert shop.rows("get", "sts", "web")[0]["READY"] == "3/3"
    assert [row["NAME"] for row in shop.rows("get", "pods")] == ["web-0", "web-1", "web-2"]
    assert {row["NAME"]: row["STATUS"] for row in shop.rows("get", "pvc")} == {
        "data-web-0": "Bound",
        "data-web-1": "Bound",
        "data-web-2": "Bound",
    }
    shop.events("web", "SuccessfulCreate")

    shop.run("set", "image", "sts/web", "app=nginx:1.28")
    shop.run("rollout", "status", "sts/web", "--timeout=60s")
    image = "jsonpath={.items[*].spec.containers[0].image}"
    assert shop.out("get", "pods", "-o", image).split() == ["nginx:1.28"] * 3
    assert revisions(shop, "sts/web") == [
        "1",
        "2",
    ]
    assert "nginx:1.27" in shop.out("rollout", "history", "sts/web", "--revision=1")

    shop.run("rollout", "undo", "sts/web")
    shop.run("rollout", "status", "sts/web", "--timeout=60s")
    assert shop.out("get", "pods", "-o", image).split() == ["nginx:1.27"] * 3
    assert revisions(shop, "sts/web") == [
        "2",
        "3",
    ]

    shop.run("scale", "sts/web", "--replicas=1")
    shop.run("wait", "--for=delete", "pod/web-1", "--timeout=60s")
    assert [row["NAME"] for row in shop.rows("get", "pods")] == ["web-0"]


def test_a_daemon_set_has_a_pod_on_every_node_and_is_rolled_out_and_back(shop: Kubectl):
    shop.run("apply", "-f", "-", input=DAEMON_SET)
    assert "successfully rolled out" in shop.out("rollout", "status", "ds/agent", "--timeout=60s")
    row = shop.rows("get", "ds", "agent")[0]
    assert [row[name] for name in ("DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE")] == ["3"] * 5
    placed = shop.json("get", "pods")["items"]
    assert sorted(pod["spec"]["nodeName"] for pod in placed) == ["node-1", "node-2", "node-3"]
    shop.events(placed[0]["metadata"]["name"], "Scheduled")

    shop.run("set", "image", "ds/agent", "app=agent:2")
    shop.run("rollout", "status", "ds/agent", "--timeout=60s")
    assert revisions(shop, "ds/agent") == ["1", "2"]
    shop.run("rollout", "undo", "ds/agent")
    shop.run("rollout", "status", "ds/agent", "--timeout=60s")
    assert {pod["spec"]["containers"][0]["image"] for pod in shop.json("get", "pods")["items"]} == {"agent:1"}
    assert revisions(shop, "ds/agent") == ["2", "3"]
