"""The objects of workloads are what an API server accepts in a create."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import AsyncIterator

import msgspec
import pytest

from mooring.apiserver import EmbeddedApiServer
from mooring.bench.e2e.cluster import BenchCluster
from mooring.bench.manifests import (
    NAMESPACE,
    group_manifests,
    incoming_manifest,
    node_manifest,
    other_manifests,
    running_manifest,
)
from mooring.bench.workloads import END_TO_END, WORKLOADS
from mooring.client import ApiClient, Connection
from mooring.objects import Kind, Node, Pod
from mooring.objects.pod_groups import PodGroup

NAMESPACES = Kind("", "v1", "Namespace", "namespaces", namespaced=False)


GATES = frozenset(gate for name in END_TO_END for gate in WORKLOADS[name].gates)


@pytest.fixture
async def client() -> AsyncIterator[ApiClient]:
    server = EmbeddedApiServer(features=GATES)
    await server.start()
    connection = Connection(server=server.url, source="test", token=server.token, ca_data=server.ca_pem.encode())
    async with ApiClient(connection) as found:
        await found.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        yield found
    await server.stop()


@pytest.mark.parametrize("name", [*END_TO_END, "preemption", "refused"])
async def test_an_api_server_accepts_them(client: ApiClient, name: str):
    workload = WORKLOADS[name]
    few = [*itertools.islice(other_manifests(workload), 3), *group_manifests(workload, pods=7)]
    for kind, document in few:
        await client.create(kind, document)
    await client.create(Node.KIND, node_manifest(workload, 0))
    for number in range(7):
        await client.create(Pod.KIND, incoming_manifest(workload, number))
        await client.create(Pod.KIND, running_manifest(workload, number, nodes=1))
    pods = await client.list(Pod.KIND, NAMESPACE)
    assert len(pods) == 14
    assert {pod["spec"].get("nodeName", "") for pod in pods} == {"", "node-00000"}


@pytest.mark.parametrize("name", END_TO_END)
def test_a_scheduler_reads_what_the_workload_means(name: str):
    """A decision over the created pod is that of the benchmark without an API server."""
    workload = WORKLOADS[name]
    manifest = incoming_manifest(workload, 5)
    del manifest["spec"]["terminationGracePeriodSeconds"]
    read = msgspec.convert(manifest, Pod)
    meant = workload.incoming(5)
    assert read.metadata.labels == meant.metadata.labels
    assert msgspec.json.encode(read.spec) == msgspec.json.encode(meant.spec)


def test_pods_of_every_number_have_names_of_their_own():
    for name in END_TO_END:
        names = {incoming_manifest(WORKLOADS[name], number)["metadata"]["name"] for number in range(100)}
        assert len(names) == 100


GANGS = {
    "whole gangs": (20, {"gang-0": 10, "gang-1": 10}),
    "a last gang of the pods that are left": (23, {"gang-0": 10, "gang-1": 10, "gang-2": 3}),
    "one small gang": (4, {"gang-0": 4}),
}


@pytest.mark.parametrize(("pods", "sizes"), GANGS.values(), ids=GANGS.keys())
def test_every_pod_of_the_gangs_belongs_to_a_group_that_needs_all_of_its_pods(pods: int, sizes: dict[str, int]):
    workload = WORKLOADS["gangs"]
    manifests = [incoming_manifest(workload, number) for number in range(pods)]
    assert Counter(each["spec"]["schedulingGroup"]["podGroupName"] for each in manifests) == sizes
    groups = {each["metadata"]["name"]: each["spec"] for _, each in group_manifests(workload, pods)}
    assert {name: spec["schedulingPolicy"]["gang"]["minCount"] for name, spec in groups.items()} == sizes


async def test_the_groups_of_a_run_go_with_its_pods(client: ApiClient, tmp_path):
    """So that those of the next run are new: their conditions have yet to be written."""
    cluster, workload = BenchCluster(client, tmp_path / "kubeconfig", None), WORKLOADS["gangs"]
    await cluster.create_groups(workload, pods=20)
    assert len(await client.list(PodGroup.KIND, NAMESPACE)) == 2
    await cluster.reset(workload, nodes=0, running=0)
    # Their finalizers wait for a controller here. The API server of a benchmark adds none.
    assert all("deletionTimestamp" in each["metadata"] for each in await client.list(PodGroup.KIND, NAMESPACE))


async def test_a_cluster_is_reset_to_what_was_there_before_a_run(client: ApiClient, tmp_path):
    cluster, workload = BenchCluster(client, tmp_path / "kubeconfig", None), WORKLOADS["basic"]
    await cluster.fill(workload, nodes=2, running=3)
    await cluster.create_pods(incoming_manifest(workload, number) for number in range(4))
    await client.delete(Pod.KIND, "running-000001", NAMESPACE, grace_seconds=0)  # as a preemption does
    await cluster.reset(workload, nodes=2, running=3)
    assert len(await client.list(Node.KIND)) == 2
    names = sorted(pod["metadata"]["name"] for pod in await client.list(Pod.KIND, NAMESPACE))
    assert names == ["running-000000", "running-000001", "running-000002"]
