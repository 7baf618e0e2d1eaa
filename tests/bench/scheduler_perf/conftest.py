"""An embedded API server, time that passes with every sleep, and a scheduler that puts every pod on one node."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from mooring.apiserver import EmbeddedApiServer
from mooring.base.clock import ManualClock
from mooring.base.errors import ApiError
from mooring.bench.processes import Usage
from mooring.bench.scheduler_perf.measuring import MeasuredScheduler
from mooring.bench.scheduler_perf.pod_watch import PodWatch, WatchedPod
from mooring.client import ApiClient, Connection, Reflector
from mooring.objects.object_store import Present

NODE = "node-a"


class HurriedClock(ManualClock):
    """A sleep takes no time of the test, but lets requests and watches go on; a long one lasts until the test is
    satisfied."""

    LONG_SECONDS = 2.0

    def __init__(self) -> None:
        super().__init__()
        self.is_over: Callable[[], bool] = lambda: True

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0.002)
        while seconds >= self.LONG_SECONDS and not self.is_over():  # noqa: ASYNC110  # many conditions, one test each
            await asyncio.sleep(0.002)
        self.advance(seconds)


class BindingScheduler(MeasuredScheduler):
    """Binds pods as they come, while it is switched on; counts them as a metric."""

    def __init__(self, client: ApiClient) -> None:
        self._client, self.is_on, self.bound = client, True, 0
        self.tasks: list[asyncio.Task[None]] = []

    def found(self, pod: WatchedPod, /) -> None:
        self.changed(pod)

    def listed(self, present: Present, /) -> None: ...

    def changed(self, pod: WatchedPod, /) -> None:
        if self.is_on and not pod.is_scheduled:
            self.tasks.append(asyncio.create_task(self._bind(pod)))

    def deleted(self, pod: WatchedPod, /) -> None:
        pass

    async def _bind(self, pod: WatchedPod) -> None:
        try:
            await self._client.bind(pod.namespace, pod.name, pod.uid, NODE)
        except ApiError:
            return  # another update of the pod came before its binding
        self.bound += 1

    async def metrics(self) -> str:
        name, labels = "scheduler_scheduling_attempt_duration_seconds", 'result="scheduled"'
        buckets = [f'{name}_bucket{{{labels},le="{bound}"}} {self.bound}' for bound in ("0.001", "+Inf")]
        return "\n".join(
            [*buckets, f"{name}_count{{{labels}}} {self.bound}", f"{name}_sum{{{labels}}} {self.bound / 1e3}"]
        )

    def usage(self) -> Usage:
        return Usage(self.bound / 1000, 50.0)


@pytest.fixture
def clock() -> HurriedClock:
    return HurriedClock()


@pytest.fixture
async def client(clock: HurriedClock) -> AsyncIterator[ApiClient]:
    server = EmbeddedApiServer()
    await server.start()
    connection = Connection(server=server.url, source="a test", ca_data=server.ca_pem.encode(), token=server.token)
    async with ApiClient(connection, clock=clock) as client:
        yield client
    await server.stop()


@asynccontextmanager
async def watching(pods: PodWatch, client: ApiClient) -> AsyncIterator[None]:
    reflector = pods.reflector(client)
    task = asyncio.create_task(reflector.run())
    await reflector.synced.wait()
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def pods(client: ApiClient) -> AsyncIterator[PodWatch]:
    watch = PodWatch()
    async with watching(watch, client):
        yield watch


@pytest.fixture
async def scheduler(client: ApiClient) -> AsyncIterator[BindingScheduler]:
    scheduler = BindingScheduler(client)
    reflector = Reflector(client, WatchedPod, scheduler)
    task = asyncio.create_task(reflector.run())
    await reflector.synced.wait()
    yield scheduler
    task.cancel()
    await asyncio.gather(task, *scheduler.tasks, return_exceptions=True)
