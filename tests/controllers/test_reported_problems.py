"""Objects that cannot work, on the embedded API server: each gets an event, and others go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.controllers.test_controllers import DEFINITION, a_document
from tests.simulated.conftest import POD, Bench, pod_document

from mooring.apiserver import EmbeddedApiServer
from mooring.base.clock import ManualClock
from mooring.controllers import Controllers
from mooring.framework.definitions import definition_of
from mooring.objects.pod_groups import PodGroup
from mooring.plugins.community.capacity_scheduling.quotas import ElasticQuota
from mooring.plugins.community.coscheduling.pod_groups import GROUP_LABEL, CoschedulingGroup
from mooring.plugins.community.node_resource_topology.topologies import NodeResourceTopology

GATES = ("GenericWorkload", "GangScheduling")
CUSTOM: tuple[type[Any], ...] = (CoschedulingGroup, ElasticQuota, NodeResourceTopology)


class Reports:
    """A cluster of two nodes, and the events that the controllers record there."""

    def __init__(self, bench: Bench, clock: ManualClock) -> None:
        self.bench, self._clock = bench, clock

    async def create(self, kind: type[Any], name: str, *, namespace: str | None = "default", **fields: Any) -> None:
        document = a_document(kind.KIND, name, {}) | fields
        await self.bench.client.create(kind.KIND, document, namespace)

    async def create_pod(self, name: str, **more: Any) -> None:
        await self.bench.client.create(POD, pod_document(name, **more), "default")

    def about(self, kind: str, name: str) -> list[tuple[str, str]]:
        return [
            (event.reason, event.message)
            for event in self.bench.seen.of("events").values()
            if (event.involved_object["kind"], event.involved_object["name"]) == (kind, name)
            and event.source.get("component") in ("mooring-controllers", "ElasticQuotaController")
        ]

    async def until(self, condition: Callable[[], object]) -> None:
        await self.bench.pass_time(self._clock, 5, condition)


@pytest.fixture
async def reports() -> AsyncIterator[Reports]:
    server = EmbeddedApiServer(features=GATES)
    await server.start()
    bench, clock = Bench(server), ManualClock()
    running = Controllers(bench.client, clock=clock)
    try:
        await bench.start(2, binds=False)
        for kind in CUSTOM:
            await bench.client.create(DEFINITION, definition_of(kind))
        running.start()
        async with asyncio.timeout(60):
            for event in running.running.values():
                await event.wait()
        yield Reports(bench, clock)
    finally:
        await running.stop()
        await bench.stop()
        await server.stop()


async def test_a_pod_whose_group_does_not_exist(reports):
    await reports.create_pod("labelled", labels={GROUP_LABEL: "train"})
    await reports.create_pod("ganged", schedulingGroup={"podGroupName": "train"})
    await reports.create_pod("other")
    await reports.until(lambda: reports.about("Pod", "labelled") and reports.about("Pod", "ganged"))
    assert reports.about("Pod", "labelled") == [
        ("PodGroupNotFound", "PodGroup default/train (scheduling.x-k8s.io) does not exist; the pod waits for it")
    ]
    assert reports.about("Pod", "ganged") == [
        ("PodGroupNotFound", "PodGroup default/train (scheduling.k8s.io) does not exist; the pod waits for it")
    ]
    assert not reports.about("Pod", "other")


async def test_groups_larger_than_the_cluster(reports):
    await reports.create(CoschedulingGroup, "train", spec={"minMember": 1000})
    await reports.create(CoschedulingGroup, "fits", spec={"minMember": 2})
    await reports.create(PodGroup, "gang", spec={"schedulingPolicy": {"gang": {"minCount": 1000}}})
    await reports.until(lambda: len(reports.about("PodGroup", "train")) + len(reports.about("PodGroup", "gang")) == 2)
    ((reason, message),) = reports.about("PodGroup", "train")
    assert reason == "PodGroupTooLarge"
    assert message.startswith("spec.minMember is 1000, and all 2 nodes can run ")
    assert reports.about("PodGroup", "gang")[0][1].startswith("spec.schedulingPolicy.gang.minCount is 1000, and all ")
    assert not reports.about("PodGroup", "fits")


async def test_a_quota_with_impossible_numbers(reports):
    await reports.create(ElasticQuota, "negative", spec={"min": {"cpu": "-1"}})
    await reports.until(
        lambda: any(reason == "InvalidQuota" for reason, _ in reports.about("ElasticQuota", "negative"))
    )
    assert ("InvalidQuota", "spec.min.cpu is -1: it must not be negative") in reports.about("ElasticQuota", "negative")


async def test_a_topology_that_contradicts_its_node(reports):
    node = min(reports.bench.seen.of("nodes").values(), key=lambda each: each.name).name
    resource = {"name": "cpu", "capacity": "999", "allocatable": "999", "available": "999"}
    await reports.create(
        NodeResourceTopology,
        node,
        namespace=None,
        zones=[{"name": "node-0", "type": "Node", "resources": [resource]}],
        topologyPolicies=[],
    )
    await reports.until(lambda: reports.about("NodeResourceTopology", node) and reports.about("Node", node))
    ((reason, message),) = reports.about("Node", node)
    assert reason == "InvalidTopology"
    assert message.startswith(f"NodeResourceTopology {node}: its zones have cpu 999, the node has ")
    assert reports.about("NodeResourceTopology", node) == [(reason, message)]
