"""The measured load of nodes, as a load watcher reports it."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

STALE_SECONDS = 300.0
"""Measurements that ended so long ago count no more; a load watcher averages over as much."""
AHEAD_SECONDS = 60.0
"""A clock that is further ahead is wrong: its measurements would never become stale."""
CPU, MEMORY = "CPU", "Memory"
IMPOSSIBLE, STALE, AHEAD = "impossible", "stale", "from the future"
AVERAGE, DEVIATION, LATEST, UNNAMED = "AVG", "STD", "Latest", ""


class LoadMeasurement(msgspec.Struct, frozen=True):
    """One number about a node, in percent of what it has."""

    type: str = ""
    operator: str = ""
    value: float = 0.0


class Statistics(NamedTuple):
    """The load of one resource in percent."""

    average: float
    deviation: float


class NodeProblem(NamedTuple):
    """What the source reported of a node does not count. The cause has no numbers: they vary with each fetch."""

    node: str
    cause: str


class Loads(msgspec.Struct, frozen=True, eq=False):
    """All that one fetch brought. Without any node, every node counts alike."""

    nodes: dict[str, tuple[LoadMeasurement, ...]]
    window_end: float = 0.0
    """Until when was measured (seconds since the epoch)."""
    problems: str = ""
    """What the source reported that does not count: measurements that are impossible, nodes that do not exist."""
    node_problems: tuple[NodeProblem, ...] = ()
    """Some of the nodes that it is wrong about."""
    unknown_node: str = ""
    """One that does not exist, if it reported any."""

    def of(self, node: str) -> tuple[LoadMeasurement, ...] | None:
        return self.nodes.get(node)


NO_LOADS = Loads({})


def statistics(measurements: tuple[LoadMeasurement, ...], type: str) -> Statistics | None:
    """Average and deviation of a resource; None if nothing was measured.

    A measurement without an operator, or the latest, stands for the average as long as there is none.
    """
    average = deviation = 0.0
    has_average = is_known = False
    for measured in measurements:
        if measured.type != type:
            continue
        is_known = True
        if measured.operator == AVERAGE:
            average, has_average = measured.value, True
        elif measured.operator == DEVIATION:
            deviation = measured.value
        elif measured.operator in (UNNAMED, LATEST) and not has_average:
            average = measured.value
    return Statistics(average, deviation) if is_known else None


def cpu_loads(measurements: tuple[LoadMeasurement, ...]) -> list[float]:
    """Every average or latest load of the CPU, in the order of the report."""
    return [
        measured.value for measured in measurements if measured.type == CPU and measured.operator in (AVERAGE, LATEST)
    ]
