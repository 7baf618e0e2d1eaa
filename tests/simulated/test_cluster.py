"""A simulated cluster as a whole: initial objects, node leases, events."""

from __future__ import annotations

import asyncio

import pytest
from tests.simulated.builders import a_node, a_pod
from tests.simulated.conftest import DEPLOYMENT, POD, deployment_document, pod_document

from mooring.base.clock import ManualClock
from mooring.base.errors import Fault
from mooring.base.log import Log
from mooring.client.core_event_recorder import BURST, EVENT, REFILL_SECONDS, CoreEventRecorder, EventSource
from mooring.objects.meta import Kind
from mooring.simulated.kubelet.node_leases import LEASE_NAMESPACE, NodeLeases
from mooring.simulated.records import Document

CLUSTER = """
apiVersion: example.com/v1
kind: Quota
metadata: {name: gold}
spec: {pods: 3}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec: {containers: [{name: app, image: "nginx:1.27"}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: mooring.dev/v1alpha1
kind: SimulatedNodes
count: 2
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: quotas.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: quotas, singular: quota, kind: Quota}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


async def test_a_cluster_file_is_created_in_an_order_that_works(bench):
    await bench.start(CLUSTER)
    await bench.seen.until(lambda: any(pod.status.phase == "Running" for pod in bench.seen.pods))

    quota = await bench.client.get(Kind("example.com", "v1", "Quota", "quotas", False), "gold")
    assert quota["spec"] == {"pods": 3}
    assert set(bench.seen.of("nodes")) == {"node-1", "node-2"}


async def test_namespaces_that_the_file_leaves_out_are_made_and_those_that_exist_get_its_labels(bench):
    labelled = "{apiVersion: v1, kind: Namespace, metadata: {name: default, labels: {team: green}}}"
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: shop}, spec: {containers: [{name: a, image: b}]}}"
    await bench.start(f"{labelled}\n---\n{pod}", binds=False)
    assert bench.server.store.get("pods", "a", "shop") is not None
    assert bench.server.store.get("namespaces", "default", "")["metadata"]["labels"]["team"] == "green"


async def test_a_second_start_finds_everything_there(bench):
    cluster = await bench.start(CLUSTER)
    await cluster.stop()
    await bench.start(CLUSTER)
    await bench.seen.until(lambda: any(pod.status.phase == "Running" for pod in bench.seen.pods))


async def test_an_object_that_the_server_refuses_is_named(bench):
    text = "{apiVersion: v1, kind: Pod, metadata: {name: Bad_Name}, spec: {containers: []}}"
    with pytest.raises(Fault, match='Pod "Bad_Name" could not be created'):
        await bench.start(text)


async def test_an_undefined_kind_is_named(bench):
    with pytest.raises(Fault, match='Thing "a" could not be created: the server has no kind Thing in example'):
        await bench.start("{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}}")


async def test_without_controllers_pods_run_and_nothing_else_happens(bench):
    await bench.start(1, controllers=False)
    await bench.client.create(DEPLOYMENT, deployment_document("idle"), "default")
    await bench.client.create(POD, pod_document("web"), "default")
    await bench.seen.until(lambda: [pod.status.phase for pod in bench.seen.pods] == ["Running"])
    assert bench.seen.of("replicasets") == {}


async def test_pulled_images_appear_in_the_nodes_status(bench):
    clock = ManualClock()
    await bench.start(1, clock=clock)
    await bench.client.create(POD, pod_document("web"), "default")
    await bench.seen.until(lambda: any(pod.status.phase == "Running" for pod in bench.seen.pods))

    await bench.pass_time(clock, 10, lambda: bench.seen.of("nodes")["node-1"].status.images)
    assert bench.seen.of("nodes")["node-1"].status.images[0]["names"] == ["nginx:1.27"]


async def test_nodes_renew_their_leases(bench):
    clock = ManualClock()
    await bench.start(1, clock=clock, heartbeat_seconds=10)

    renewed: set[str] = set()

    def lease() -> Document:
        return bench.server.store.get("leases.coordination.k8s.io", "node-1", LEASE_NAMESPACE) or {}

    def renewed_twice() -> bool:
        renewed.add(lease().get("spec", {}).get("renewTime", ""))
        return len(renewed - {""}) == 2

    await bench.pass_time(clock, 10, renewed_twice)
    assert lease()["spec"]["holderIdentity"] == "node-1"


@pytest.mark.parametrize(
    ("configured", "nodes", "interval"),
    [(None, 3, 10.0), (None, 5000, 500.0), (5.0, 5000, 5.0)],
    ids=["few nodes renew as kubelets do", "many renew less often", "unless an interval is configured"],
)
async def test_the_interval_of_node_leases(bench, configured, nodes, interval):
    leases = NodeLeases(bench.client, list, clock=ManualClock(), interval_seconds=configured)
    assert leases.interval(nodes) == interval


async def test_a_burst_of_events_about_one_object_is_cut(bench):
    clock = ManualClock()
    events = CoreEventRecorder(bench.client, clock=clock, log=Log("test"))
    for index in range(BURST + 5):
        events.record(a_pod("chatty"), EventSource("kubelet", "node-1"), "Pulled", str(index))
    events.record(a_node("quiet"), EventSource("kubelet", "node-1"), "Starting", "another object is not concerned")
    assert events.dropped == 5

    clock.advance(REFILL_SECONDS)
    events.record(a_pod("chatty"), EventSource("kubelet", "node-1"), "Pulled", "again")
    assert events.dropped == 5


async def test_an_event_that_repeats_is_one_object_with_a_count(bench):
    clock = ManualClock()
    events = CoreEventRecorder(bench.client, clock=clock, log=Log("test"))
    writing = asyncio.create_task(events.run())
    await bench.seen.synced()

    async def record(message: str, times: int = 1) -> None:
        for _ in range(times):
            events.record(a_pod("web"), EventSource("kubelet", "node-1"), "Failed", message, warning=True)
        await events.flush()

    def counts() -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for document in bench.server.store.list("events"):
            if document["reason"] == "Failed":
                found.setdefault(document["message"], []).append(document["count"])
        return found

    try:
        await record("no template")
        clock.advance(5)
        await record("no template", 3)
        await record("no class")
        assert counts() == {"no template": [4], "no class": [1]}
        [event] = [each for each in bench.server.store.list("events") if each.get("message") == "no template"]
        assert event["firstTimestamp"] < event["lastTimestamp"]

        # One that has expired is created again, and goes on counting.
        await bench.client.delete(EVENT, event["metadata"]["name"], event["metadata"]["namespace"])
        await record("no template")
        assert counts() == {"no template": [5], "no class": [1]}

        # What a burst leaves out is counted with the next that is written.
        await record("no template", BURST)
        clock.advance(REFILL_SECONDS)
        await record("no template")
        assert counts()["no template"] == [5 + BURST + 1]
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
