"""Shutdown: what is in flight gets a few seconds, all of it together; plugins get fewer."""

from __future__ import annotations

import asyncio

import msgspec

from mooring.scheduler.cycle.binding_cycle import BindingCycles
from mooring.scheduler.cycle.pod_group_conditions import PodGroupConditions
from mooring.scheduler.cycle.preemption import ClaimReleases, Preemption
from mooring.scheduler.cycle.reporting import Reporter
from mooring.scheduler.extenders import Extenders
from mooring.scheduler.introspection.explain_socket import ExplainSocket
from mooring.scheduler.introspection.foreign_bindings import ForeignBindings
from mooring.scheduler.plugin_runtime.http_service import HttpFetcher
from mooring.scheduler.plugin_runtime.lifecycle import Lifecycle
from mooring.scheduler.plugin_runtime.supervision import Supervisor
from mooring.scheduler.reload.versions import Versions

LAST_SECONDS, LEAST_SECONDS = 5.0, 0.5
SHUTDOWN_SECONDS = 3.0
"""How long the shutdown may take where plugins delay it. Plugins have a third of it to end by themselves."""


class Shutdown(msgspec.Struct):
    """Leaves nothing running."""

    bindings: BindingCycles
    preemption: Preemption
    claim_releases: ClaimReleases
    conditions: PodGroupConditions
    versions: Versions
    lifecycle: Lifecycle
    supervisor: Supervisor
    http: HttpFetcher
    extenders: Extenders | None
    foreign_bindings: ForeignBindings
    reporter: Reporter
    explain_socket: ExplainSocket | None
    seconds: float = SHUTDOWN_SECONDS

    async def run(self) -> None:
        now = asyncio.get_running_loop().time
        last_moment = now() + LAST_SECONDS
        for_plugins = min(self.seconds / 3, LAST_SECONDS)
        plugins_end = now() + for_plugins

        def left() -> float:
            return max(LEAST_SECONDS, last_moment - now())

        def plugins_left() -> float:
            return max(for_plugins / 10, plugins_end - now())

        if self.explain_socket is not None:
            await self.explain_socket.close()
        await self.bindings.finish(left(), plugins_left())
        await self.preemption.finish(left())
        await self.claim_releases.finish(left())
        await self.conditions.finish(left())
        await self.versions.close(plugins_left())
        await self.lifecycle.stop_all(plugins_left)
        await self.supervisor.stop(plugins_left())
        await self.http.close()
        if self.extenders is not None:
            await self.extenders.close()
        await self.foreign_bindings.close()
        await self.reporter.close(left())
