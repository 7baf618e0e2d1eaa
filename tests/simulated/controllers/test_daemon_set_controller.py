"""DaemonSets keep a pod on every eligible node of a running cluster."""

from __future__ import annotations

from typing import Any

from tests.simulated.conftest import NODE, POD, Bench

from mooring.simulated.controllers.daemon_sets import HASH_LABEL
from mooring.simulated.controllers.workload_records import DaemonSet
from mooring.simulated.records import PodRecord

DAEMON_SET = DaemonSet.KIND
NODES = """
apiVersion: mooring.dev/v1alpha1
kind: SimulatedNodes
count: 2
---
apiVersion: mooring.dev/v1alpha1
kind: SimulatedNodes
names: [gpu]
labels: {accelerator: h100}
taints: [{key: gpu, effect: NoSchedule}]
"""


def the_image(image: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}}


def living(bench: Bench) -> list[PodRecord]:
    return [pod for pod in bench.seen.pods if not pod.is_terminating]


def nodes_of(bench: Bench) -> list[str]:
    return sorted(pod.spec.node_name for pod in living(bench))


def images(bench: Bench) -> list[str]:
    return [pod.spec.containers[0].image for pod in living(bench)]


def status(bench: Bench) -> Any:
    owner = bench.seen.of("daemonsets").get("default/agent")
    return owner.status if owner and owner.status.observed_generation == owner.metadata.generation else None


def is_settled(bench: Bench, nodes: int) -> bool:
    now = status(bench)
    return now is not None and (
        now.desired_number_scheduled,
        now.number_available,
        now.updated_number_scheduled,
        now.number_misscheduled,
    ) == (nodes, nodes, nodes, 0)


async def a_daemon_set(bench: Bench, nodes: int, *, pod: dict[str, Any] | None = None, **spec: Any) -> None:
    labels = {"app": "agent"}
    container = {"name": "app", "image": "agent:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], **(pod or {})}}
    whole = {"selector": {"matchLabels": labels}, "template": template}
    await bench.client.create(DAEMON_SET, {"metadata": {"name": "agent"}, "spec": whole | spec}, "default")
    await bench.seen.until(lambda: is_settled(bench, nodes))


async def change(bench: Bench, body: dict[str, Any]) -> None:
    await bench.client.patch(DAEMON_SET, "agent", "default", body)


async def test_every_eligible_node_has_a_pod(bench):
    await bench.start(NODES)
    await a_daemon_set(bench, 2)

    assert nodes_of(bench) == ["node-1", "node-2"]
    await bench.seen.until(
        lambda: all(("SuccessfulCreate", f"Created pod: {pod.name}") in bench.seen.events for pod in bench.seen.pods)
    )


async def test_pods_follow_nodes_that_come_go_and_change(bench):
    await bench.start(NODES)
    await a_daemon_set(bench, 2)

    await bench.client.create(NODE, {"metadata": {"name": "node-3"}})
    await bench.seen.until(lambda: is_settled(bench, 3))
    await bench.client.delete(NODE, "node-1")
    await bench.seen.until(lambda: is_settled(bench, 2) and nodes_of(bench) == ["node-2", "node-3"])
    await bench.client.patch(NODE, "gpu", None, {"spec": {"taints": None}}, form="merge")
    await bench.seen.until(lambda: is_settled(bench, 3) and nodes_of(bench) == ["gpu", "node-2", "node-3"])


async def test_a_taint_that_does_not_evict_leaves_a_pod_where_none_should_be(bench):
    await bench.start(NODES)
    await a_daemon_set(bench, 2)
    taint = {"spec": {"taints": [{"key": "maintenance", "effect": "NoSchedule"}]}}
    await bench.client.patch(NODE, "node-1", None, taint, form="merge")

    await bench.seen.until(lambda: status(bench).number_misscheduled == 1)
    assert (status(bench).desired_number_scheduled, nodes_of(bench)) == (1, ["node-1", "node-2"])
    taint["spec"]["taints"][0]["effect"] = "NoExecute"
    await bench.client.patch(NODE, "node-1", None, taint, form="merge")
    await bench.seen.until(lambda: is_settled(bench, 1) and nodes_of(bench) == ["node-2"])


async def test_a_selector_moves_pods(bench):
    await bench.start(NODES)
    tolerations = [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]
    await a_daemon_set(bench, 3, pod={"tolerations": tolerations})
    await change(bench, {"spec": {"template": {"spec": {"nodeSelector": {"accelerator": "h100"}}}}})

    await bench.seen.until(lambda: is_settled(bench, 1) and nodes_of(bench) == ["gpu"])


async def test_a_deleted_pod_is_replaced_on_its_node(bench):
    await bench.start(2)
    await a_daemon_set(bench, 2)
    gone = next(pod for pod in bench.seen.pods if pod.spec.node_name == "node-2")
    await bench.client.delete(POD, gone.name, "default")

    await bench.seen.until(
        lambda: gone.uid not in {pod.uid for pod in living(bench)} and nodes_of(bench) == ["node-1", "node-2"]
    )


async def test_a_pod_that_failed_is_replaced(bench):
    await bench.start(1)
    await a_daemon_set(bench, 1)
    [pod] = bench.seen.pods
    await bench.client.patch(POD, pod.name, "default", {"status": {"phase": "Failed"}}, subresource="status")

    message = f"Found failed daemon pod default/{pod.name} on node node-1, will try to kill it"
    await bench.seen.until(lambda: ("FailedDaemonPod", message) in bench.seen.events)
    await bench.seen.until(lambda: is_settled(bench, 1) and pod.uid not in {each.uid for each in bench.seen.pods})


async def test_an_update_takes_one_node_at_a_time(bench):
    await bench.start(3)
    await a_daemon_set(bench, 3)
    fewest = [3]
    assert bench.cluster is not None
    informer = bench.cluster.pods

    def count(_: PodRecord) -> None:
        fewest[0] = min(fewest[0], sum(pod.is_active and pod.ready_since is not None for pod in informer.all()))

    informer.subscribe(changed=count, deleted=count)
    await change(bench, the_image("agent:2"))
    await bench.seen.until(lambda: is_settled(bench, 3) and images(bench) == ["agent:2"] * 3)

    assert fewest == [2]
    assert sorted(each.revision for each in bench.seen.of("controllerrevisions").values()) == [1, 2]


async def test_an_update_with_surge_never_leaves_a_node_without_a_pod(bench):
    await bench.start(3)
    rolling = {"maxSurge": 1, "maxUnavailable": 0}
    await a_daemon_set(bench, 3, updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling})
    bare: list[set[str]] = []
    assert bench.cluster is not None
    informer = bench.cluster.pods

    def look(_: PodRecord) -> None:
        ready = {pod.spec.node_name for pod in informer.all() if pod.is_active and pod.ready_since is not None}
        bare.append({"node-1", "node-2", "node-3"} - ready)

    informer.subscribe(changed=look, deleted=look)
    await change(bench, the_image("agent:2"))
    await bench.seen.until(lambda: is_settled(bench, 3) and images(bench) == ["agent:2"] * 3)

    assert not any(bare)
    assert nodes_of(bench) == ["node-1", "node-2", "node-3"]


async def test_pods_are_updated_when_they_are_deleted_if_so_wished(bench):
    await bench.start(2)
    await a_daemon_set(bench, 2, updateStrategy={"type": "OnDelete"})
    await change(bench, the_image("agent:2"))
    await bench.seen.until(lambda: status(bench) and status(bench).updated_number_scheduled == 0)
    assert images(bench) == ["agent:1"] * 2

    first = bench.seen.pods[0]
    await bench.client.delete(POD, first.name, "default")
    await bench.seen.until(lambda: sorted(images(bench)) == ["agent:1", "agent:2"])


async def test_old_revisions_go_unless_pods_are_of_them(bench):
    await bench.start(1)
    await a_daemon_set(bench, 1, revisionHistoryLimit=0)
    for image in ("agent:2", "agent:3"):
        await change(bench, the_image(image))
        await bench.seen.until(lambda image=image: is_settled(bench, 1) and images(bench) == [image])

    await bench.seen.until(lambda: len(bench.seen.of("controllerrevisions")) == 1)
    [revision] = bench.seen.of("controllerrevisions").values()
    assert bench.seen.pods[0].labels[HASH_LABEL] == revision.labels[HASH_LABEL]


async def test_daemons_go_with_their_set(bench):
    await bench.start(2)
    await a_daemon_set(bench, 2)
    await bench.client.delete(DAEMON_SET, "agent", "default")
    await bench.seen.until(lambda: not bench.seen.pods and not bench.seen.of("controllerrevisions"))


async def test_a_set_takes_over_what_an_earlier_one_left_behind(bench):
    await bench.start(2)
    await a_daemon_set(bench, 2)
    before = {pod.uid for pod in bench.seen.pods}
    path = DAEMON_SET.path("default", "agent")
    await bench.client.transport.request("DELETE", path, b'{"propagationPolicy": "Orphan"}')
    await bench.seen.until(
        lambda: not bench.seen.of("daemonsets") and not any(pod.metadata.owner_references for pod in bench.seen.pods)
    )

    await a_daemon_set(bench, 2)
    assert {pod.uid for pod in bench.seen.pods} == before
