"""Clusters, workloads and profiles of simulations, in a line each."""

from __future__ import annotations

from typing import Any

from msgspec.structs import force_setattr

from mooring.config import default_configuration, load_configuration
from mooring.framework import Plugin
from mooring.objects import Pod
from mooring.plugins.catalogue import catalogue
from mooring.simulator import Arrival, Cluster, SimulationResult, simulate
from mooring.testing import a_node_object, a_pod


def a_cluster_of(*nodes: str, cpu: str = "1", pods: tuple[Pod, ...] = ()) -> Cluster:
    return Cluster([a_node_object(name, cpu=cpu, memory="16Gi") for name in nodes], pods)


def arriving(at: float, name: str, *, seconds: float | None = None, cpu: str = "1", **more: Any) -> Arrival:
    pod = a_pod(name, uid=name, cpu=cpu, **more)
    force_setattr(pod.metadata, "generation", 1)  # as an API server sets it
    return Arrival(at, pod, seconds)


def simulated(
    cluster: Cluster, *arrivals: Arrival, configuration: str = "", plugins: tuple[type[Plugin], ...] = ()
) -> SimulationResult:
    """With the default profile, or this configuration."""
    registry = catalogue()
    for plugin in plugins:
        registry.add(plugin, "test")
    loaded = (
        load_configuration(configuration, source="test", registry=registry).configuration
        if configuration
        else default_configuration(registry)
    )
    return simulate(cluster, arrivals, loaded, registry=registry)


def bound(outcome: SimulationResult) -> dict[str, tuple[float, str]]:
    """Pod → when and where."""
    return {pod.name: (pod.bound_at, pod.node) for pod in outcome.pods if pod.bound_at is not None and pod.node}
