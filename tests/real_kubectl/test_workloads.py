"""StatefulSets, DaemonSets and CronJobs under `mooring up`, as kubectl shows and changes them."""

from __future__ import annotations

from tests.real_kubectl.conftest import Kubectl

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
    printed = shop.out("rollout", "status", "sts/web", "--timeout=60s")
    assert "partitioned roll out complete" in printed or "statefulset rolling update complete 3 pods" in printed
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


CRON_JOB = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: report}
spec:
  schedule: "@every 1s"
  timeZone: Europe/Berlin
  jobTemplate:
    spec:
      template:
        metadata: {annotations: {mooring.dev/run-seconds: "1"}}
        spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}
"""
USUAL_KINDS = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: sts}
spec:
  serviceName: sts
  replicas: 2
  selector: {matchLabels: {app: sts}}
  template:
    metadata: {labels: {app: sts}}
    spec: {containers: [{name: c, image: nginx, volumeMounts: [{name: data, mountPath: /d}]}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: ds}
spec:
  selector: {matchLabels: {app: ds}}
  template: {metadata: {labels: {app: ds}}, spec: {containers: [{name: c, image: nginx}]}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec:
  completions: 2
  template:
    metadata: {annotations: {mooring.dev/run-seconds: "1"}}
    spec: {restartPolicy: Never, containers: [{name: c, image: busybox, command: [sleep, "1"]}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: cj}
spec:
  schedule: "* * * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: ing}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: np}
spec: {podSelector: {}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: rq}
spec: {hard: {pods: "1"}}
---
apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {a: b}
"""


def test_a_cron_job_makes_jobs_that_end(shop: Kubectl):
    shop.run("apply", "-f", "-", input=CRON_JOB)
    shop.run("wait", "--for=jsonpath={.status.lastSuccessfulTime}", "cronjob/report", "--timeout=60s")
    row = shop.rows("get", "cronjob", "report")[0]
    assert (row["SCHEDULE"], row["TIMEZONE"]) == ("@every 1s", "Europe/Berlin")
    assert row["LAST SCHEDULE"] != "<none>"
    assert {event["reason"] for event in shop.events("report", "SuccessfulCreate", "SawCompletedJob")}
    shop.run("create", "job", "now", "--from=cronjob/report")
    shop.run("wait", "--for=condition=Complete", "job/now", "--timeout=60s")

    refusal = shop.refusal("patch", "cronjob", "report", "-p", '{"spec": {"schedule": "at noon"}}')
    assert "spec.schedule: Invalid value" in refusal
    assert "expected exactly 5 fields, found 2" in refusal


def test_a_manifest_of_the_usual_kinds_reaches_its_desired_state(shop: Kubectl):
    shop.run("apply", "-f", "-", input=USUAL_KINDS)
    shop.run("rollout", "status", "sts/sts", "--timeout=60s")
    shop.run("rollout", "status", "ds/ds", "--timeout=60s")
    shop.run("wait", "--for=condition=Complete", "job/job", "--timeout=60s")
    assert {row["STATUS"] for row in shop.rows("get", "pvc")} == {"Bound"}
    assert shop.rows("get", "cronjob", "cj")[0]["SUSPEND"] == "False"
