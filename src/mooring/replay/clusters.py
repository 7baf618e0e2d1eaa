"""The cluster of a recorded decision, as simulations and explanations take it."""

from __future__ import annotations

from mooring.recording import RecordedState, Recording
from mooring.simulator.scenario import Cluster


def cluster_at(recording: Recording, index: int) -> Cluster:
    """The cluster when this decision was made. Assumed pods are on their nodes; nominations are in the status."""
    return cluster_of(recording.state_at(index), tuple(recording.notes))


def cluster_of(state: RecordedState, notes: tuple[str, ...] = ()) -> Cluster:
    return Cluster(nodes=state.nodes(), pods=state.pods(), documents=state.documents(), notes=notes)
