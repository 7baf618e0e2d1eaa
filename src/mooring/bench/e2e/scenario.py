"""What a run does: a scenario, and the cluster and pods that it is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mooring.bench.e2e.cluster import BenchCluster
from mooring.bench.e2e.contenders import Contender
from mooring.bench.e2e.measurement import Run
from mooring.bench.workloads import Workload


@dataclass(frozen=True)
class Task:
    """A workload and its size. The name is the one that reports show."""

    name: str
    workload: Workload
    nodes: int
    pods: int
    running: int = 0


class Scenario(Protocol):
    """Measures one contender. The caller fills the cluster before the first run and resets it after each."""

    @property
    def name(self) -> str: ...

    async def run(self, cluster: BenchCluster, contender: Contender, task: Task, number: int) -> Run:
        """`number` is that of the round."""
        ...
