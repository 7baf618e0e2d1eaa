"""A simulation decides as the scheduler does on the embedded cluster: every placement and every refusal."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from tests.scheduler.conftest import Live, a_live_scheduler
from tests.simulator.scenarios import simulated

from mooring.simulator import Arrival, Cluster, SimulationResult
from mooring.testing import a_node_object, a_pod

# Sizes without a common divisor: no two nodes have the same score.
NODES = {"n1": "2100m", "n2": "3300m", "n3": "5700m", "n4": "7900m"}
PODS = {f"pod-{number:02}": f"{350 + 137 * number % 900}m" for number in range(24)}


@pytest.fixture(autouse=True)
def apart(private_runtime_folder: None) -> None:
    """The live scheduler opens its control socket there."""


async def test_one_pod_after_the_other(server):
    live_nodes: dict[str, str] = {}
    live_reasons: dict[str, str] = {}
    async with a_live_scheduler(server) as live:
        for name, cpu in NODES.items():
            await live.node(name, cpu=cpu)
        for name, cpu in PODS.items():
            await live.pod(name, cpu=cpu)
            await live.until(partial(_is_decided, live, name))
            if node := live.pods[name].spec.node_name:
                live_nodes[name] = node
            else:
                live_reasons[name] = await live.refused(name)
    nodes = [a_node_object(name, cpu=cpu, memory="16Gi", pods=110) for name, cpu in NODES.items()]
    arrivals = [Arrival(60.0 * at, a_pod(name, uid=name, cpu=cpu)) for at, (name, cpu) in enumerate(PODS.items())]
    outcome = simulated_in_thread(Cluster(nodes), arrivals)
    assert {pod.name: pod.node for pod in outcome.bound} == live_nodes
    assert {pod.name: pod.message for pod in outcome.pending} == live_reasons
    assert live_nodes, live_reasons


def _is_decided(live: Live, name: str) -> bool:
    pod = live.pods.get(name)
    return pod is not None and bool(pod.spec.node_name or pod.condition("PodScheduled"))


def simulated_in_thread(cluster: Cluster, arrivals: list[Arrival]) -> SimulationResult:
    """A simulation has an event loop of its own, and this test has one too."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(simulated, cluster, *arrivals).result()
