"""The cluster that the page shows: read from a file, or kept up to date by list and watch.

One state, one thread. A live mirror is a scheduler that never schedules: the same watches, plugins and state, and a
client that cannot write. Decisions on it are pure, and happen between two watch events.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Literal

from mooring.base.clock import Clock, SystemClock
from mooring.base.errors import Fault
from mooring.base.log import Log
from mooring.client import ApiClient, Connection
from mooring.config import Configuration
from mooring.framework import FeatureGates, Pod
from mooring.framework.registry import Registry
from mooring.scheduler.plugin_runtime.assembly import Instance
from mooring.scheduler.reload.restart_required import FIELDS, SECTIONS
from mooring.scheduler.reload.versions import Adopted
from mooring.scheduler.shadow.read_only import ReadOnlyClient
from mooring.scheduler.shadow.wiring import SilentReporter
from mooring.scheduler.wiring import Core, build_core, cluster_executor, complete
from mooring.simulator.outside_data import OutsideData, notes_of
from mooring.simulator.scenario import Cluster
from mooring.web.pod_store import PodStore
from mooring.web.used_configuration import UsedConfiguration
from mooring.why import Recomputation

Source = Literal["live", "snapshot", "file", "recording"]
USER_AGENT = "mooring web"
_log = Log("web")
NOT_LISTED = "is the API server there, and may this user list nodes and pods?"


class Mirror:
    """A cluster, and the means to decide about its pods."""

    def __init__(
        self,
        name: str,
        source: Source,
        recomputation: Recomputation,
        pods: PodStore,
        registry: Registry,
        clock: Clock,
        connection: Connection | None = None,
        client: ApiClient | None = None,
        used: UsedConfiguration | None = None,
    ) -> None:
        self.name = name
        self.source = source
        self.recomputation = recomputation
        self.pods = pods
        self.registry = registry
        self.clock = clock
        self.connection = connection
        """None: there is no API server."""
        self.client = client
        self.used = used or UsedConfiguration(since=clock.now())
        self.served: frozenset[str] = frozenset()
        """The schedulerNames that schedulers of this user serve; empty: none is known."""
        self.on_configured: Callable[[], None] = lambda: None
        """Called when another configuration has taken over, or could not."""

    @property
    def revision(self) -> int:
        """Grows with every change."""
        state = self.recomputation.state
        return self.pods.revision + state.node_changes.generation + self.recomputation.configured_times

    @property
    def configuration(self) -> Configuration:
        return self.recomputation.configuration

    async def adopt(self, configuration: Configuration, registry: Registry, used: UsedConfiguration) -> None:
        """Decide with this configuration from now on. Raises `OperatorMistake` or `Fault`; then nothing has changed."""
        assert isinstance(self.recomputation, LiveRecomputation), "the cluster of a file is decided with one"
        is_news = await self.recomputation.adopt(configuration, registry)
        self.used, self.registry = used, registry
        if is_news:  # else the next revision shows where it comes from
            self.on_configured()

    def not_adopted(self, problem: str) -> None:
        """Show why a newer configuration is not in force."""
        self.used.problem = problem
        self.on_configured()

    @property
    def notes(self) -> list[str]:
        """What a reader should know about how true it is."""
        notes = list(self.recomputation.cluster.notes)
        if self.used.problem:
            notes.append(
                "The configuration has changed and cannot be used here; decisions of this page are taken with the "
                f"earlier one. {self.used.problem}"
            )
        if self.recomputation.is_extended:
            notes.append("The configuration names extenders; they are not called here, so their results are missing.")
        return notes + self.recomputation.notes


def file_mirror(
    name: str,
    source: Source,
    recomputation: Recomputation,
    registry: Registry,
    used: UsedConfiguration | None = None,
) -> Mirror:
    """Of a cluster in a file. The recomputation is entered already, and left by the caller."""
    clock = SystemClock()
    pods = PodStore(clock.now, recomputation.cluster.pods)
    return Mirror(name, source, recomputation, pods, registry, clock, used=used)


class LiveRecomputation(Recomputation):
    """Decides on the state of a core that watches a cluster."""

    def __init__(
        self, core: Core, pods: PodStore, configuration: Configuration, registry: Registry, gates: FeatureGates
    ) -> None:
        super().__init__(Cluster([]), configuration, registry, gates)
        self._core = core
        self._store = pods
        self._adopt: Callable[[Configuration, Registry], Awaitable[Adopted]]

    def adopting(self, adopt: Callable[[Configuration, Registry], Awaitable[Adopted]]) -> None:
        """The scheduler that this core became takes configurations over."""
        self._adopt = adopt

    async def adopt(self, configuration: Configuration, registry: Registry) -> bool:
        """Whether decisions may differ from now on."""
        now = self._configuration
        # What a scheduler cannot change while it runs, the page does not use: how it connects, leads and serves.
        unused = {name: getattr(now, name) for name in (*SECTIONS, *FIELDS)}
        adopted = await self._adopt(dataclasses.replace(configuration, **unused), registry)
        self._configuration, self._registry = configuration, registry
        self.configured_times += 1
        return adopted.is_news or configuration.extenders != now.extenders

    @property
    def cluster(self) -> Cluster:
        """As it is now."""
        return Cluster(
            [view.object for view in self.state.nodes],
            list(self._store),
            [each for store in self._core.informers.stores.values() for each in store.all()],
            notes=self._missing(),
        )

    @property
    def pods(self) -> Mapping[str, Pod]:
        return self._store.by_uid

    @property
    def notes(self) -> list[str]:
        return notes_of(self._core.assembly.current)

    @property
    def outside_data(self) -> OutsideData:
        return OutsideData.of(self._core.assembly.current, self._core.clock.now())

    def _missing(self) -> list[str]:
        kinds = {kind for kinds in self._core.assembly.current.kinds.values() for kind in kinds}
        return [problem for _, problem in self._core.informers.missing(kinds)]


@contextlib.asynccontextmanager
async def live_mirror(
    connection: Connection,
    configuration: Configuration,
    registry: Registry,
    gates: FeatureGates,
    used: UsedConfiguration | None = None,
) -> AsyncIterator[Mirror]:
    """While inside, the mirror follows the cluster. Entered when nodes and pods have been listed."""
    clock = SystemClock()
    async with ReadOnlyClient(connection, user_agent=USER_AGENT) as client:
        names = [profile.scheduler_name for profile in configuration.profiles]
        core = build_core(
            client,
            configuration,
            registry,
            clock=clock,
            reporter=SilentReporter(client, names),
            gates=gates,
            attempt_timeout_seconds=0,
        )
        pods = PodStore(clock.now)
        scheduler = complete(core, cluster_executor(core), after=[pods], is_explained=False, may_schedule=_never)
        recomputation = LiveRecomputation(core, pods, configuration, registry, gates)
        recomputation.adopting(scheduler.adopt)
        mirror = Mirror(connection.address, "live", recomputation, pods, registry, clock, connection, client, used)
        running = asyncio.create_task(scheduler.run(), name="mirror")
        ready = asyncio.create_task(scheduler.ready.wait())
        try:
            await asyncio.wait([running, ready], return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                await running
                raise Fault(f"the cluster could not be listed; {NOT_LISTED}")
            if readers := sorted({each.plugin.name for each in _readers(core)}):
                _log.info(
                    "Plugins of the page fetch data by themselves, beside those of a scheduler",
                    plugins=", ".join(readers),
                )
            yield mirror
        finally:
            ready.cancel()
            scheduler.stop()
            await asyncio.wait([running])


def _readers(core: Core) -> list[Instance]:
    """Instances with a background task that fetches."""
    return [each for each in core.assembly.current.instances.values() if each.published]


async def _never() -> None:
    """Nothing is ever scheduled."""
    await asyncio.Event().wait()
