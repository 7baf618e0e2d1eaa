"""Workloads from manifests: owners become their pods, as the API server defaults and validates them."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from mooring.base.errors import OperatorMistake
from mooring.simulator import Cluster, Workload
from mooring.simulator.manifests import manifest_workload

TEMPLATE = """
  template:
    metadata: {labels: {app: web}, annotations: {mooring.dev/run-seconds: "30"}}
    spec: {restartPolicy: POLICY, containers: [{name: main, image: nginx, resources: {requests: {cpu: 500m}}}]}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}""" + TEMPLATE.replace("POLICY", "Always")
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: report}
spec:
  completions: 2""" + TEMPLATE.replace("POLICY", "Never")
POD = """
apiVersion: v1
kind: Pod
metadata: {name: alone}
spec: {priorityClassName: urgent, containers: [{name: main, image: nginx}]}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
"""


def workload(text: str, cluster: Cluster | None = None) -> Workload:
    return manifest_workload(text, "workload.yaml", cluster or Cluster.of_nodes(2))


def test_a_deployment_becomes_its_pods():
    arrivals = workload(DEPLOYMENT)
    assert [each.pod.key for each in arrivals] == ["shop/web-0", "shop/web-1", "shop/web-2"]
    pod = arrivals[2].pod
    assert (pod.labels, pod.request("cpu"), pod.uid) == ({"app": "web"}, 500, "shop/web-2")
    assert pod.metadata.owner_references[0].controller
    assert arrivals[2].duration == 30.0


def test_a_job_becomes_as_many_pods_as_must_complete():
    assert [each.pod.name for each in workload(JOB)] == ["report-0", "report-1"]


def test_pods_are_admitted_as_by_an_api_server():
    [arrival] = workload(POD)
    assert arrival.pod.priority == 1000
    assert arrival.pod.spec.tolerations[0].key.startswith("node.kubernetes.io/")


def test_other_objects_of_the_file_come_with_the_workload():
    classes = workload(POD).documents["scheduling.k8s.io/v1", "PriorityClass"]
    assert "urgent" in [each["metadata"]["name"] for each in classes]


def test_classes_of_the_cluster_are_known(tmp_path):
    pod, priority_class = POD.split("---")
    (tmp_path / "cluster.yaml").write_text(priority_class)
    cluster = Cluster.read(tmp_path / "cluster.yaml")
    [arrival] = workload(pod, cluster)
    assert arrival.pod.priority == 1000
    with pytest.raises(OperatorMistake, match="no PriorityClass"):
        workload(pod)


def test_a_pod_that_the_cluster_has_already_is_refused():
    cluster = Cluster([], [arrival.pod for arrival in workload(DEPLOYMENT)])
    with pytest.raises(OperatorMistake, match="has a pod of that name already"):
        workload(DEPLOYMENT, cluster)


MISTAKES = {
    "a time that is none": (
        DEPLOYMENT.replace('"30"', '"soon"'),
        'of pod shop/web-0 must be a number of seconds, got "soon"',
    ),
    "an invalid pod": ("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {}\n", "spec.containers"),
    "a template that is invalid": (DEPLOYMENT.replace("500m", "much"), "quantit"),
    "what no controller creates here": (
        DEPLOYMENT.replace("Deployment", "DaemonSet").replace("  replicas: 3\n", ""),
        "is not simulated",
    ),
    "no pods": ("apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n", "has no pods"),
    "nodes": (
        "apiVersion: mooring.dev/v1alpha1\nkind: SimulatedNodes\ncount: 3\n",
        "belong into the file of --cluster",
    ),
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_are_explained(text, message):
    with pytest.raises(OperatorMistake) as raised:
        workload(text)
    assert message in str(raised.value)


STATEFUL_SET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 1
  serviceName: db
  selector: {matchLabels: {app: web}}
  volumeClaimTemplates:
  - {metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}""" + (
    TEMPLATE.replace("POLICY", "Always")
)
GENERATED = "apiVersion: mooring.dev/v1alpha1\nkind: GeneratedWorkload\npods: 300000\n"
TOO_MANY = {
    "replicas": (DEPLOYMENT.replace("replicas: 3", "replicas: 300000"), r'300,000 of them by Deployment "shop/web"'),
    "completions": (JOB.replace("completions: 2", "completions: 300000"), 'Job "default/report"'),
    "parallelism": (JOB.replace("completions: 2", "parallelism: 300000"), 'Job "default/report"'),
    "claims count": (STATEFUL_SET.replace("replicas: 1", "replicas: 600"), 'has 1,200 pods and claims.*"default/db"'),
    "together": (
        DEPLOYMENT.replace("replicas: 3", "replicas: 600")
        + "\n---"
        + JOB.replace("completions: 2", "completions: 500"),
        'has 1,100 pods and claims, 600 of them by Deployment "shop/web"; at most 1,000 can be tried',
    ),
    "generated": (GENERATED, "must be a whole number from 1 to 1,000, got 300000"),
    "generated by several": ("---\n".join([GENERATED.replace("300000", "700")] * 2), "GeneratedWorkload"),
    "a time": (GENERATED.replace("pods: 300000", "duration: 1000h"), "at most 1,000 pods are generated"),
}


@pytest.mark.parametrize(("text", "message"), TOO_MANY.values(), ids=TOO_MANY.keys())
def test_pods_are_counted_before_they_are_made(text: str, message: str):
    tracemalloc.start()
    try:
        with pytest.raises(OperatorMistake, match=message):
            manifest_workload(text, "workload.yaml", Cluster.of_nodes(1), most=1000)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("text", [DEPLOYMENT, STATEFUL_SET, GENERATED], ids=["replicas", "claims", "generated"])
def test_reading_ends_at_a_deadline(text: str):
    with pytest.raises(OperatorMistake, match="takes too long to read"):
        manifest_workload(text, "workload.yaml", Cluster.of_nodes(1), until=time.monotonic() - 1)


@pytest.mark.parametrize(
    "nodes",
    ["kind: SimulatedNodes\ncount: 300000", "kind: GeneratedCluster\nnodes: 300000"],
    ids=["plain", "generated"],
)
def test_a_workload_makes_no_nodes(nodes: str):
    with pytest.raises(OperatorMistake, match="makes nodes; they belong into the file of --cluster"):
        workload(f"apiVersion: mooring.dev/v1alpha1\n{nodes}")


def test_more_pods_than_there_is_memory_for_are_a_mistake(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mooring.base.memory.available_bytes", lambda: 1_000_000)
    message = r"300,000 pods and claims need about 0\.6 GB of memory, and 0\.0 GB are available"
    with pytest.raises(OperatorMistake, match=message):
        workload(DEPLOYMENT.replace("replicas: 3", "replicas: 300000"))
    with pytest.raises(OperatorMistake, match="300,000 pods need about"):
        Workload.generate(300_000)
