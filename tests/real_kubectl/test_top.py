"""kubectl top: what simulated kubelets report of nodes and pods, by metrics.k8s.io."""

from __future__ import annotations

from tests.real_kubectl.conftest import mooring_up

CLUSTER = """
apiVersion: mooring.dev/v1alpha1
kind: SimulatedNodes
names: [busy]
allocatable: {cpu: "4", memory: 8Gi}
use: {cpu: 500m, memory: 25%}
---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}, annotations: {mooring.dev/cpu-use: 50%}}
spec:
  containers:
  - {name: main, image: nginx, resources: {requests: {cpu: "1", memory: 1Gi}}}
  - {name: side, image: nginx, resources: {requests: {cpu: "1", memory: 1Gi}}}
"""


def test_kubectl_top_shows_nodes_pods_and_containers():
    with mooring_up("--cluster=cluster.yaml", files={"cluster.yaml": CLUSTER}) as up:
        up.run("wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
        (node,) = up.rows("top", "nodes")
        assert node == {
            "NAME": "busy",
            "CPU(cores)": "1500m",
            "CPU(%)": "37%",
            "MEMORY(bytes)": "4096Mi",
            "MEMORY(%)": "50%",
        }
        assert up.rows("top", "pods", "-l", "app=web") == [
            {"NAME": "web", "CPU(cores)": "1000m", "MEMORY(bytes)": "2048Mi"}
        ]
        assert [row["CPU(cores)"] for row in up.rows("top", "pod", "web", "--containers")] == ["500m", "500m"]
        assert 'pods.metrics.k8s.io "none" not found' in up.refusal("top", "pod", "none")
        assert up.rows("get", "nodes.metrics.k8s.io")[0]["CPU"] == "1500000000n"
