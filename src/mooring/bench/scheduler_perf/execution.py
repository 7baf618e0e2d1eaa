"""Runs the operations of one workload, one after the other, against a cluster where a scheduler is running."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

import msgspec

from mooring.base.clock import ends_within
from mooring.base.errors import Fault
from mooring.bench.scheduler_perf.background import churn, delete_all, delete_pods, spawn_task, ticks
from mooring.bench.scheduler_perf.creating import PodBatch, Templates, create_if_absent, create_namespaces, create_nodes
from mooring.bench.scheduler_perf.devices import allocate_claims, publish_slices
from mooring.bench.scheduler_perf.manifests import NAMESPACES, PODS
from mooring.bench.scheduler_perf.measuring import MeasuredScheduler, Measurement
from mooring.bench.scheduler_perf.operations import (
    ATTEMPTED,
    AllocResourceClaims,
    Barrier,
    Churn,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePods,
    CreateResourceClaims,
    CreateResourceDriver,
    DeletePods,
    Operation,
    Sleep,
    StartCollectingMetrics,
    StopCollectingMetrics,
    UpdateAny,
    WorkloadError,
    seconds_of,
)
from mooring.bench.scheduler_perf.pod_watch import PodWatch, ScheduledCounter, Stage, WatchedPod
from mooring.bench.scheduler_perf.results import Run
from mooring.bench.scheduler_perf.templates import Document
from mooring.bench.scheduler_perf.workload_files import Case
from mooring.client import ApiClient
from mooring.client.api import path_of
from mooring.client.rest_mapper import RestMapper
from mooring.objects import Kind

POLL_SECONDS = 1.0
"""How often upstream's waiting operations look."""
STRICT = "fieldValidation=Strict"
RETRY_SECONDS = 20.0
"""How long an object is tried again whose kind may not be served yet."""

_encode = msgspec.json.Encoder().encode


class Execution:
    """The state of a workload while its operations run."""

    def __init__(
        self,
        case: Case,
        client: ApiClient,
        pods: PodWatch,
        scheduler: MeasuredScheduler,
        run: Run,
        progress: Callable[[str], None],
    ) -> None:
        self._case, self._client, self._pods, self._scheduler = case, client, pods, scheduler
        self._run, self._progress = run, progress
        self._operations = case.operations()
        self._templates, self._mapper = Templates(case), RestMapper(client)
        # Rendering thousands of pods takes seconds, which belong to no measurement.
        self._batches = {
            index: PodBatch(each, self._templates)
            for index, each in enumerate(self._operations)
            if isinstance(each, CreatePods)
        }
        self._expected: dict[str, int] = {}
        """Pods by namespace that a barrier waits for."""
        self._namespaces: set[str] = set()
        self._measurement: Measurement | None = None
        self._background: list[asyncio.Task[None]] = []
        self._errors: list[str] = []

    async def run(self) -> None:
        """All operations. What was measured is in the run, also where this raises or is cancelled."""
        began = self._client.clock.monotonic()
        try:
            for index, operation in enumerate(self._operations):
                try:
                    await self._execute(index, operation)
                except (Fault, WorkloadError, ExceptionGroup) as error:
                    raise Fault(f"operation {index} ({_opcode(operation)}): {_first(error)}") from error
        finally:
            self._run.run_seconds = self._client.clock.monotonic() - began
            if self._measurement is not None:
                # The scheduler may be what failed: the metrics that it serves are the last to be read.
                with suppress(Fault):
                    await self._stop_measuring()
            for task in self._background:
                task.cancel()
            await asyncio.gather(*self._background, return_exceptions=True)
        if self._errors:
            raise Fault(f"{len(self._errors)} background requests failed, the first: {self._errors[0]}")

    async def _execute(self, index: int, operation: Operation) -> None:
        match operation:
            case CreateNodes():
                self._progress(f"creating {operation.count} nodes")
                await create_nodes(self._client, operation, self._templates, index)
            case CreateNamespaces():
                names = await create_namespaces(self._client, operation, self._templates)
                self._namespaces.update(names)
                self._expected |= {name: 0 for name in names if name not in self._expected}
            case CreatePods():
                await self._create_pods(index, operation)
            case DeletePods():
                deleting = delete_pods(operation, self._client)
                if operation.skip_wait_to_completion:
                    self._background.append(spawn_task(deleting, self._errors, "deletePods"))
                else:
                    await deleting
            case Churn():
                namespace = operation.namespace or f"namespace-{index}"
                await self._ensure_namespace(namespace)
                run = await churn(operation, self._client, self._templates, namespace)
                self._background.append(spawn_task(run(), self._errors, "churn"))
            case CreateAny():
                await self._create_any(operation.template_path, operation.namespace, operation.count)
            case CreateResourceClaims():
                await self._create_any(operation.template_path, operation.namespace, operation.count)
            case UpdateAny():
                await self._update_any(operation)
            case Barrier():
                await self._barrier(operation)
            case Sleep():
                await self._client.clock.sleep(seconds_of(operation.duration))
            case StartCollectingMetrics():
                await self._start_measuring(operation.name, operation.namespaces, operation.label_selector)
            case StopCollectingMetrics():
                await self._stop_measuring()
            case CreateResourceDriver():
                await publish_slices(self._client, operation)
            case AllocResourceClaims():
                await allocate_claims(self._client, operation.namespace)
            case _:
                raise WorkloadError("is not supported")

    # Pods

    async def _create_pods(self, index: int, operation: CreatePods) -> None:
        namespace = operation.namespace or f"namespace-{index}"
        await self._ensure_namespace(namespace)
        self._expected.setdefault(namespace, 0)
        if operation.collect_metrics:
            await self._start_measuring(namespace, [namespace], {})
        if operation.steady_state:
            await self._keep_steady(self._batches[index], namespace, seconds_of(operation.duration))
        else:
            self._progress(f"creating {operation.count} pods in {namespace}")
            await self._batches[index].create(self._client, namespace)
            if operation.skip_wait_to_completion:
                self._expected[namespace] += operation.count
            else:
                await self._wait(namespace, operation.count, {}, "scheduled")
        if operation.collect_metrics:
            await self._stop_measuring()

    async def _keep_steady(self, batch: PodBatch, namespace: str, seconds: float) -> None:
        """As soon as all pods are scheduled, delete them and create new ones, until the time is over."""
        self._progress(f"creating pods in {namespace} for {seconds:g} s")
        all_scheduled = asyncio.Event()
        counter = ScheduledCounter([namespace], {}, self._client.clock.monotonic)

        def on_scheduled(pod: WatchedPod) -> None:
            counter(pod)
            if counter.count % batch.count == 0:
                all_scheduled.set()

        async def go_on() -> None:
            await batch.create(self._client, namespace)
            while True:
                await all_scheduled.wait()
                all_scheduled.clear()
                await delete_all(self._client, PODS, namespace, grace=0)
                await batch.create(self._client, namespace)

        unsubscribe = self._pods.on_scheduled(on_scheduled)
        working = asyncio.create_task(go_on())
        try:
            await self._until_over(working, seconds)
        finally:
            unsubscribe()
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
        if not counter.count:
            raise WorkloadError("no pod was scheduled within the duration")

    async def _until_over(self, working: asyncio.Task[None], seconds: float) -> None:
        timer = asyncio.create_task(self._client.clock.sleep(seconds))
        await asyncio.wait([working, timer], return_when=asyncio.FIRST_COMPLETED)
        timer.cancel()
        if working.done():
            working.result()

    async def _barrier(self, operation: Barrier) -> None:
        if unknown := [name for name in operation.namespaces if name not in self._expected]:
            raise WorkloadError(f"unknown namespace {unknown[0]}")
        is_attempt = operation.stage_requirement == ATTEMPTED
        names = operation.namespaces or list(self._expected)
        for name in names:
            stage: Stage = "attempted" if is_attempt else "scheduled"
            await self._wait(name, self._expected[name], operation.label_selector, stage)
        if not is_attempt:
            for name in names:
                del self._expected[name]

    async def _wait(self, namespace: str, wanted: int, selector: Mapping[str, str], stage: Stage) -> None:
        clock = self._client.clock
        with self._pods.counting(namespace, selector, stage, wanted) as count:
            if count.all.done():
                return
            began = clock.monotonic()
            while not await ends_within(clock, POLL_SECONDS, count.all):
                self._progress(f"{count.reached} of {wanted} pods {stage} in {namespace}")
        if self._measurement is not None:
            # Upstream polls: until its next poll, another sample of the throughput may be taken.
            await clock.sleep(POLL_SECONDS - (clock.monotonic() - began) % POLL_SECONDS)

    # Other objects

    async def _ensure_namespace(self, name: str) -> None:
        if name not in self._namespaces:
            await create_if_absent(self._client, NAMESPACES, {"metadata": {"name": name}})
            self._namespaces.add(name)

    async def _create_any(self, path: str, namespace: str, count: int) -> None:
        template = self._templates.get(path)
        if namespace:
            await self._ensure_namespace(namespace)
            self._expected.setdefault(namespace, 0)
        for number in range(count):
            document = template.render(number, count)
            kind = await self._kind(document, namespace)
            target = f"{path_of(kind, namespace or None)}?{STRICT}"
            await self._retried(target, _encode(document))

    async def _retried(self, target: str, body: bytes) -> None:
        """A kind that was just defined may not be served yet."""
        clock = self._client.clock
        deadline = clock.monotonic() + RETRY_SECONDS
        while True:
            try:
                await self._client.transport.request("POST", target, body)
                return
            except Fault:
                if clock.monotonic() > deadline:
                    raise
            await clock.sleep(POLL_SECONDS)

    async def _update_any(self, operation: UpdateAny) -> None:
        template, namespace = self._templates.get(operation.template_path), operation.namespace
        rendered = [template.render(number, operation.count) for number in range(operation.count)]
        pace = ticks(self._client.clock, 1 / operation.update_per_second) if operation.update_per_second else None
        subresource = "/".join(operation.subresources) or None
        for document in rendered:
            if pace is not None:
                await anext(pace)
            kind, name = await self._kind(document, namespace), document["metadata"]["name"]
            for part in (subresource, "status"):
                target = f"{path_of(kind, namespace or None, name, part)}?{STRICT}"
                await self._client.transport.request("PUT", target, _encode(document))

    async def _kind(self, document: Document, namespace: str) -> Kind:
        kind = await self._mapper.kind(document["apiVersion"], document["kind"])
        if kind.namespaced != bool(namespace):
            raise WorkloadError(f"{kind.kind} is {'namespaced' if kind.namespaced else 'cluster-scoped'}")
        return kind

    # Metrics

    async def _start_measuring(self, name: str, namespaces: Iterable[str], selector: Mapping[str, str]) -> None:
        if self._measurement is not None:
            raise WorkloadError("metrics are being collected already")
        title = f"{self._case.name}/{name}" if name else self._case.name
        config = self._case.test_case.metrics_collector_config
        measurement = Measurement(
            title, self._pods, self._scheduler, config, self._client.clock, list(namespaces), selector
        )
        await measurement.start()
        self._measurement = measurement

    async def _stop_measuring(self) -> None:
        if self._measurement is None:
            raise WorkloadError("metrics are not being collected")
        measurement, self._measurement = self._measurement, None
        await measurement.stop(self._run)


def _opcode(operation: Operation) -> str:
    return str(type(operation).__struct_config__.tag)


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
