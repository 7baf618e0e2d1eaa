"""Workloads from manifests: owners become their pods, as the API server defaults and validates them."""

from __future__ import annotations

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
