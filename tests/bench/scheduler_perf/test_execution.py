"""Operations do to a cluster what their names promise; the scheduler here puts every pod on one node."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.bench.scheduler_perf.cases import a_case
from tests.bench.scheduler_perf.conftest import BindingScheduler, HurriedClock

from mooring.base.errors import Fault
from mooring.bench.scheduler_perf.execution import Execution
from mooring.bench.scheduler_perf.manifests import CLAIMS, CSI_NODES, NAMESPACES, NODES, PODS, VOLUMES
from mooring.bench.scheduler_perf.pod_watch import PodWatch
from mooring.bench.scheduler_perf.results import Run
from mooring.client import ApiClient

Runner = Callable[..., Awaitable[Run]]

NODE_A = "metadata: {name: node-a}\nstatus: {capacity: {cpu: '4', pods: '500'}}\napiVersion: v1\nkind: Node"
MEASURED = "- {opcode: createPods, count: 4, collectMetrics: true, namespace: measured}"
GATED = """
apiVersion: v1
kind: Pod
metadata: {generateName: gated-}
spec: {schedulingGates: [{name: example.com/hold}], containers: [{name: c, image: i}]}
"""
LIGHT = """
apiVersion: v1
kind: Pod
metadata: {generateName: light-, labels: {type: blocker}}
spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: i}]}
"""


@pytest.fixture
def execute(tmp_path: Path, client: ApiClient, pods: PodWatch, scheduler: BindingScheduler) -> Runner:
    async def run_operations(operations: str, files: dict[str, str] | None = None, **rest: str) -> Run:
        case = a_case(tmp_path, operations, **rest)
        for name, text in ({"node.yaml": NODE_A} | (files or {})).items():
            (case.file.parent / name).write_text(text, encoding="utf-8")
        run = Run(case=case.name, scheduler="test")
        async with asyncio.timeout(60):
            await Execution(case, client, pods, scheduler, run, lambda _: None).run()
        return run

    return run_operations


async def names(client: ApiClient, kind: Any, namespace: str | None = None) -> list[str]:
    return sorted(each["metadata"]["name"] for each in await client.list(kind, namespace))


def names_in(namespace: str, pods: PodWatch) -> set[str]:
    """Of the pods there that get a node from now on."""
    seen: set[str] = set()
    pods.on_scheduled(lambda pod: seen.add(pod.name) if pod.namespace == namespace else None)
    return seen


async def test_pods_are_created_in_a_namespace_of_their_operation_and_measured(execute: Runner, client: ApiClient):
    run = await execute(
        "- {opcode: createNodes, count: 1, nodeTemplatePath: node.yaml}\n"
        "- {opcode: createPods, count: 3}\n"
        "- {opcode: createPods, count: 5, podTemplatePath: pod.yaml, collectMetrics: true}"
    )
    assert len(await client.list(PODS, "namespace-1")) == 3
    measured = await client.list(PODS, "namespace-2")
    assert [pod["metadata"]["labels"] for pod in measured] == [{"app": "web"}] * 5
    assert run.pods == 5
    attempts = run.item("scheduler_scheduling_attempt_duration_seconds", {"result": "scheduled"})
    assert attempts is not None
    assert attempts.data["Average"] == pytest.approx(1.0)
    assert run.cpu_seconds == pytest.approx(0.005)


async def test_the_default_template_of_the_test_case_is_used(execute: Runner, client: ApiClient):
    await execute(MEASURED, test_case="defaultPodTemplatePath: pod.yaml")
    assert all(pod["metadata"]["labels"] == {"app": "web"} for pod in await client.list(PODS, "measured"))


async def test_namespaces_and_sets_of_pods(execute: Runner, client: ApiClient):
    await execute(
        "- {opcode: createNamespaces, prefix: sched, count: 2, namespaceTemplatePath: ns.yaml}\n"
        "- opcode: createPodSets\n  count: 2\n  namespacePrefix: sched\n"
        "  createPodsOp: {opcode: createPods, count: 2, collectMetrics: true}",
        {"ns.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {labels: {team: devops}}"},
    )
    assert (await client.get(NAMESPACES, "sched-1"))["metadata"]["labels"]["team"] == "devops"
    assert [len(await client.list(PODS, name)) for name in ("sched-0", "sched-1")] == [2, 2]


async def test_volumes_and_claims_are_created_bound(execute: Runner, client: ApiClient):
    await execute(
        "- opcode: createNodes\n  count: 2\n  nodeAllocatableStrategy:\n"
        "    csiNodeAllocatable: {csi.example.com: {count: 5}}\n"
        "- opcode: createPods\n  count: 3\n  namespace: v\n  collectMetrics: true\n"
        "  persistentVolumeTemplatePath: pv.yaml\n  persistentVolumeClaimTemplatePath: pvc.yaml",
        {
            "pv.yaml": "apiVersion: v1\nkind: PersistentVolume\nspec: {accessModes: [ReadOnlyMany], "
            "capacity: {storage: 1Gi}, csi: {driver: csi.example.com}}",
            "pvc.yaml": "apiVersion: v1\nkind: PersistentVolumeClaim\nspec: {accessModes: [ReadOnlyMany], "
            "resources: {requests: {storage: 1Gi}}}",
        },
    )
    assert await names(client, VOLUMES) == ["v-vol-0", "v-vol-1", "v-vol-2"]
    assert {claim["status"]["phase"] for claim in await client.list(CLAIMS, "v")} == {"Bound"}
    assert {volume["status"]["phase"] for volume in await client.list(VOLUMES)} == {"Bound"}
    assert len(await client.list(CSI_NODES)) == 2


async def test_a_barrier_waits_for_pods_that_no_operation_waited_for(
    execute: Runner, pods: PodWatch, scheduler: BindingScheduler
):
    run = await execute(
        "- {opcode: startCollectingMetrics, namespaces: [late], labelSelector: {app: web}}\n"
        "- {opcode: createPods, count: 4, namespace: late, podTemplatePath: pod.yaml, skipWaitToCompletion: true}\n"
        "- {opcode: barrier, namespaces: [late]}\n"
        "- {opcode: stopCollectingMetrics}"
    )
    with pods.counting("late", {"app": "web"}, "scheduled", 5) as count:
        assert (count.reached, count.all.done()) == (4, False)
    assert run.pods == 4


async def test_gated_pods_count_as_attempted(execute: Runner, pods: PodWatch, scheduler: BindingScheduler):
    scheduler.is_on = False
    await execute(
        "- {opcode: createPods, count: 2, namespace: gated, podTemplatePath: gated.yaml, skipWaitToCompletion: true}\n"
        "- {opcode: barrier, stageRequirement: Attempted}\n"
        "- {opcode: startCollectingMetrics, namespaces: [gated]}\n- {opcode: stopCollectingMetrics}",
        {"gated.yaml": GATED},
    )
    with (
        pods.counting("gated", {}, "attempted", 2) as attempted,
        pods.counting("gated", {}, "scheduled", 2) as scheduled,
    ):
        assert (attempted.reached, scheduled.reached) == (2, 0)


async def test_a_barrier_names_known_namespaces_only(execute: Runner):
    with pytest.raises(Fault, match=r"operation 1 \(barrier\): unknown namespace other"):
        await execute(f"{MEASURED}\n- {{opcode: barrier, namespaces: [other]}}")


async def test_pods_of_a_namespace_are_deleted_by_label(execute: Runner, client: ApiClient):
    await execute(
        "- {opcode: createPods, count: 3, namespace: mixed, podTemplatePath: light.yaml}\n"
        "- {opcode: createPods, count: 2, namespace: mixed, podTemplatePath: pod.yaml}\n"
        "- {opcode: deletePods, namespace: mixed, labelSelector: {type: blocker}, deletePodsPerSecond: 100}\n"
        f"{MEASURED}",
        {"light.yaml": LIGHT},
    )
    assert [pod["metadata"]["labels"] for pod in await client.list(PODS, "mixed")] == [{"app": "web"}] * 2


async def test_any_object_is_created_and_updated(execute: Runner, client: ApiClient):
    await execute(
        f"{MEASURED}\n"
        "- {opcode: createAny, templatePath: maps.yaml, namespace: extra, count: 2}\n"
        "- {opcode: createNodes, count: 2, nodeTemplatePath: before.yaml}\n"
        "- {opcode: updateAny, templatePath: after.yaml, count: 2, updatePerSecond: 100}",
        {
            "maps.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: 's-{{.Index}}'}\nspec: {ports: [{port: 80}]}",
            "before.yaml": "apiVersion: v1\nkind: Node\nmetadata: {name: 'n-{{.Index}}'}\nstatus: {capacity: {cpu: 1}}",
            "after.yaml": "apiVersion: v1\nkind: Node\nmetadata: {name: 'n-{{.Index}}', labels: {zone: z}}\n"
            "spec: {unschedulable: true}\nstatus: {capacity: {cpu: '9'}}",
        },
    )
    node = await client.get(NODES, "n-1")
    assert node["metadata"]["labels"]["zone"] == "z"
    assert node["spec"]["unschedulable"]
    assert node["status"]["capacity"] == {"cpu": "9"}


async def test_an_object_in_the_wrong_scope_is_an_error(execute: Runner):
    with pytest.raises(Fault, match="Node is cluster-scoped"):
        await execute(f"{MEASURED}\n- {{opcode: createAny, templatePath: node.yaml, namespace: extra}}")


async def test_churn_creates_objects_until_there_are_enough(
    execute: Runner, client: ApiClient, pods: PodWatch, clock: HurriedClock
):
    seen = names_in("more", pods)
    clock.is_over = lambda: len(seen) >= 3
    await execute(
        "- {opcode: churn, mode: create, number: 3, namespace: more, templatePaths: [pod.yaml]}\n"
        f"{MEASURED}\n- {{opcode: sleep, durationParam: $pause}}",
        workload="params: {pause: 2s}",
    )
    assert len(await client.list(PODS, "more")) == 3


async def test_churn_creates_and_deletes_in_turn_until_the_workload_ends(
    execute: Runner, client: ApiClient, pods: PodWatch, clock: HurriedClock
):
    seen = names_in("busy", pods)
    clock.is_over = lambda: len(seen) >= 5
    await execute(
        "- {opcode: churn, mode: recreate, number: 2, namespace: busy, templatePaths: [light.yaml]}\n"
        f"{MEASURED}\n- {{opcode: sleep, duration: 2s}}",
        {"light.yaml": LIGHT},
    )
    assert len(await client.list(PODS, "busy")) <= 2


async def test_a_steady_state_replaces_pods_that_are_scheduled(
    execute: Runner, scheduler: BindingScheduler, clock: HurriedClock
):
    clock.is_over = lambda: scheduler.bound >= 6
    run = await execute(
        "- {opcode: createPods, count: 2, steadyState: true, duration: 20s, collectMetrics: true, namespace: steady}"
    )
    assert run.pods >= 4


async def test_a_measurement_ends_only_where_it_began(execute: Runner):
    with pytest.raises(Fault, match=r"operation 1 \(stopCollectingMetrics\): metrics are not being collected"):
        await execute(f"{MEASURED}\n- {{opcode: stopCollectingMetrics}}")
