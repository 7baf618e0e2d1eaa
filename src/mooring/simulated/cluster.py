"""A simulated cluster: what it starts with, then kubelets and controllers for as long as it runs.

Works on any API server. The embedded one has only our nodes and removes by itself what nobody owns. On a real one, only
nodes that carry our annotation are ours (`all_nodes_are_ours=False`), and where a controller manager runs, ours stay
off (`controllers=False`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from mooring.base.clock import Clock
from mooring.base.errors import ApiError, Fault
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.objects.meta import Kind
from mooring.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from mooring.simulated.cluster_file import InitialObjects
from mooring.simulated.controllers.cron_job_controller import CronJobs
from mooring.simulated.controllers.daemon_set_controller import DaemonSets
from mooring.simulated.controllers.deployment_controller import Deployments, ReplicaSets
from mooring.simulated.controllers.disruption_controller import DisruptionBudgets
from mooring.simulated.controllers.ephemeral_volume_controller import EphemeralClaims
from mooring.simulated.controllers.job_controller import Jobs
from mooring.simulated.controllers.persistent_volume_controller import Volumes
from mooring.simulated.controllers.resource_claim_controller import DeviceClaims
from mooring.simulated.controllers.stateful_set_controller import StatefulSets
from mooring.simulated.controllers.taint_eviction_controller import TaintEvictions
from mooring.simulated.controllers.workload_records import (
    ControllerRevision,
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    StatefulSet,
)
from mooring.simulated.event_recorder import Events
from mooring.simulated.informer import Watched
from mooring.simulated.kubelet.kubelets import Kubelets
from mooring.simulated.kubelet.node_leases import LEASE_NAMESPACE, Heartbeats
from mooring.simulated.records import BudgetRecord, ClaimRecord, ClaimTemplate, Document, NodeRecord, PodRecord
from mooring.simulated.rest_mapper import Discovery, UnknownKind

DEFINITION_SECONDS = 30.0
_LOOK_AGAIN_SECONDS = 0.1
_RESTART_SECONDS = 1.0
_CREATING_AT_ONCE = 32


class SimulatedCluster:
    """Nodes, kubelets and controllers, as supervised tasks on this event loop."""

    def __init__(
        self,
        client: ApiClient,
        *,
        clock: Clock,
        all_nodes_are_ours: bool = True,
        controllers: bool = True,
        heartbeat_seconds: float | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._log = Log("simulated")
        self._discovery = Discovery(client)
        self._tasks: list[asyncio.Task[None]] = []
        self._starting = asyncio.Semaphore(_CREATING_AT_ONCE)

        self.nodes = Watched(client, NodeRecord)
        self.pods = Watched(client, PodRecord)
        self.events = Events(client, clock=clock, log=self._log)
        self.kubelets = Kubelets(
            client, self.nodes, self.pods, self.events, clock=clock, all_nodes_are_ours=all_nodes_are_ours
        )
        heartbeats = Heartbeats(client, self.kubelets.machines.values, clock=clock, interval_seconds=heartbeat_seconds)
        self._watched: list[Watched[Any]] = [self.nodes, self.pods]
        self._runs: dict[str, Callable[[], Awaitable[None]]] = {
            "events": self.events.run,
            "heartbeats": heartbeats.run,
            **self.kubelets.tasks(),
        }
        self._controllers = controllers
        if controllers:
            self._add_controllers()

    def _add_controllers(self) -> None:
        client, clock, pods, events = self._client, self._clock, self.pods, self.events
        replica_sets = Watched(client, ReplicaSet)
        deployments = Watched(client, Deployment)
        stateful_sets = Watched(client, StatefulSet)
        daemon_sets = Watched(client, DaemonSet)
        revisions = Watched(client, ControllerRevision)
        jobs = Watched(client, Job)
        cron_jobs = Watched(client, CronJob)
        claims = Watched(client, PersistentVolumeClaim)
        volumes = Watched(client, PersistentVolume)
        storage_classes = Watched(client, StorageClass)
        budgets = Watched(client, BudgetRecord)
        self._watched += [replica_sets, deployments, stateful_sets, daemon_sets, revisions, jobs, cron_jobs]
        self._watched += [claims, volumes, storage_classes, budgets]
        self._runs |= ReplicaSets(client, replica_sets, pods, events, clock=clock).tasks()
        self._runs |= Deployments(client, deployments, replica_sets, pods, events, clock=clock).tasks()
        self._runs |= StatefulSets(client, stateful_sets, revisions, pods, claims, events, clock=clock).tasks()
        self._runs |= DaemonSets(client, daemon_sets, revisions, self.nodes, pods, events, clock=clock).tasks()
        self._runs |= Jobs(client, jobs, pods, events, clock=clock).tasks()
        self._runs |= CronJobs(client, cron_jobs, jobs, events, clock=clock).tasks()
        self.evictions = TaintEvictions(client, self.nodes, pods, events, clock=clock)
        self._runs |= self.evictions.tasks()
        self._runs |= EphemeralClaims(client, pods, claims, clock=clock).tasks()
        self._runs |= DisruptionBudgets(
            client, budgets, pods, deployments, replica_sets, stateful_sets, self._discovery, events, clock=clock
        ).tasks()
        self._runs |= Volumes(client, claims, volumes, storage_classes, events, clock=clock).tasks()

    async def _add_device_claims(self) -> None:
        """Unless the server is too old to have them."""
        kind = ClaimRecord.KIND
        try:
            await self._discovery.kind(kind.api_version, kind.kind)
        except UnknownKind as error:
            self._log.v(1).info("No controller of device claims runs", reason=str(error))
            return
        claims, templates = Watched(self._client, ClaimRecord), Watched(self._client, ClaimTemplate)
        self._watched += [claims, templates]
        self._runs |= DeviceClaims(self._client, self.pods, claims, templates, self.events, clock=self._clock).tasks()

    async def start(self, initial: InitialObjects | None = None) -> None:
        """Create what the cluster starts with and run. Returns when everything is watched.

        What exists already stays as it is, but for labels and annotations of namespaces. A namespace that objects are
        in and that is not among them is made. An object that the server refuses is a Fault that names it.
        """
        initial = initial or InitialObjects()
        await self._create_all(initial.namespaces)
        listed = {each["metadata"].get("name") for each in initial.namespaces}
        used = {each["metadata"].get("namespace") for each in initial.objects} - {None, ""}
        await self._create_all([_namespace(name) for name in sorted((used | {LEASE_NAMESPACE}) - listed)])
        await self._create_all(initial.definitions)
        for definition in initial.definitions:
            await self._until_served(definition)
        await self._create_all(initial.nodes)
        if self._controllers:
            await self._add_device_claims()
        for watched in self._watched:
            self._spawn(f"watching {watched.type.KIND.plural}", watched.reflector.run)
        await asyncio.gather(*(watched.reflector.synced.wait() for watched in self._watched))
        for name, run in self._runs.items():
            self._spawn(name, run)
        for document in initial.objects:  # in the file's order: a pod may need the class before it
            await self._create(document)

    async def stop(self) -> None:
        """End every task and wait until it has ended."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    def _spawn(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        self._tasks.append(asyncio.create_task(self._supervise(name, run), name=f"simulated {name}"))

    async def _supervise(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """A part that fails is started again: the others must not go on in a cluster that is half alive."""
        while True:
            try:
                await run()
                return
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
                self._log.error("A part of the simulated cluster failed and starts again", part=name, err=reason)
                await self._clock.sleep(_RESTART_SECONDS)

    async def _create_all(self, documents: Sequence[Document]) -> None:
        await asyncio.gather(*(self._create_bounded(document) for document in documents))

    async def _create_bounded(self, document: Document) -> None:
        async with self._starting:
            await self._create(document)

    async def _create(self, document: Document) -> None:
        kind = await self._kind(document)
        metadata = document["metadata"]
        namespace = metadata.get("namespace") or self._client.connection.namespace
        try:
            await self._client.create(kind, document, namespace if kind.namespaced else None)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                name = metadata.get("name") or metadata.get("generateName")
                raise Fault(f'{kind.kind} "{name}" could not be created: {error}') from error
            marks = {key: metadata[key] for key in ("labels", "annotations") if metadata.get(key)}
            if kind.kind == "Namespace" and marks:  # `default` is always there, and selectors read its labels
                await self._client.patch(kind, metadata["name"], None, {"metadata": marks}, form="merge")

    async def _kind(self, document: Document) -> Kind:
        try:
            return await self._discovery.kind(document["apiVersion"], document["kind"])
        except UnknownKind as error:
            name = document["metadata"].get("name")
            raise Fault(f'{document["kind"]} "{name}" could not be created: {error}') from error

    async def _until_served(self, definition: Document) -> None:
        """Wait until the server serves a custom kind that was just defined."""
        spec = definition["spec"]
        versions = [version["name"] for version in spec["versions"] if version.get("served")]
        deadline = self._clock.monotonic() + DEFINITION_SECONDS
        while self._clock.monotonic() < deadline:
            try:
                for version in versions:
                    await self._discovery.kind(f"{spec['group']}/{version}", spec["names"]["kind"])
                return
            except UnknownKind:
                await self._clock.sleep(_LOOK_AGAIN_SECONDS)
        name = definition["metadata"]["name"]
        raise Fault(f'CustomResourceDefinition "{name}" was created but its kind is not served')


def _namespace(name: str) -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
