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
    assert [line.split()[0] for line in shop.out("rollout", "history", "sts/web").splitlines()[2:] if line] == [
        "1",
        "2",
    ]
    assert "nginx:1.27" in shop.out("rollout", "history", "sts/web", "--revision=1")

    shop.run("rollout", "undo", "sts/web")
    shop.run("rollout", "status", "sts/web", "--timeout=60s")
    assert shop.out("get", "pods", "-o", image).split() == ["nginx:1.27"] * 3
    assert [line.split()[0] for line in shop.out("rollout", "history", "sts/web").splitlines()[2:] if line] == [
        "2",
        "3",
    ]

    shop.run("scale", "sts/web", "--replicas=1")
    shop.run("wait", "--for=delete", "pod/web-1", "--timeout=60s")
    assert [row["NAME"] for row in shop.rows("get", "pods")] == ["web-0"]
