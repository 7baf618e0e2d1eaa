"""What simulated nodes and pods use, by requests, annotations and seeds."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.simulated.builders import a_pod
from tests.simulated.conftest import POD, pod_document

from mooring.base.clock import ManualClock
from mooring.simulated.cluster_file import parse_cluster
from mooring.simulated.kubelet.resource_usage import (
    CPU_USE,
    MEMORY_USE,
    USE_SEED,
    WINDOW_SECONDS,
    ResourceUsage,
    wrong_annotations,
)
from mooring.simulated.records import NodeRecord, PodRecord


def requesting(cpu: str = "1", memory: str = "1Gi", name: str = "app") -> dict[str, Any]:
    return {"name": name, "image": "pause", "resources": {"requests": {"cpu": cpu, "memory": memory}}}


def running(name: str = "web", **more: Any) -> PodRecord:
    return a_pod(name, node="node-1", phase=more.pop("phase", "Running"), **more)


def usage(*pods: PodRecord, clock: ManualClock | None = None, annotations: Any = None) -> ResourceUsage:
    document = {
        "metadata": {"name": "node-1", "annotations": annotations or {}},
        "status": {"capacity": {"cpu": "4", "memory": "8Gi"}},
    }
    node = msgspec.convert(document, NodeRecord)
    return ResourceUsage(lambda: [node], lambda _: pods, clock=clock or ManualClock())


def used_by_node(measured: ResourceUsage) -> dict[str, str]:
    (found,) = measured.node_metrics()
    use: dict[str, str] = found["usage"]
    return use


CASES = {
    "a pod uses what it requests": ({}, "1000000000n", "1048576Ki"),
    "a quantity": ({CPU_USE: "250m", MEMORY_USE: "64Mi"}, "250000000n", "65536Ki"),
    "a share of the request": ({CPU_USE: "40%", MEMORY_USE: "150%"}, "400000000n", "1572864Ki"),
    "an annotation that cannot be read counts for nothing": ({CPU_USE: "much"}, "1000000000n", "1048576Ki"),
    "a range of one number is that number": ({CPU_USE: "2..2"}, "2000000000n", "1048576Ki"),
}


@pytest.mark.parametrize(("annotations", "cpu", "memory"), CASES.values(), ids=CASES.keys())
def test_the_use_of_a_pod(annotations, cpu, memory):
    measured = usage(running(containers=[requesting()], annotations=annotations))
    (found,) = measured.pod_metrics()
    assert found["containers"] == [{"name": "app", "usage": {"cpu": cpu, "memory": memory}}]
    assert used_by_node(measured) == {"cpu": cpu, "memory": memory}


def test_containers_share_the_use_as_their_requests_are():
    pod = running(containers=[requesting("1", name="a"), requesting("3", name="b")], annotations={CPU_USE: "2"})
    (found,) = usage(pod).pod_metrics()
    assert [each["usage"]["cpu"] for each in found["containers"]] == ["500000000n", "1500000000n"]


def test_sidecars_count_and_completed_init_containers_do_not():
    sidecar = requesting("500m", name="proxy") | {"restartPolicy": "Always"}
    pod = running(containers=[requesting("1")], init_containers=[sidecar, requesting("4", name="setup")])
    (found,) = usage(pod).pod_metrics()
    assert [each["name"] for each in found["containers"]] == ["proxy", "app"]
    assert used_by_node(usage(pod))["cpu"] == "1500000000n"


def test_a_node_uses_what_its_annotation_states_beside_its_running_pods():
    pods = [running("one", containers=[requesting()]), running("two", containers=[requesting()], phase="Succeeded")]
    measured = usage(*pods, annotations={CPU_USE: "50%", MEMORY_USE: "1Gi"})
    assert used_by_node(measured) == {"cpu": "3000000000n", "memory": "2097152Ki"}


def test_a_node_uses_no_more_than_it_has():
    pods = [running(f"web-{index}", containers=[requesting("3", "6Gi")]) for index in range(2)]
    assert used_by_node(usage(*pods)) == {"cpu": "4000000000n", "memory": "8388608Ki"}


def test_a_range_is_drawn_again_in_each_window_and_follows_from_seed_and_name():
    def drawn(seed: str, name: str = "web") -> list[float]:
        clock = ManualClock()
        annotations = {CPU_USE: "100m..900m", USE_SEED: seed}
        measured = usage(running(name, containers=[requesting()], annotations=annotations), clock=clock)
        found = []
        for _ in range(20):
            found.append(int(used_by_node(measured)["cpu"].removesuffix("n")) / 10**9)
            clock.advance(WINDOW_SECONDS)
        return found

    first = drawn("7")
    assert all(0.1 <= each <= 0.9 for each in first)
    assert len(set(first)) > 10
    assert drawn("7") == first
    assert drawn("8") != first
    assert drawn("7", "other") != first


WRONG = {
    "no quantity": ({CPU_USE: "much"}, CPU_USE),
    "negative": ({MEMORY_USE: "-1Gi"}, MEMORY_USE),
    "no share": ({CPU_USE: "many%"}, CPU_USE),
    "more than the most": ({CPU_USE: "800m..200m"}, "is more than"),
    "half a range": ({CPU_USE: "1.."}, CPU_USE),
    "no seed": ({USE_SEED: "x"}, USE_SEED),
}


@pytest.mark.parametrize(("annotations", "named"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_named(annotations, named):
    (message,) = wrong_annotations(annotations)
    assert named in message


def test_a_namespace_and_a_name_select_pods():
    measured = usage(running("one"), running("two"))
    assert [each["metadata"]["name"] for each in measured.pod_metrics("default", "two")] == ["two"]
    assert list(measured.pod_metrics("elsewhere")) == []
    assert list(measured.node_metrics("node-2")) == []


async def test_the_kubelet_reports_an_annotation_that_cannot_be_read(bench):
    await bench.start(1)
    await bench.client.create(POD, pod_document("web", annotations={CPU_USE: "much"}), "default")
    await bench.seen.until(lambda: any(reason == "InvalidUse" for reason, _ in bench.seen.events))
    (message,) = (message for reason, message in bench.seen.events if reason == "InvalidUse")
    assert message.endswith('got "much"; the requests count instead')


def test_the_cluster_file_states_what_nodes_use():
    text = "{apiVersion: mooring.dev/v1alpha1, kind: SimulatedNodes, use: {cpu: 10%, memory: 1Gi..2Gi, seed: 3}}"
    (node,) = parse_cluster(text, "cluster.yaml", now=0.0).nodes
    annotations = node["metadata"]["annotations"]
    assert [annotations[key] for key in (CPU_USE, MEMORY_USE, USE_SEED)] == ["10%", "1Gi..2Gi", "3"]
