"""Runs the controllers: each begins once the server serves its kind, and is restarted if it fails."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

from mooring.base.clock import Clock
from mooring.base.errors import Fault
from mooring.base.log import Log
from mooring.base.retry import Backoff
from mooring.client import ApiClient
from mooring.client.core_event_recorder import CoreEventRecorder
from mooring.client.informer import Informer
from mooring.client.rest_mapper import NoKindMatch, RestMapper
from mooring.controllers.cluster_room import ClusterRoom
from mooring.controllers.elastic_quota_controller import ElasticQuotaController
from mooring.controllers.node_topology_controller import NodeTopologyController
from mooring.controllers.pod_group_controller import PodGroupController
from mooring.controllers.pod_group_problem_controller import PodGroupProblemController
from mooring.controllers.pod_group_problems import COSCHEDULING, GANG
from mooring.objects import Node, Pod
from mooring.objects.meta import Kind
from mooring.objects.pod_groups import PodGroup
from mooring.plugins.community.capacity_scheduling.quotas import ElasticQuota
from mooring.plugins.community.coscheduling.pod_groups import CoschedulingGroup
from mooring.plugins.community.node_resource_topology.topologies import NodeResourceTopology

RESTART_SECONDS = 1.0
POLL = Backoff(initial_seconds=2.0, limit_seconds=10.0)
"""Of discovery, for a kind that is not served yet."""
KINDS: tuple[Kind, ...] = (CoschedulingGroup.KIND, ElasticQuota.KIND, PodGroup.KIND, NodeResourceTopology.KIND)

Run = Callable[[], Awaitable[None]]


class Controllers:
    """Controllers of the resources that Mooring's plugins read, on this event loop."""

    def __init__(self, client: ApiClient, *, clock: Clock) -> None:
        self._client, self._clock, self._log = client, clock, Log("controllers")
        self._mapper = RestMapper(client)
        self._pods: Informer[Pod] | None = None
        self._nodes: Informer[Node] | None = None
        self._room: ClusterRoom | None = None
        self._events = CoreEventRecorder(client, clock=clock, log=self._log)
        self._tasks: list[asyncio.Task[None]] = []
        self.running: dict[str, asyncio.Event] = {kind.name: asyncio.Event() for kind in KINDS}
        """By resource and API group: set once its controller runs."""

    def start(self) -> None:
        """Begin to wait for the kinds. Pods and nodes are watched from the first of them on, and not before."""
        self._spawn("events", self._events.run)
        self._spawn("pod groups", self._run_pod_groups)
        self._spawn("gangs", self._run_gangs)
        self._spawn("elastic quotas", self._run_elastic_quotas)
        self._spawn("node topologies", self._run_node_topologies)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _run_pod_groups(self) -> None:
        await self._until_served(CoschedulingGroup.KIND)
        groups, pods = Informer(self._client, CoschedulingGroup), self._watched_pods()
        status = PodGroupController(self._client, groups, pods, self._events, clock=self._clock)
        problems = PodGroupProblemController(
            COSCHEDULING, groups, pods, self._watched_room(), self._events, clock=self._clock
        )
        await self._run(groups, status.tasks() | problems.tasks())

    async def _run_gangs(self) -> None:
        await self._until_served(PodGroup.KIND)
        groups = Informer(self._client, PodGroup)
        problems = PodGroupProblemController(
            GANG, groups, self._watched_pods(), self._watched_room(), self._events, clock=self._clock
        )
        await self._run(groups, problems.tasks())

    async def _run_elastic_quotas(self) -> None:
        await self._until_served(ElasticQuota.KIND)
        quotas = Informer(self._client, ElasticQuota)
        controller = ElasticQuotaController(
            self._client, quotas, self._watched_pods(), self._watched_room(), self._events, clock=self._clock
        )
        await self._run(quotas, controller.tasks())

    async def _run_node_topologies(self) -> None:
        await self._until_served(NodeResourceTopology.KIND)
        topologies = Informer(self._client, NodeResourceTopology)
        controller = NodeTopologyController(topologies, self._watched_nodes(), self._events, clock=self._clock)
        await self._run(topologies, controller.tasks())

    def _watched_pods(self) -> Informer[Pod]:
        if self._pods is None:
            self._pods = Informer(self._client, Pod)
            self._spawn("watching pods", self._pods.reflector.run)
        return self._pods

    def _watched_nodes(self) -> Informer[Node]:
        if self._nodes is None:
            self._nodes = Informer(self._client, Node)
            self._spawn("watching nodes", self._nodes.reflector.run)
        return self._nodes

    def _watched_room(self) -> ClusterRoom:
        if self._room is None:
            self._room = ClusterRoom.watching(self._watched_nodes())
        return self._room

    async def _run(self, informer: Informer[Any], tasks: dict[str, Run]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_forever(informer.reflector.run))
            # With a part of the pods or nodes a status or an event would be wrong for a moment.
            for each in (informer, self._pods, self._nodes):
                if each is not None:
                    await each.reflector.synced.wait()
            self.running[informer.type.KIND.name].set()
            self._log.info("Controller started", resource=informer.type.KIND.name)
            for run in tasks.values():
                group.create_task(_forever(run))

    async def _until_served(self, kind: Kind) -> None:
        for failures in itertools.count(1):
            try:
                await self._mapper.kind(kind.api_version, kind.kind)
                return
            except NoKindMatch:
                await self._clock.sleep(POLL.delay(failures))

    def _spawn(self, name: str, run: Run) -> None:
        self._tasks.append(asyncio.create_task(self._supervise(name, run), name=f"controllers: {name}"))

    async def _supervise(self, name: str, run: Run) -> None:
        while True:
            try:
                await run()
                return
            except (Fault, ExceptionGroup, OSError, ValueError, LookupError, TypeError) as error:
                self._log.error("A controller failed and is restarted", controller=name, err=str(error))
                await self._clock.sleep(RESTART_SECONDS)


async def _forever(run: Run) -> None:
    await run()
