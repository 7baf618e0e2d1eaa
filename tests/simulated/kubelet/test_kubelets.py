"""Pods on simulated nodes, from binding to deletion."""

from __future__ import annotations

from tests.simulated.conftest import NODE, POD, Bench, pod_document

from mooring.base.clock import ManualClock
from mooring.simulated.records import RUN_SECONDS, SIMULATED

FOREIGN_NODE = {"metadata": {"name": "foreign"}, "status": {"allocatable": {"cpu": "1", "pods": "10"}}}


def phases(bench: Bench) -> dict[str, str]:
    return {pod.name: pod.status.phase for pod in bench.seen.pods}


async def test_a_bound_pod_runs_with_an_address_of_its_nodes_range(bench):
    await bench.start(1)
    await bench.client.create(POD, pod_document("web"), "default")
    await bench.seen.until(lambda: phases(bench) == {"web": "Running"})

    status = (await bench.client.get(POD, "web", "default"))["status"]
    assert status["podIP"].startswith("10.128.0.")
    assert status["hostIP"] == "172.16.0.2"
    assert {each["type"]: each["status"] for each in status["conditions"]} == {
        "PodScheduled": "True",
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
    }


async def test_the_kubelet_records_events(bench):
    await bench.start(1)
    await bench.client.create(POD, pod_document("first"), "default")
    await bench.seen.until(lambda: ("Started", "Container started") in bench.seen.events)

    events = [event for event in bench.seen.of("events").values() if event.involved_object["name"] == "first"]
    assert {event.reason for event in events} == {"Pulling", "Pulled", "Created", "Started"}
    assert {event.source["host"] for event in events} == {"node-1"}
    assert {event.involved_object["fieldPath"] for event in events} == {"spec.containers{app}"}


async def test_a_deleted_pod_is_stopped_and_gone(bench):
    await bench.start(1)
    await bench.client.create(POD, pod_document("web"), "default")
    await bench.seen.until(lambda: phases(bench) == {"web": "Running"})

    await bench.client.delete(POD, "web", "default")
    await bench.seen.until(lambda: not bench.seen.pods)
    await bench.seen.until(lambda: ("Killing", "Stopping container app") in bench.seen.events)


async def test_a_pod_with_a_finalizer_is_stopped_once_and_stays(bench):
    await bench.start(1)
    await bench.client.create(POD, pod_document("web", finalizers=["example.com/wait"]), "default")
    await bench.seen.until(lambda: phases(bench) == {"web": "Running"})
    await bench.client.delete(POD, "web", "default")
    await bench.seen.until(lambda: ("Killing", "Stopping container app") in bench.seen.events)

    await bench.client.patch(POD, "web", "default", {"metadata": {"finalizers": None}}, form="merge")
    await bench.seen.until(lambda: not bench.seen.pods)


async def test_a_pod_completes_when_its_time_is_over(bench):
    clock = ManualClock()
    await bench.start(1, clock=clock)
    job = pod_document("job", restartPolicy="Never", annotations={RUN_SECONDS: "5"})
    await bench.client.create(POD, job, "default")
    await bench.seen.until(lambda: phases(bench) == {"job": "Running"})

    await bench.pass_time(clock, 1, lambda: phases(bench) != {"job": "Running"})
    assert phases(bench) == {"job": "Succeeded"}
    assert clock.now() >= 1_700_000_005


async def test_pods_that_ran_before_we_came_keep_their_addresses(bench):
    cluster = await bench.start(1)
    await bench.client.create(POD, pod_document("old"), "default")
    await bench.seen.until(lambda: phases(bench) == {"old": "Running"})
    address = bench.seen.pods[0].status.pod_ip
    await cluster.stop()

    await bench.start(0)
    await bench.client.create(POD, pod_document("new"), "default")
    await bench.seen.until(lambda: phases(bench) == {"old": "Running", "new": "Running"})
    addresses = {pod.name: pod.status.pod_ip for pod in bench.seen.pods}
    assert addresses["old"] == address
    assert addresses["new"] != address


async def test_a_node_written_by_hand_is_registered(bench):
    await bench.start(1)
    await bench.client.create(NODE, FOREIGN_NODE)

    def ready() -> bool:
        node = bench.seen.of("nodes").get("foreign")
        return node is not None and node.address != "" and any(each.type == "Ready" for each in node.status.conditions)

    await bench.seen.until(ready)
    node = await bench.client.get(NODE, "foreign")
    assert node["status"]["allocatable"] == {"cpu": "1", "pods": "10"}
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "foreign"
    assert node["spec"]["podCIDR"] != bench.seen.of("nodes")["node-1"].spec.pod_cidr


async def test_nodes_of_others_are_left_alone_where_only_some_are_ours(bench):
    cluster = await bench.start(1, all_nodes_are_simulated=False, binds=False)
    foreign = await bench.client.create(NODE, FOREIGN_NODE)
    theirs = await bench.client.create(POD, pod_document("theirs", nodeName="foreign"), "default")
    await bench.client.create(POD, pod_document("ours", nodeName="node-1"), "default")
    await bench.seen.until(lambda: phases(bench).get("ours") == "Running")

    assert set(cluster.kubelets.simulated_nodes) == {"node-1"}
    assert await bench.client.get(NODE, "foreign") == foreign
    assert await bench.client.get(POD, "theirs", "default") == theirs

    await bench.client.patch(NODE, "foreign", None, {"metadata": {"annotations": {SIMULATED: "true"}}})
    await bench.seen.until(lambda: phases(bench)["theirs"] == "Running")


async def test_pods_of_a_deleted_node_go_with_it(bench):
    await bench.start(1)
    await bench.client.create(POD, pod_document("web"), "default")
    await bench.seen.until(lambda: phases(bench) == {"web": "Running"})

    await bench.client.delete(NODE, "node-1")
    await bench.seen.until(lambda: not bench.seen.pods)


async def test_a_ready_node_does_not_stay_tainted_as_not_ready(bench):
    await bench.start(1)
    taints = [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}, {"key": "mine", "effect": "NoSchedule"}]
    await bench.client.patch(NODE, "node-1", None, {"spec": {"taints": taints}})

    def keys() -> list[str]:
        return [taint.key for taint in bench.seen.of("nodes")["node-1"].spec.taints]

    await bench.seen.until(lambda: keys() == ["mine"])


async def test_many_pods_at_once_all_run_with_different_addresses(bench):
    await bench.start(3)
    for index in range(120):
        await bench.client.create(POD, pod_document(f"pod-{index}"), "default")
    await bench.seen.until(lambda: list(phases(bench).values()).count("Running") == 120)

    assert len({pod.status.pod_ip for pod in bench.seen.pods}) == 120
