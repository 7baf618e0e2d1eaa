"""The published walks of two scheduler plugins, with their configurations to the letter, on real kubectl."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.cli.test_config import SAMPLE, SCORE_BY_LABEL
from tests.real.conftest import Up, mooring_up

TEST_POD = """
apiVersion: v1
kind: Pod
metadata:
  name: testpod
spec:
  schedulerName: scorebylabel
  containers:
    - name: testpod
      image: k8s.gcr.io/ubuntu-slim:0.1
      command: ["/bin/sh"]
      args:
        - "-c"
        - "sleep 3600s"
      resources:
        requests:
          cpu: "200m"
          memory: 50Mi
"""
TWO_NODES = """
apiVersion: v1
kind: Node
metadata: {name: gpu02-poweredge-t420}
---
apiVersion: v1
kind: Node
metadata: {name: gpu03-poweredge-t420}
"""
TEST_SCHEDULER = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: test-scheduler}
spec:
  replicas: 1
  selector: {matchLabels: {app: test-scheduler}}
  template:
    metadata: {labels: {app: test-scheduler}}
    spec:
      schedulerName: sample-scheduler
      containers: [{name: nginx, image: "nginx:1.19.2-alpine", ports: [{containerPort: 80}]}]
"""


@pytest.fixture
def score_by_label() -> Iterator[Up]:
    with mooring_up("--nodes=3", "--config=config.yaml", "-v=6", files={"config.yaml": SCORE_BY_LABEL}) as running:
        yield running


@pytest.fixture
def sample() -> Iterator[Up]:
    files = {"config.yaml": SAMPLE, "cluster.yaml": TWO_NODES}
    with mooring_up("--cluster=cluster.yaml", "--config=config.yaml", "-v=3", files=files) as running:
        yield running


def test_score_by_label_favours_the_higher_number(score_by_label: Up):
    kubectl = score_by_label
    for node, number in (("node-1", 1), ("node-2", 10), ("node-3", 5)):
        kubectl.run("label", "node", node, f"score-by-label={number}")
    kubectl.run("create", "-f", "-", input=TEST_POD)
    kubectl.run("wait", "--for=condition=Ready", "pod/testpod", "--timeout=60s")
    assert kubectl.rows("get", "pod", "testpod", "-o", "wide")[0]["NODE"] == "node-2"
    (scheduled,) = [row for row in kubectl.rows("get", "events") if row["REASON"] == "Scheduled"]
    assert scheduled["MESSAGE"] == "Successfully assigned default/testpod to node-2"
    kubectl.mooring.mentions('"Attempting to schedule pod" pod="default/testpod"')

    told = kubectl.explain("testpod")
    assert told.startswith("Pod default/testpod runs on node-2 (profile scorebylabel, Running).")
    (scores,) = [line.split() for line in told.splitlines() if line.split()[:1] == ["ScoreByLabel"]]
    assert scores == ["ScoreByLabel", "10", "100", "1", "100"]


def test_the_sample_filter_waits_for_the_label(sample: Up):
    kubectl = sample
    kubectl.run("apply", "-f", "-", input=TEST_SCHEDULER)
    kubectl.run("wait", "--for=create", "pod", "-l", "app=test-scheduler", "--timeout=60s")
    kubectl.run("wait", "--for=condition=PodScheduled=False", "pod", "-l", "app=test-scheduler", "--timeout=60s")
    pod = kubectl.out("get", "pods", "-o", "jsonpath={.items[0].metadata.name}")
    message = "0/2 nodes are available: 1 Node: gpu02-poweredge-t420, 1 Node: gpu03-poweredge-t420."
    kubectl.mooring.mentions('"Unable to schedule pod; no fit; waiting"')
    described = kubectl.out("describe", "pod", pod)
    assert "FailedScheduling" in described
    assert message in described
    told = kubectl.explain(pod)
    assert "sample2: Node: gpu02-poweredge-t420\n      1 node: gpu02-poweredge-t420" in told
    assert "asked for by sample2" in told

    kubectl.run("label", "node", "gpu02-poweredge-t420", "cpu=true")
    kubectl.run("wait", "--for=condition=Ready", f"pod/{pod}", "--timeout=60s")
    events = kubectl.out("describe", "pod", pod).partition("Events:")[2]
    assert f"Successfully assigned default/{pod} to gpu02-poweredge-t420" in events
    for reason in ("Scheduled", "Pulling", "Pulled", "Created", "Started"):
        assert f"  {reason} " in events
    kubectl.mooring.mentions("evaluatedNodes=2 feasibleNodes=1")
    assert kubectl.explain(pod).startswith(f"Pod default/{pod} runs on gpu02-poweredge-t420")
