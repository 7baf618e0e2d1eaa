"""Nodes with a measured load, for the tests of the load-aware plugins."""

from __future__ import annotations

from typing import Any

from mooring.framework import Plugin
from mooring.objects import ObjectMeta
from mooring.plugins.community.trimaran.load_sources import MeasuredNode, MeasuredNodeStatus
from mooring.plugins.community.trimaran.loads import LoadMeasurement, Loads
from mooring.testing import Services, a_cluster, a_node, a_plugin, a_pod, scored_at_once, scored_one_by_one

ADDRESS = "http://load-watcher.example"


def cpu(average: float, deviation: float | None = None) -> list[LoadMeasurement]:
    return _measured("CPU", average, deviation)


def memory(average: float, deviation: float | None = None) -> list[LoadMeasurement]:
    return _measured("Memory", average, deviation)


def _measured(type: str, average: float, deviation: float | None) -> list[LoadMeasurement]:
    found = [LoadMeasurement(type, "AVG", average)]
    return found if deviation is None else [*found, LoadMeasurement(type, "STD", deviation)]


def services_with(loads: dict[str, list[LoadMeasurement]] | None, *, end: float = 0.0, cpus: str = "4") -> Services:
    """Services in which these loads are published, of nodes with so many CPUs; `end`: seconds from now."""
    services = Services()
    if loads is not None:
        measured = {name: tuple(found) for name, found in loads.items()}
        services.published(Loads).publish(Loads(measured, services.clock.now() + end))
    for name in loads or ():
        status = MeasuredNodeStatus(capacity={"cpu": cpus, "memory": "8Gi"})
        services.objects(MeasuredNode).put(MeasuredNode(metadata=ObjectMeta(name=name), status=status))
    return services


def a_load_plugin(cls: type[Plugin], services: Services, **arguments: Any) -> Any:
    return a_plugin(cls, services, **({"watcher_address": ADDRESS} | arguments))


def score(
    cls: type[Plugin], loads: Any, pod: Any = None, *, running: Any = (), end: float = 0.0, **arguments: Any
) -> int:
    """The score of one node of 4 CPUs and 8 GiB with these loads, equal in both forms where it has both."""
    services = services_with({"node": loads} if loads is not None else None, end=end)
    cluster = a_cluster(a_node("node", cpu="4", memory="8Gi", running=list(running)), services=services)
    plugin, pod = a_load_plugin(cls, services, **arguments), pod or a_pod(cpu="1", memory="1Gi")
    plain = scored_one_by_one(plugin, pod, cluster)
    if hasattr(plugin, "score_nodes"):
        assert scored_at_once(plugin, pod, cluster) == plain
    assert plain is not None
    return plain["node"]
