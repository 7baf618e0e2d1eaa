"""Runs the controllers: each begins once the server serves its kind, and is restarted if it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from mooring.base.clock import Clock
from mooring.base.errors import Fault
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.controllers.elastic_quota_controller import ElasticQuotaController
from mooring.controllers.pod_group_controller import PodGroupController
from mooring.objects import Pod
from mooring.objects.meta import Kind
from mooring.plugins.community.capacity_scheduling.quotas import ElasticQuota
from mooring.plugins.community.coscheduling.pod_groups import CoschedulingGroup
from mooring.simulated.event_recorder import CoreEventRecorder
from mooring.simulated.informer import Informer
from mooring.simulated.rest_mapper import NoKindMatch, RestMapper

POLL_SECONDS, RESTART_SECONDS = 2.0, 1.0
KINDS: tuple[Kind, ...] = (CoschedulingGroup.KIND, ElasticQuota.KIND)

Run = Callable[[], Awaitable[None]]


class Controllers:
    """Controllers of the custom resources of Mooring's plugins, on this event loop."""

    def __init__(self, client: ApiClient, *, clock: Clock) -> None:
        self._client, self._clock, self._log = client, clock, Log("controllers")
        self._mapper = RestMapper(client)
        self._pods: Informer[Pod] | None = None
        self._events = CoreEventRecorder(client, clock=clock, log=self._log)
        self._tasks: list[asyncio.Task[None]] = []
        self.running: dict[str, asyncio.Event] = {kind.plural: asyncio.Event() for kind in KINDS}
        """By resource: set once its controller runs."""

    def start(self) -> None:
        """Begin to wait for the kinds. Pods are watched from the first of them on, and not before."""
        self._spawn("events", self._events.run)
        self._spawn("pod groups", self._run_pod_groups)
        self._spawn("elastic quotas", self._run_elastic_quotas)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _run_pod_groups(self) -> None:
        await self._until_served(CoschedulingGroup.KIND)
        groups = Informer(self._client, CoschedulingGroup)
        controller = PodGroupController(self._client, groups, self._watched_pods(), self._events, clock=self._clock)
        await self._run(groups, controller.tasks())

    async def _run_elastic_quotas(self) -> None:
        await self._until_served(ElasticQuota.KIND)
        quotas = Informer(self._client, ElasticQuota)
        controller = ElasticQuotaController(self._client, quotas, self._watched_pods(), self._events, clock=self._clock)
        await self._run(quotas, controller.tasks())

    def _watched_pods(self) -> Informer[Pod]:
        if self._pods is None:
            self._pods = Informer(self._client, Pod)
            self._spawn("watching pods", self._pods.reflector.run)
        return self._pods

    async def _run(self, informer: Informer[Any], tasks: dict[str, Run]) -> None:
        assert self._pods is not None
        async with asyncio.TaskGroup() as group:
            group.create_task(_forever(informer.reflector.run))
            # With a part of the pods a status would be wrong for a moment.
            await asyncio.gather(informer.reflector.synced.wait(), self._pods.reflector.synced.wait())
            self.running[informer.type.KIND.plural].set()
            self._log.info("Controller started", resource=informer.type.KIND.name)
            for run in tasks.values():
                group.create_task(_forever(run))

    async def _until_served(self, kind: Kind) -> None:
        while True:
            try:
                await self._mapper.kind(kind.api_version, kind.kind)
                return
            except NoKindMatch:
                await self._clock.sleep(POLL_SECONDS)

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
