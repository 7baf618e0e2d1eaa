"""Claims are bound in a simulation as the persistent volume controller binds them: pods get their volumes."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import force_setattr
from tests.simulator.scenarios import a_cluster_of, arriving, bound

from mooring.objects.meta import KubeObject
from mooring.simulator import Cluster, SimulationResult, simulate
from mooring.simulator.manifests import manifest_workload
from mooring.testing.storage import a_claim, a_storage_class, a_volume, claim_volume

HOSTNAME = "kubernetes.io/hostname"
ON_B = {HOSTNAME: ["b"]}
LOOK_SECONDS = 1.0
"""The scheduler looks once a second whether what it selected is bound."""

CASES: dict[str, tuple[list[KubeObject], float, str | None]] = {
    "a volume is provisioned where the pod goes": ([a_claim(), a_storage_class()], LOOK_SECONDS, None),
    "the volume that fits decides the node": (
        [a_claim(), a_storage_class(provisioner="kubernetes.io/no-provisioner"), a_volume(on=ON_B)],
        LOOK_SECONDS,
        "b",
    ),
    "a claim that waits for no pod is bound from the beginning": (
        [a_claim(), a_storage_class(mode="Immediate"), a_volume(on=ON_B)],
        0.0,
        "b",
    ),
    "a volume is provisioned from the beginning": ([a_claim(), a_storage_class(mode="Immediate")], 0.0, None),
}


@pytest.mark.parametrize(("objects", "at", "node"), CASES.values(), ids=CASES.keys())
def test_a_pod_gets_its_volume(objects: list[KubeObject], at: float, node: str | None):
    [(when, where)] = bound(simulated_with(objects, "db")).values()
    assert when == at
    assert node is None or where == node


def test_a_volume_is_used_once():
    volume = a_volume(on=ON_B, size="1Gi")
    storage_class = a_storage_class(provisioner="kubernetes.io/no-provisioner")
    result = simulated_with([a_claim("one"), a_claim("two"), storage_class, volume], "one", "two", own_claims=True)
    assert list(bound(result)) == ["one"]
    assert "didn't find available persistent volumes to bind" in result.pending[0].message


def test_a_class_without_a_provisioner_provides_nothing():
    result = simulated_with([a_claim(), a_storage_class(provisioner="kubernetes.io/no-provisioner")], "db")
    assert "didn't find available persistent volumes to bind" in result.pending[0].message


def simulated_with(objects: list[KubeObject], *pods: str, own_claims: bool = False) -> SimulationResult:
    """Pods with the claim `data`, or one of their own name, on the nodes a and b."""
    nodes = a_cluster_of("a", "b", cpu="8").nodes
    for node in nodes:
        force_setattr(node.metadata, "labels", {**node.labels, HOSTNAME: node.name})

    def volumes(pod: str) -> list[dict[str, Any]]:
        return [{"name": "data", **claim_volume(pod if own_claims else "data")}]

    return simulate(Cluster(nodes, objects=objects), [arriving(0.0, pod, volumes=volumes(pod)) for pod in pods])


STATEFUL_SET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: main, image: postgres, volumeMounts: [{name: data, mountPath: /data}]}]}
"""


def test_pods_of_a_stateful_set_have_claims_of_their_own():
    cluster = Cluster.of_nodes(2)
    workload = manifest_workload(STATEFUL_SET, "db.yaml", cluster)
    claims = [each["metadata"]["name"] for each in workload.documents["v1", "PersistentVolumeClaim"]]
    assert claims == ["data-db-0", "data-db-1"]
    assert bound(simulate(cluster, workload)).keys() == {"db-0", "db-1"}
