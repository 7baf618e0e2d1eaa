"""Do the sources of node loads respond, and do they know the nodes of this cluster?"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from mooring.base.clock import Clock
from mooring.base.errors import MooringError
from mooring.client import ApiClient
from mooring.config import Configuration
from mooring.doctor.findings import Finding, bad, good, notice, unknown
from mooring.objects.object_store import IndexedStore
from mooring.plugins.community.trimaran.args import TrimaranArgs
from mooring.plugins.community.trimaran.load_sources import LoadSource, MeasuredNode, source_of
from mooring.plugins.community.trimaran.loads import STALE_SECONDS
from mooring.plugins.community.trimaran.peaks import PeaksArgs
from mooring.scheduler.plugin_runtime.http_service import HttpFetcher
from mooring.scheduler.plugin_runtime.resource_metrics_service import ApiResourceMetrics

CHECK = "loads"
SHOWN_NODES = 3
TO_DO = "Correct the source in the plugin's arguments, or let it serve; until then every node counts alike."


async def examine_load_sources(client: ApiClient, configuration: Configuration) -> list[Finding]:
    """One request to each source that the configuration names, from where this runs."""
    sources = dict(_sources(configuration))
    if not sources:
        return []
    try:
        listed = await client.list(MeasuredNode.KIND)
    except MooringError as error:
        return [unknown(CHECK, f"the nodes cannot be listed: {error}")]
    nodes = _NodeStore()
    for document in listed:
        nodes.put(msgspec.convert(document, MeasuredNode))
    http = HttpFetcher()
    try:
        findings = []
        for args, plugins in sources.items():
            source = source_of(args, http, ApiResourceMetrics(client), nodes, client.clock)
            findings.append(await _examine(", ".join(plugins), source, nodes, client.clock))
        return findings
    finally:
        await http.close()


async def _examine(plugins: str, source: LoadSource, nodes: _NodeStore, clock: Clock) -> Finding:
    try:
        loads = await source.fetch()
    except (MooringError, OSError, ValueError) as error:
        return bad(CHECK, f"{plugins}: {error}", TO_DO)
    age = clock.now() - loads.window_end
    if age > STALE_SECONDS:
        return bad(CHECK, f"{plugins}: the measurements of {source.address} ended {age:.0f} s ago", TO_DO)
    missing = sorted({node.name for node in nodes.all()} - loads.nodes.keys())
    message = f"{plugins}: {source.address} has loads of {len(loads.nodes)} of {len(loads.nodes) + len(missing)} nodes"
    if missing or loads.problems:
        named = ", ".join(missing[:SHOWN_NODES]) + (", …" if len(missing) > SHOWN_NODES else "")
        without = f"; none of {named}" if missing else ""
        problems = f"; {loads.problems}" if loads.problems else ""
        to_do = "Let the source name nodes as the cluster does. A node without loads has the lowest score."
        return notice(CHECK, f"{message}{without}{problems}", to_do)
    return good(CHECK, message)


def _sources(configuration: Configuration) -> Iterator[tuple[TrimaranArgs, list[str]]]:
    """Each source once, with the plugins that read it."""
    found: dict[str, tuple[TrimaranArgs, list[str]]] = {}
    for profile in configuration.profiles:
        used = {use.name for uses in profile.points.values() for use in uses}
        for name, args in profile.args.items():
            if name in used and isinstance(args, TrimaranArgs):
                source = args.source if isinstance(args, PeaksArgs) else args
                plain = TrimaranArgs(watcher_address=source.watcher_address, metric_provider=source.metric_provider)
                names = found.setdefault(repr(plain), (plain, []))[1]
                if name not in names:
                    names.append(name)
    yield from found.values()


class _NodeStore(IndexedStore[MeasuredNode]):
    """The nodes, as they are listed once."""

    synced = True
