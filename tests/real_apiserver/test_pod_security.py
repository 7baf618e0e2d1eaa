"""The manifests under kube-apiserver's PodSecurity admission: the namespace enforces `restricted`, the pod meets it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.real_apiserver.cluster import Cluster, Document
from tests.real_apiserver.control_plane import ApiError
from tests.real_apiserver.deployments import documents_in as read
from tests.real_apiserver.deployments import end_namespace, kubectl, manifests, the

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: mooring
"""
PLUGIN = """\
from mooring.framework import Plugin


class Mine(Plugin):
    def score(self, pod, node, cycle):
        return 0
"""


@pytest.fixture(params=["second-scheduler", "shadow"])
def applied(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[list[Document]]:
    config = cluster.home / "scheduler.yaml"
    config.write_text(CONFIG, encoding="utf-8")
    Path(cluster.home, "mine.py").write_text(PLUGIN, encoding="utf-8")
    text = manifests(
        f"--config={config}",
        f"--plugins={cluster.home / 'mine.py'}",
        f"--as={request.param}",
        "--metrics-from=monitoring/app.kubernetes.io/name=prometheus",
        "--probes-from=10.0.0.0/16",
        home=cluster.home,
    )
    kubectl(cluster, "apply", "-f", "-", input=text)
    documents = read(text)
    yield documents
    kubectl(cluster, "delete", "--wait=false", "--ignore-not-found", "-f", "-", input=text)
    end_namespace(cluster, the("Namespace", documents)["metadata"]["name"])


def test_the_pod_meets_what_its_namespace_enforces(cluster: Cluster, applied: list[Document]) -> None:
    namespace = the("Namespace", applied)["metadata"]["name"]
    template = the("Deployment", applied)["spec"]["template"]
    pods = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
    metadata = template["metadata"] | {"name": "of-the-template"}
    pod: Document = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    cluster.api.create(pods, copy.deepcopy(pod))

    del pod["spec"]["containers"][0]["securityContext"]["capabilities"]
    with pytest.raises(ApiError, match=r"violates PodSecurity .*restricted"):
        cluster.api.create(pods, pod)


def test_the_server_takes_the_policy_as_it_is_written(cluster: Cluster, applied: list[Document]) -> None:
    policy = the("NetworkPolicy", applied)
    path = f"/apis/networking.k8s.io/v1/namespaces/{policy['metadata']['namespace']}/networkpolicies"
    assert cluster.api.get(f"{path}/{policy['metadata']['name']}")["spec"] == policy["spec"]
