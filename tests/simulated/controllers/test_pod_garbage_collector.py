"""Pods of nodes that do not exist are deleted, once the node has been missing for a while."""

from __future__ import annotations

from typing import Any

from tests.simulated.conftest import POD, pod_document

from mooring.base.clock import ManualClock
from mooring.simulated.controllers.pod_garbage_collector import QUARANTINE_SECONDS
from mooring.simulated.records import NodeRecord


def named(name: str, node: str) -> dict[str, Any]:
    pod = pod_document(name)
    pod["spec"]["nodeName"] = node
    return pod


def there(bench) -> set[str]:
    return {pod.name for pod in bench.seen.pods}


async def test_a_pod_of_a_node_that_does_not_exist_is_deleted_after_a_while(bench):
    clock = ManualClock()
    cluster = await bench.start(1, clock=clock)
    last = {}
    cluster.pods.subscribe(changed=lambda pod: last.update({pod.name: pod}))
    await bench.client.create(POD, named("lost", "nope"), "default")
    await bench.client.create(POD, named("kept", "node-1"), "default")
    await bench.seen.until(lambda: {"lost", "kept"} <= there(bench))
    await bench.pass_time(clock, QUARANTINE_SECONDS - 1, lambda: "lost" in last)
    assert there(bench) == {"lost", "kept"}
    await bench.pass_time(clock, 2, lambda: there(bench) == {"kept"})
    assert last["lost"].status.phase == "Failed"
    [condition] = [each for each in last["lost"].status.conditions if each.type == "DisruptionTarget"]
    assert (condition.reason, condition.message) == ("DeletionByPodGC", "PodGC: node no longer exists")


async def test_pods_of_a_deleted_node_go_and_those_of_one_that_returns_stay(bench):
    clock = ManualClock()
    await bench.start(2, clock=clock)
    for name, node in (("a", "node-1"), ("b", "node-2")):
        await bench.client.create(POD, named(name, node), "default")
    await bench.seen.until(lambda: there(bench) == {"a", "b"})
    node = await bench.client.get(NodeRecord.KIND, "node-2")
    for name in ("node-1", "node-2"):
        await bench.client.delete(NodeRecord.KIND, name)
    await bench.seen.until(lambda: not bench.seen.of("nodes"))
    fresh = {"metadata": {"name": "node-2", "labels": node["metadata"].get("labels", {})}, "status": node["status"]}
    await bench.client.create(NodeRecord.KIND, fresh)
    await bench.seen.until(lambda: "node-2" in bench.seen.of("nodes"))
    await bench.pass_time(clock, QUARANTINE_SECONDS + 1, lambda: there(bench) == {"b"})
