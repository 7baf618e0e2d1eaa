"""A simulated cluster on the embedded API server, in this process, watched by the test."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any, ClassVar

import pytest

from mooring.apiserver import EmbeddedApiServer
from mooring.base.clock import Clock, ManualClock, SystemClock
from mooring.client import ApiClient, Connection, Reflector
from mooring.objects.meta import Kind, KubeObject
from mooring.objects.object_store import Present
from mooring.objects.storage import PersistentVolumeClaim
from mooring.simulated.cluster import SimulatedCluster
from mooring.simulated.cluster_file import InitialObjects, parse_cluster, plain_nodes
from mooring.simulated.controllers.daemon_sets import target_node
from mooring.simulated.controllers.workload_records import (
    ControllerRevision,
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    StatefulSet,
)
from mooring.simulated.records import BudgetRecord, NodeRecord, PodRecord

# For a machine that is busy with other things; nothing waits this long when all is well.
PATIENCE_SECONDS = 90.0
LOOK_AGAIN_SECONDS = 0.05
POD, NODE = PodRecord.KIND, NodeRecord.KIND
DEPLOYMENT, REPLICA_SET = Deployment.KIND, ReplicaSet.KIND


class EventRecord(KubeObject, version="v1", plural="events", kind="Event"):
    KIND: ClassVar[Kind]

    reason: str = ""
    message: str = ""
    count: int = 0
    source: dict[str, str] = {}
    involved_object: dict[str, str] = {}


class Seen:
    """Everything of some kinds as a client sees it; `until` waits for the next change, and time decides nothing."""

    TYPES: tuple[type[Any], ...] = (
        PodRecord,
        NodeRecord,
        Deployment,
        ReplicaSet,
        StatefulSet,
        DaemonSet,
        Job,
        CronJob,
        ControllerRevision,
        PersistentVolumeClaim,
        BudgetRecord,
        EventRecord,
    )

    def __init__(self, client: ApiClient) -> None:
        self._news = asyncio.Event()
        self.gone: dict[str, int] = {}
        """At which resource version the last object of a kind went: one order for all kinds."""
        self._kept: dict[str, dict[str, Any]] = {type_.KIND.plural: {} for type_ in self.TYPES}
        self._reflectors = [Reflector(client, type_, _Keeper(self, type_)) for type_ in self.TYPES]
        self._tasks = [asyncio.create_task(reflector.run()) for reflector in self._reflectors]

    async def synced(self) -> None:
        for reflector in self._reflectors:
            await reflector.synced.wait()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def of(self, plural: str) -> dict[str, Any]:
        return self._kept[plural]

    @property
    def pods(self) -> list[PodRecord]:
        return list(self._kept["pods"].values())

    @property
    def events(self) -> list[tuple[str, str]]:
        return [(event.reason, event.message) for event in self._kept["events"].values()]

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition():
                self._news.clear()
                with contextlib.suppress(TimeoutError):  # the cluster's watch may deliver it after ours
                    async with asyncio.timeout(LOOK_AGAIN_SECONDS):
                        await self._news.wait()

    def moved(self) -> None:
        self._news.set()


class _Keeper:
    def __init__(self, seen: Seen, type_: type[Any]) -> None:
        self._seen = seen
        self._kept = seen._kept[type_.KIND.plural]

    def found(self, object: Any, /) -> None:
        self._kept[object.key] = object

    def listed(self, present: Present, /) -> None:
        for key in self._kept.keys() - present.keys():
            del self._kept[key]
        self._seen.moved()

    def changed(self, object: Any, /) -> None:
        self._kept[object.key] = object
        self._seen.moved()

    def deleted(self, object: Any, /) -> None:
        self._kept.pop(object.key, None)
        self._seen.gone[type(object).KIND.kind] = int(object.metadata.resource_version)
        self._seen.moved()


class Bench:
    """What a test holds: the server, a client, the simulated cluster and what can be seen of it."""

    def __init__(self, server: EmbeddedApiServer) -> None:
        self.server = server
        self.client = ApiClient(
            Connection(server=server.url, source="the test", token=server.token, ca_data=server.ca_pem.encode())
        )
        self.seen = Seen(self.client)
        self.cluster: SimulatedCluster | None = None
        self._binding: set[asyncio.Task[None]] = set()
        self._bound = 0

    async def start(
        self, nodes: int | str = 2, *, clock: Clock | None = None, binds: bool = True, **options: Any
    ) -> SimulatedCluster:
        """Nodes by number or by cluster file. A toy scheduler binds pods to nodes in turn, daemons to theirs."""
        now = (clock or SystemClock()).now()
        initial: InitialObjects = (
            parse_cluster(nodes, "test", now=now) if isinstance(nodes, str) else plain_nodes(nodes, now=now)
        )
        options.setdefault("heartbeat_seconds", 0)
        self.cluster = SimulatedCluster(self.client, clock=clock or SystemClock(), **options)
        if binds:
            self.cluster.pods.subscribe(changed=self._bind)
        await self.cluster.start(initial)
        await self.seen.synced()
        return self.cluster

    def _bind(self, pod: PodRecord) -> None:
        assert self.cluster is not None
        if not pod.spec.node_name and not pod.is_terminating:
            names = sorted(self.cluster.kubelets.simulated_nodes)
            self._bound += 1
            name = target_node(pod) or names[self._bound % len(names)]
            task = asyncio.create_task(self.client.bind(pod.namespace, pod.name, pod.uid, name))
            self._binding.add(task)
            task.add_done_callback(self._binding.discard)

    async def pass_time(self, clock: ManualClock, seconds: float, condition: Callable[[], object]) -> None:
        """Let time pass in steps until the condition holds; between steps one request is sent to the server."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition():
                clock.advance(seconds)
                await self.client.server_version()

    async def stop(self) -> None:
        if self.cluster is not None:
            await self.cluster.stop()
        await asyncio.gather(*self._binding, return_exceptions=True)
        await self.seen.stop()
        await self.client.close()


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    server = EmbeddedApiServer()
    await server.start()
    bench = Bench(server)
    try:
        yield bench
    finally:
        await bench.stop()
        await server.stop()


def pod_document(name: str = "web", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "annotations": more.pop("annotations", {}), "labels": more.pop("labels", {})}
    metadata |= {key: more.pop(key) for key in ("ownerReferences", "finalizers") if key in more}
    containers = more.pop("containers", [{"name": "app", "image": "nginx:1.27"}])
    return {"metadata": metadata, "spec": {"containers": containers, **more}}


def deployment_document(name: str = "web", replicas: int = 3, image: str = "nginx:1.27", **more: Any) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": image}]}}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, **more},
    }
