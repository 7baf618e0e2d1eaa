"""Runs one configuration after the other, with progress on standard error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mooring.cli.cluster_source import print_notes
from mooring.cli.simulation_progress import SimulationProgress

if TYPE_CHECKING:
    from mooring.config import Configuration
    from mooring.framework.gates import FeatureGates
    from mooring.framework.registry import Registry
    from mooring.recording import Recorder
    from mooring.simulator import Arrival, Cluster, SimulationComparison


def run_each(
    cluster: Cluster,
    workload: Sequence[Arrival],
    configurations: Mapping[str, Configuration],
    registry: Registry,
    gates: FeatureGates,
    attempt_timeout: float,
    recorder: Recorder | None = None,
) -> SimulationComparison:
    """With each configuration; the differences to the first are explained."""
    from mooring.simulator import simulate_each

    pods = len(workload) + sum(1 for pod in cluster.pods if not pod.spec.node_name)
    progress = {name: SimulationProgress(name, pods) for name in configurations}
    comparison = simulate_each(
        cluster,
        workload,
        configurations,
        registry=registry,
        gates=gates,
        attempt_timeout=attempt_timeout,
        progress=progress,
        on_end=lambda name: progress[name].end(),
        recorder=recorder,
    )
    print_notes(dict.fromkeys(note for result in comparison.results.values() for note in result.notes))
    return comparison
