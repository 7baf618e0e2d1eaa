"""What plugins read of other systems, such as the loads of nodes: fetched once, by the plugins themselves.

A recomputation or a simulation runs on virtual time, in which no response would ever come. So the plugins of the same
configuration are built and started beside it first, on real time and with a client that only reads, until each has
published or the time is up. What they published is handed to the plugins that decide.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mooring.base.clock import SystemClock
from mooring.base.log import silenced
from mooring.client import Connection
from mooring.config import Configuration
from mooring.framework import FeatureGates, Published
from mooring.framework.registry import Registry
from mooring.scheduler.plugin_runtime.assembly import Assembly, InstanceKey
from mooring.scheduler.shadow.read_only import ReadOnlyClient
from mooring.scheduler.shadow.wiring import SilentReporter
from mooring.scheduler.wiring import build_core, cluster_executor, complete
from mooring.simulator.scenario import Cluster

FETCH_SECONDS = 10.0
POLL_SECONDS = 0.02


@dataclass(frozen=True)
class OutsideData:
    """By plugin instance: what it had published, in the order of its constructor's parameters."""

    by_instance: Mapping[InstanceKey, tuple[Published[Any], ...]] = field(default_factory=dict)
    when: str = "yet"
    """Until when it was waited for, in words."""
    at: float | None = None
    """When it was fetched, in seconds since the epoch."""

    @staticmethod
    def of(assembly: Assembly, at: float) -> OutsideData:
        """What the plugins of an assembly have published so far."""
        published = {key: each.published for key, each in assembly.instances.items() if each.published}
        return OutsideData(published, at=at)

    def publish(self, assembly: Assembly) -> list[str]:
        """Hand it to the plugins of another assembly, which fetch nothing themselves.

        Returns a sentence for each of them: from when its data is, or that there is none.
        """
        notes = []
        for key, instance in assembly.instances.items():
            for own, fetched in zip(instance.published, self.by_instance.get(key, ()), strict=False):
                if fetched.latest is not None:
                    own.publish(fetched.latest, about=fetched.about)
            instance.background.is_idle = bool(instance.published)
            if instance.published:
                notes.append(_note(instance.plugin.name, self.by_instance.get(key), self.when))
        return sorted(notes)


def fetch_outside_data(
    connection: Connection,
    cluster: Cluster,
    configuration: Configuration,
    registry: Registry,
    gates: FeatureGates | None = None,
    *,
    seconds: float = FETCH_SECONDS,
    user_agent: str = "mooring explain",
) -> OutsideData:
    """One fetch of each plugin that reads any; nothing is requested where none does."""
    if not reads_outside_data(configuration, registry):
        return OutsideData()
    gates = gates or FeatureGates()
    with silenced():  # the notes have it
        return asyncio.run(_fetched(connection, cluster, configuration, registry, gates, seconds, user_agent))


def reads_outside_data(configuration: Configuration, registry: Registry) -> bool:
    names = {use.name for profile in configuration.profiles for uses in profile.points.values() for use in uses}
    return any(entry.publishes for name in names if (entry := registry.get(name)) is not None)


async def _fetched(
    connection: Connection,
    cluster: Cluster,
    configuration: Configuration,
    registry: Registry,
    gates: FeatureGates,
    seconds: float,
    user_agent: str,
) -> OutsideData:
    clock = SystemClock()
    async with ReadOnlyClient(connection, user_agent=user_agent) as client:
        names = [profile.scheduler_name for profile in configuration.profiles]
        reporter = SilentReporter(client, names)
        core = build_core(
            client, configuration, registry, clock=clock, reporter=reporter, gates=gates, attempt_timeout_seconds=0
        )
        scheduler = complete(core, cluster_executor(core), is_explained=False)
        core.informers.preload(cluster.seen_as)
        readers = {key: each for key, each in core.assembly.current.instances.items() if each.published}
        try:
            for instance in readers.values():
                await scheduler.lifecycle.start(instance)
            published = [each for instance in readers.values() for each in instance.published]
            deadline = clock.monotonic() + seconds
            while not all(each.version for each in published) and clock.monotonic() < deadline:
                await clock.sleep(POLL_SECONDS)
        finally:
            await scheduler.shutdown.run()
        return OutsideData(
            {key: instance.published for key, instance in readers.items()},
            f"within {seconds:g} s",
            clock.now(),
        )


def notes_of(assembly: Assembly) -> list[str]:
    """A sentence for each plugin that reads outside data: from when it is, or that none came so far."""
    return sorted(
        _note(each.plugin.name, each.published, "yet") for each in assembly.instances.values() if each.published
    )


def _note(plugin: str, published: tuple[Published[Any], ...] | None, when: str) -> str:
    if published is None:
        return f"{plugin} reads data of another system, which is not known here."
    if not any(each.version for each in published):
        return f"{plugin} reads data of another system, of which none came {when}."
    about = "; ".join(each.about for each in published if each.about)
    return f"{plugin} reads {about or 'data of another system'}."
