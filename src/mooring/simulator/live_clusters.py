"""A cluster that runs, as it is now: a snapshot of it is taken and read as one of a file. Rights to list are enough."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mooring.client import ApiClient, Connection
from mooring.objects.meta import Kind
from mooring.simulated.cluster_file import ClusterFile
from mooring.simulated.loading import fill_from
from mooring.simulator.cluster_files import a_server, cluster_of
from mooring.simulator.event_loops import in_own_loop
from mooring.simulator.scenario import Cluster
from mooring.simulator.virtual_time import START
from mooring.snapshots import Spool, SpooledSnapshot, take_snapshot

REQUESTS_IN_FLIGHT = 2
"""Pages are listed one after the other."""


def read_live_cluster(
    connection: Connection,
    *,
    custom_kinds: Mapping[Kind, dict[str, Any]] | None = None,
    keep_annotations: Iterable[str] = (),
    on_page: Callable[[str, int], None] = lambda _kind, _count: None,
    user_agent: str = "mooring simulate",
) -> Cluster:
    """List what scheduling reads. Nothing is written; `custom_kinds` are those of plugins, with their definitions."""

    async def taken(spool: Spool) -> SpooledSnapshot:
        async with ApiClient(connection, user_agent=user_agent, in_flight=REQUESTS_IN_FLIGHT) as client:
            header = await take_snapshot(
                client, spool, custom_kinds=custom_kinds, keep_annotations=keep_annotations, on_page=on_page
            )
        return SpooledSnapshot(connection.address, header, spool)

    with Spool() as spool:
        snapshot = in_own_loop(lambda: asyncio.run(taken(spool)))
        server = a_server()
        notes = fill_from(server, ClusterFile(snapshot, connection.address, now=START))
        return cluster_of(server, notes)
