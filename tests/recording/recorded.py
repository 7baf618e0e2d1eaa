"""Recordings of simulations: short to describe, and the same every time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mooring.config import Configuration, default_configuration
from mooring.plugins.catalogue import catalogue
from mooring.recording import Recorder, Recording, RecordingWriter
from mooring.simulator import Arrival, Cluster, SimulationResult, simulate

MANY = 1_000_000


def recorded(
    path: Path, cluster: Cluster, *arrivals: Arrival, configuration: Configuration | None = None, **options: Any
) -> SimulationResult:
    """A simulation whose recording is in the file."""
    registry = catalogue()
    recorder = Recorder(most_items=MANY)
    with RecordingWriter(path, recorder, **options) as writer:
        result = simulate(
            cluster, arrivals, configuration or default_configuration(registry), registry=registry, recorder=recorder
        )
    assert writer.problem is None
    return result


def read_recorded(path: Path, cluster: Cluster, *arrivals: Arrival, **options: Any) -> Recording:
    recorded(path, cluster, *arrivals, **options)
    return Recording.read(path)
