"""A simulated cluster: creates the initial objects, then runs kubelets and controllers.

Works on any API server. On the embedded one all nodes are simulated, and its own garbage collector deletes dependents.
On a real one only nodes with our annotation are (`all_nodes_are_simulated=False`), and where
kube-controller-manager runs, the controllers here stay off (`controllers=False`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

from mooring.base.clock import Clock
from mooring.base.errors import ApiError, Fault
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.client.core_event_recorder import CoreEventRecorder
from mooring.client.informer import Informer
from mooring.client.rest_mapper import NoKindMatch, RestMapper
from mooring.objects.meta import Kind
from mooring.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from mooring.simulated.cluster_file import InitialObjects
from mooring.simulated.controllers.cron_job_controller import CronJobController
from mooring.simulated.controllers.daemon_set_controller import DaemonSetController
from mooring.simulated.controllers.deployment_controller import DeploymentController
from mooring.simulated.controllers.disruption_controller import DisruptionController
from mooring.simulated.controllers.ephemeral_volume_controller import EphemeralVolumeController
from mooring.simulated.controllers.job_controller import JOBS, JobController
from mooring.simulated.controllers.job_scheduling import JobScheduling
from mooring.simulated.controllers.persistent_volume_controller import PersistentVolumeController
from mooring.simulated.controllers.pod_garbage_collector import PodGarbageCollector
from mooring.simulated.controllers.pod_group_protection_controller import PodGroupProtectionController
from mooring.simulated.controllers.replica_set_controller import ReplicaSetController
from mooring.simulated.controllers.resource_claim_controller import ResourceClaimController
from mooring.simulated.controllers.stateful_set_controller import StatefulSetController
from mooring.simulated.controllers.taint_eviction_controller import TaintEvictionController
from mooring.simulated.controllers.workload_records import (
    ControllerRevision,
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    StatefulSet,
)
from mooring.simulated.kubelet.kubelets import Kubelets
from mooring.simulated.kubelet.node_leases import LEASE_NAMESPACE, NodeLeases
from mooring.simulated.records import (
    BudgetRecord,
    ClaimRecord,
    ClaimTemplate,
    Document,
    NodeRecord,
    PodGroupRecord,
    PodRecord,
    WorkloadRecord,
)

DEFINITION_SECONDS = 30.0
_POLL_SECONDS = 0.1
_RESTART_SECONDS = 1.0
_CONCURRENT_CREATES = 32


class SimulatedCluster:
    """Nodes, kubelets and controllers, as supervised tasks on this event loop."""

    def __init__(
        self,
        client: ApiClient,
        *,
        clock: Clock,
        all_nodes_are_simulated: bool = True,
        controllers: bool = True,
        heartbeat_seconds: float | None = None,
        features: Collection[str] = (),
    ) -> None:
        self._client = client
        self._clock = clock
        self._log = Log("simulated")
        self._rest_mapper = RestMapper(client)
        self._tasks: list[asyncio.Task[None]] = []
        self._starting = asyncio.Semaphore(_CONCURRENT_CREATES)

        self.nodes = Informer(client, NodeRecord)
        self.pods = Informer(client, PodRecord)
        self.events = CoreEventRecorder(client, clock=clock, log=self._log)
        self.kubelets = Kubelets(
            client, self.nodes, self.pods, self.events, clock=clock, all_nodes_are_simulated=all_nodes_are_simulated
        )
        node_leases = NodeLeases(
            client, self.kubelets.simulated_nodes.values, clock=clock, interval_seconds=heartbeat_seconds
        )
        self._informers: list[Informer[Any]] = [self.nodes, self.pods]
        self._runs: dict[str, Callable[[], Awaitable[None]]] = {
            "events": self.events.run,
            "heartbeats": node_leases.run,
            **self.kubelets.tasks(),
        }
        self._features = frozenset(features)
        self.pod_groups: Informer[PodGroupRecord] | None = None
        self._controllers = controllers
        if controllers:
            self._add_controllers()

    def _add_controllers(self) -> None:
        client, clock, pods, events = self._client, self._clock, self.pods, self.events
        replica_sets = Informer(client, ReplicaSet)
        deployments = Informer(client, Deployment)
        stateful_sets = Informer(client, StatefulSet)
        daemon_sets = Informer(client, DaemonSet)
        revisions = Informer(client, ControllerRevision)
        jobs = Informer(client, Job)
        cron_jobs = Informer(client, CronJob)
        claims = Informer(client, PersistentVolumeClaim)
        volumes = Informer(client, PersistentVolume)
        storage_classes = Informer(client, StorageClass)
        budgets = Informer(client, BudgetRecord)
        self._informers += [replica_sets, deployments, stateful_sets, daemon_sets, revisions, jobs, cron_jobs]
        self._informers += [claims, volumes, storage_classes, budgets]
        self._runs |= ReplicaSetController(client, replica_sets, pods, events, clock=clock).tasks()
        self._runs |= DeploymentController(client, deployments, replica_sets, pods, events, clock=clock).tasks()
        self._runs |= StatefulSetController(client, stateful_sets, revisions, pods, claims, events, clock=clock).tasks()
        self._runs |= DaemonSetController(client, daemon_sets, revisions, self.nodes, pods, events, clock=clock).tasks()
        scheduling = self._add_pod_groups()
        self._runs |= JobController(client, jobs, pods, events, clock=clock, scheduling=scheduling).tasks()
        self._runs |= CronJobController(client, cron_jobs, jobs, events, clock=clock).tasks()
        self.evictions = TaintEvictionController(client, self.nodes, pods, events, clock=clock)
        self._runs |= self.evictions.tasks()
        self._runs |= PodGarbageCollector(client, self.nodes, pods, clock=clock).tasks()
        self._runs |= EphemeralVolumeController(client, pods, claims, clock=clock).tasks()
        self._runs |= DisruptionController(
            client, budgets, pods, deployments, replica_sets, stateful_sets, self._rest_mapper, events, clock=clock
        ).tasks()
        self._runs |= PersistentVolumeController(client, claims, volumes, storage_classes, events, clock=clock).tasks()

    def _add_pod_groups(self) -> JobScheduling | None:
        """Run the controllers of pod groups, as far as their feature gates are on."""
        if "GenericWorkload" not in self._features:
            return None
        self.pod_groups = groups = Informer(self._client, PodGroupRecord)
        self._informers.append(groups)
        protection = PodGroupProtectionController(self._client, groups, self.pods, clock=self._clock)
        self._runs |= protection.tasks()
        if "WorkloadWithJob" not in self._features:
            return None
        workloads = Informer(self._client, WorkloadRecord)
        self._informers.append(workloads)
        return JobScheduling(self._client, workloads, groups, self.events, JOBS)

    async def _add_device_claims(self) -> None:
        """Run the resource claim controller, if the server serves ResourceClaims."""
        kind = ClaimRecord.KIND
        try:
            await self._rest_mapper.kind(kind.api_version, kind.kind)
        except NoKindMatch as error:
            self._log.v(1).info("The resource claim controller does not run", reason=str(error))
            return
        claims, templates = Informer(self._client, ClaimRecord), Informer(self._client, ClaimTemplate)
        self._informers += [claims, templates]
        self._runs |= ResourceClaimController(
            self._client,
            self.pods,
            claims,
            templates,
            self.events,
            clock=self._clock,
            pod_groups=self.pod_groups if "DRAWorkloadResourceClaims" in self._features else None,
        ).tasks()

    async def start(self, initial: InitialObjects | None = None) -> None:
        """Create the initial objects and run. Returns when all informers have synced and the objects are created.

        Existing objects are kept, but for labels and annotations of namespaces, which are merged. Missing namespaces
        are created. An object that the server rejects raises a Fault that names it.
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
        for informer in self._informers:
            self._spawn(f"watching {informer.type.KIND.plural}", informer.reflector.run)
        await asyncio.gather(*(informer.reflector.synced.wait() for informer in self._informers))
        for name, run in self._runs.items():
            self._spawn(name, run)
        for document in initial.objects:  # in the file's order: a pod may need the class before it
            await self._create(document)

    async def stop(self) -> None:
        """Cancel every task and wait until it has ended."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    def _spawn(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        self._tasks.append(asyncio.create_task(self._supervise(name, run), name=f"simulated {name}"))

    async def _supervise(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Restart a component that fails: the others must not go on in a cluster without it."""
        while True:
            try:
                await run()
                return
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
                self._log.error(
                    "A component of the simulated cluster failed and is restarted", component=name, err=reason
                )
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
            if kind.kind == "Namespace" and marks:  # selectors read the labels of `default`, which always exists
                await self._client.patch(kind, metadata["name"], None, {"metadata": marks}, form="merge")

    async def _kind(self, document: Document) -> Kind:
        try:
            return await self._rest_mapper.kind(document["apiVersion"], document["kind"])
        except NoKindMatch as error:
            name = document["metadata"].get("name")
            raise Fault(f'{document["kind"]} "{name}" could not be created: {error}') from error

    async def _until_served(self, definition: Document) -> None:
        """Wait until the server serves the kind of a new definition."""
        spec = definition["spec"]
        versions = [version["name"] for version in spec["versions"] if version.get("served")]
        deadline = self._clock.monotonic() + DEFINITION_SECONDS
        while self._clock.monotonic() < deadline:
            try:
                for version in versions:
                    await self._rest_mapper.kind(f"{spec['group']}/{version}", spec["names"]["kind"])
                return
            except NoKindMatch:
                await self._clock.sleep(_POLL_SECONDS)
        name = definition["metadata"]["name"]
        raise Fault(f'CustomResourceDefinition "{name}" was created but its kind is not served')


def _namespace(name: str) -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
