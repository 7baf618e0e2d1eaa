"""LoadVariationRiskBalancing: favour nodes whose load is low and steady.

The risk of a resource is the mean of its average load, with the pod, and its deviation, each as a share of what the
node can allocate. The score is what is left to 100; of CPU and memory, the worse counts. A node without measurements
has 0.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from mooring.framework import (
    Background,
    Clock,
    Cycle,
    Http,
    IntArray,
    Log,
    Meta,
    Metrics,
    NodeRows,
    NodeView,
    Objects,
    Plugin,
    Pod,
    ProblemReports,
    Published,
    ResourceMetrics,
    constant_score,
)
from mooring.framework.verdicts import FloatArray
from mooring.plugins.community.trimaran.args import TrimaranArgs
from mooring.plugins.community.trimaran.load_collector import LoadCollector
from mooring.plugins.community.trimaran.load_sources import MeasuredNode, source_of
from mooring.plugins.community.trimaran.loads import CPU, MEMORY, Loads, statistics
from mooring.plugins.community.trimaran.node_columns import NodeColumns, all_rounded, rounded
from mooring.plugins.community.trimaran.pod_resources import requests_of

MEBI = 1.0 / 1024.0 / 1024.0


class LoadVariationRiskBalancingArgs(TrimaranArgs):
    """Arguments of LoadVariationRiskBalancing."""

    safe_variance_margin: Annotated[float, Meta(description="Multiplies the deviation; negative counts as 1.")] = 1.0
    safe_variance_sensitivity: Annotated[
        float, Meta(description="The root that is taken of the deviation; negative counts as 1.")
    ] = 1.0


class LoadVariationRiskBalancing(Plugin):
    """Favour nodes whose load is low and steady."""

    def __init__(
        self,
        args: LoadVariationRiskBalancingArgs,
        http: Http,
        resource_metrics: ResourceMetrics,
        loads: Published[Loads],
        nodes: Objects[MeasuredNode],
        background: Background,
        metrics: Metrics,
        log: Log,
        clock: Clock,
        problems: ProblemReports,
    ) -> None:
        self._margin = args.safe_variance_margin if args.safe_variance_margin >= 0 else 1.0
        self._sensitivity = args.safe_variance_sensitivity if args.safe_variance_sensitivity >= 0 else 1.0
        self._loads = loads
        source = source_of(args, http, resource_metrics, nodes, clock)
        is_compatible = args.compatibility == "scheduler-plugins"
        self._collector = LoadCollector(
            self.name, source, loads, background, metrics, log, clock, problems, keeps_stale=is_compatible
        )
        self._columns = NodeColumns(lambda name: self._measured(self._loads.latest, name))

    async def start(self) -> None:
        self._collector.start()

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        loads = cycle.value(self._loads)
        if loads is None or not loads.of(node.name):
            return 0
        cpu, cpu_deviation, memory, memory_deviation = self._measured(loads, node.name)
        wanted = requests_of(pod)
        of_cpu = self._score(cpu, cpu_deviation, float(node.allocatable("cpu")), float(wanted.cpu_milli))
        of_memory = self._score(memory, memory_deviation, node.allocatable("memory") * MEBI, wanted.memory_bytes * MEBI)
        if math.isnan(cpu) or math.isnan(memory):
            return rounded(max(of_cpu, of_memory))
        return rounded(min(of_cpu, of_memory))

    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> IntArray:
        loads = cycle.value(self._loads)
        if loads is None or not loads.nodes:
            return constant_score(0, nodes)
        cpu, cpu_deviation, memory, memory_deviation = self._columns.at(nodes, cycle, loads)
        wanted = requests_of(pod)
        of_cpu = self._scores(cpu, cpu_deviation, nodes.allocatable("cpu").astype(np.float64), float(wanted.cpu_milli))
        of_memory = self._scores(
            memory, memory_deviation, nodes.allocatable("memory").astype(np.float64) * MEBI, wanted.memory_bytes * MEBI
        )
        is_any_unknown = np.isnan(cpu) | np.isnan(memory)
        return all_rounded(np.where(is_any_unknown, np.maximum(of_cpu, of_memory), np.minimum(of_cpu, of_memory)))

    def _score(self, load: float, deviation: float, capacity: float, wanted: float) -> float:
        if math.isnan(load) or capacity <= 0:
            return 0.0
        used = max(min(load * capacity / 100, capacity), 0.0)
        mean = max(min((used + wanted) / capacity, 1.0), 0.0)
        return (1.0 - (mean + self._weighed(deviation, capacity)) / 2) * 100

    def _weighed(self, deviation: float, capacity: float) -> float:
        """The deviation with root and margin."""
        absolute = max(min(deviation * capacity / 100, capacity), 0.0)
        share = max(min(absolute / capacity, 1.0), 0.0)
        root = 1 / self._sensitivity if self._sensitivity else math.inf
        return max(min(math.pow(share, root) * self._margin, 1.0), 0.0)

    def _scores(self, load: FloatArray, deviation: FloatArray, capacity: FloatArray, wanted: float) -> FloatArray:
        """`_score`, of many."""
        is_known = ~np.isnan(load) & (capacity > 0)
        divisor = np.where(is_known, capacity, 1.0)
        used = np.clip(np.where(is_known, load, 0.0) * capacity / 100, 0.0, np.maximum(capacity, 0.0))
        mean = np.clip((used + wanted) / divisor, 0.0, 1.0)
        pairs = zip(np.where(is_known, deviation, 0.0).tolist(), divisor.tolist(), strict=True)
        # Python's pow, once for each: NumPy's may differ in the last bit.
        weighed = np.array([self._weighed(one, other) for one, other in pairs])
        return np.where(is_known, (1.0 - (mean + weighed) / 2) * 100, 0.0)

    def _measured(self, loads: Loads | None, node: str) -> tuple[float, float, float, float]:
        """Load and deviation of CPU and of memory, in percent; NaN where nothing was measured."""
        measured = (None if loads is None else loads.of(node)) or ()
        cpu, memory = statistics(measured, CPU), statistics(measured, MEMORY)
        return (*(cpu or (math.nan, math.nan)), *(memory or (math.nan, math.nan)))
