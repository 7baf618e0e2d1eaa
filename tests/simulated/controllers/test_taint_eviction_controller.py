"""NoExecute taints: which pods they evict, when, and with which events."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulated.conftest import POD, pod_document

from mooring.base.clock import ManualClock
from mooring.objects.core import Taint, Toleration
from mooring.simulated.controllers.taint_eviction_controller import tolerated_seconds
from mooring.simulated.records import NodeRecord

GPU, DISK = Taint(key="gpu", effect="NoExecute"), Taint(key="disk", value="bad", effect="NoExecute")


def for_key(key: str, seconds: int | None = None, **more: str) -> Toleration:
    return Toleration(key=key, operator="Exists", toleration_seconds=seconds, **more)


CASES: dict[str, tuple[list[Taint], list[Toleration], float | str]] = {
    "a taint that is not tolerated": ([GPU], [], 0.0),
    "one of two that is not tolerated": ([GPU, DISK], [for_key("gpu")], 0.0),
    "tolerated for ever": ([GPU], [for_key("gpu")], "forever"),
    "tolerated for a time": ([GPU], [for_key("gpu", 30)], 30.0),
    "the shortest of several": ([GPU, DISK], [for_key("gpu", 30), for_key("disk", 5)], 5.0),
    "for ever and for a time": ([GPU, DISK], [for_key("gpu"), for_key("disk", 5)], 5.0),
    "no time is at once": ([GPU], [for_key("gpu", 0)], 0.0),
    "a negative time is at once": ([GPU], [for_key("gpu", -7)], 0.0),
    "the first toleration that matches counts": ([GPU], [for_key("gpu", 30), for_key("gpu", 5)], 30.0),
    "a toleration of another effect": ([GPU], [for_key("gpu", effect="NoSchedule")], 0.0),
    "a toleration of another value": ([DISK], [Toleration(key="disk", operator="Equal", value="good")], 0.0),
    "one for all keys": ([GPU, DISK], [Toleration(operator="Exists")], "forever"),
}


@pytest.mark.parametrize(("taints", "tolerations", "seconds"), CASES.values(), ids=CASES.keys())
def test_how_long_a_pod_may_stay(taints, tolerations, seconds):
    assert tolerated_seconds(taints, tolerations) == seconds


def tolerating(name: str, **toleration: Any) -> dict[str, Any]:
    pod = pod_document(name)
    pod["spec"]["tolerations"] = [{"key": "gpu", "operator": "Exists", "effect": "NoExecute", **toleration}]
    return pod


async def taint(bench, *taints: dict[str, str]) -> None:
    await bench.client.patch(NodeRecord.KIND, "node-1", None, {"spec": {"taints": list(taints) or None}}, form="merge")


def running(bench) -> set[str]:
    return {pod.name for pod in bench.seen.pods if pod.status.phase == "Running"}


def messages(bench, pod: str) -> list[str]:
    return [
        event["message"]
        for event in bench.server.store.list("events")
        if event["reason"] == "TaintManagerEviction" and event["involvedObject"]["name"] == pod
    ]


async def test_pods_are_evicted_when_their_time_is_up(bench):
    clock = ManualClock()
    await bench.start(1, clock=clock)
    for pod in (pod_document("plain"), tolerating("patient", tolerationSeconds=30), tolerating("stoic")):
        await bench.client.create(POD, pod, "default")
    await bench.seen.until(lambda: running(bench) == {"plain", "patient", "stoic"})
    deleted = []
    bench.cluster.pods.subscribe(changed=lambda pod: deleted.append(pod) if pod.is_terminating else None)

    await taint(bench, {"key": "gpu", "effect": "NoExecute"})
    await bench.seen.until(lambda: running(bench) == {"patient", "stoic"})
    [condition] = [each for each in deleted[0].status.conditions if each.type == "DisruptionTarget"]
    assert (condition.status, condition.reason) == ("True", "DeletionByTaintManager")
    assert condition.message == "Taint manager: deleting due to NoExecute taint"
    await bench.cluster.events.flush()
    assert messages(bench, "plain") == ["Marking for deletion Pod default/plain"]

    clock.advance(29)
    await bench.client.server_version()
    assert running(bench) == {"patient", "stoic"}
    await bench.pass_time(clock, 1, lambda: running(bench) == {"stoic"})
    await bench.cluster.events.flush()
    assert messages(bench, "patient") == ["Marking for deletion Pod default/patient"]
    assert messages(bench, "stoic") == []


async def test_a_taint_that_goes_in_time_evicts_nothing(bench):
    clock = ManualClock()
    cluster = await bench.start(1, clock=clock)
    await bench.client.create(POD, tolerating("patient", tolerationSeconds=30), "default")
    await bench.seen.until(lambda: running(bench) == {"patient"})

    await taint(bench, {"key": "gpu", "effect": "NoExecute"})
    await bench.seen.until(lambda: bool(bench.seen.of("nodes")["node-1"].spec.taints))
    await bench.pass_time(clock, 0, lambda: bool(cluster.evictions.pending))
    await taint(bench)
    await bench.pass_time(clock, 0, lambda: not cluster.evictions.pending)
    clock.advance(60)
    await bench.client.create(POD, tolerating("later"), "default")
    await bench.seen.until(lambda: running(bench) == {"patient", "later"})
    await cluster.events.flush()
    assert messages(bench, "patient") == ["Cancelling deletion of Pod default/patient"]


async def test_a_pod_that_is_bound_to_a_tainted_node_is_evicted_too(bench):
    await bench.start(1)
    await taint(bench, {"key": "gpu", "effect": "NoExecute"}, {"key": "other", "effect": "NoSchedule"})
    await bench.client.create(POD, tolerating("stoic"), "default")
    await bench.client.create(POD, pod_document("plain"), "default")
    await bench.seen.until(lambda: "Pod" in bench.seen.gone and running(bench) == {"stoic"})
