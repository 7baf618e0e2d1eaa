"""TargetLoadPacking: fill nodes up to a target load of the CPU, and no further.

What a node would use is what was measured, what the pod is predicted to use, and the same for pods that are too new to
be in the measurements. Up to the target, more is better; beyond it the score falls, and at full load it is 0. A node
without measurements has 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
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
    PlacedPod,
    Plugin,
    Pod,
    ProblemReports,
    Published,
    ResourceMetrics,
    constant_score,
)
from mooring.framework.verdicts import FloatArray
from mooring.objects.core import Quantities
from mooring.objects.quantity import BadQuantity, milli
from mooring.plugins.community.trimaran.args import TrimaranArgs
from mooring.plugins.community.trimaran.load_collector import LoadCollector
from mooring.plugins.community.trimaran.load_sources import MeasuredNode, source_of
from mooring.plugins.community.trimaran.loads import Loads, cpu_loads
from mooring.plugins.community.trimaran.node_columns import NodeColumns, all_rounded, rounded
from mooring.plugins.community.trimaran.pod_resources import AnyPod, LoadPod

REPORTING_SECONDS = 60
"""A pod that was bound so short a time before the measurements ended is not in them."""
DEFAULT_TARGET, DEFAULT_REQUEST_MILLI, FULL = 40, 1000, 100
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)


class TargetLoadPackingArgs(TrimaranArgs):
    """Arguments of TargetLoadPacking."""

    target_utilization: Annotated[int, Meta(description="The load to fill nodes up to, in percent.")] = DEFAULT_TARGET
    default_requests: Annotated[
        Quantities | None, Meta(description="What a container without CPU request and limit is predicted to use.")
    ] = None
    default_requests_multiplier: Annotated[
        str, Meta(description="A container without CPU limit is predicted to use its request times this.")
    ] = "1.5"

    def mistakes(self) -> Iterable[tuple[str, str]]:
        yield from super().mistakes()
        if not _NUMBER.fullmatch(self.default_requests_multiplier):
            yield (
                "defaultRequestsMultiplier",
                "unable to parse DefaultRequestsMultiplier: strconv.ParseFloat: parsing "
                f'"{self.default_requests_multiplier}": invalid syntax',
            )
        for resource, text in (self.default_requests or {}).items():
            try:
                milli(text)
            except BadQuantity as mistake:
                yield f"defaultRequests.{resource}", str(mistake)
        if self.target_utilization > FULL:
            yield "targetUtilization", f"must be between 1 and 100, got {self.target_utilization}"


class TargetLoadPacking(Plugin):
    """Favour nodes whose CPU the pod brings closest to a target load."""

    def __init__(
        self,
        args: TargetLoadPackingArgs,
        http: Http,
        resource_metrics: ResourceMetrics,
        loads: Published[Loads],
        nodes: Objects[MeasuredNode],
        pods: Objects[LoadPod],
        background: Background,
        metrics: Metrics,
        log: Log,
        clock: Clock,
        problems: ProblemReports,
    ) -> None:
        self._target = float(args.target_utilization if args.target_utilization > 0 else DEFAULT_TARGET)
        self._multiplier = float(args.default_requests_multiplier)
        requests = args.default_requests
        self._default_milli = DEFAULT_REQUEST_MILLI if requests is None else milli(requests.get("cpu", 0))
        self._loads, self._nodes, self._pods = loads, nodes, pods
        is_compatible = args.compatibility == "scheduler-plugins"
        self._seen_since = clock.now() if is_compatible else -math.inf
        """scheduler-plugins takes every pod that ran before its own start for a new one."""
        source = source_of(args, http, resource_metrics, nodes, clock)
        self._collector = LoadCollector(
            self.name, source, loads, background, metrics, log, clock, problems, keeps_stale=is_compatible
        )
        self._columns = NodeColumns(self._numbers)

    async def start(self) -> None:
        self._collector.start()

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        loads = cycle.value(self._loads)
        load, capacity = self._numbers_of(loads, node.name)
        if loads is None or math.isnan(load):
            return 0
        missing = sum(self._predicted_on_node(placed) for placed in node.pods if self._is_missing(placed, loads))
        use = 100 * (load / 100 * capacity + self._predicted(pod) + missing) / capacity if capacity else 0.0
        return self._score(use)

    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> IntArray:
        loads = cycle.value(self._loads)
        if loads is None or not loads.nodes:
            return constant_score(0, nodes)
        load, capacity = self._columns.at(nodes, cycle, loads, self._nodes.version)
        is_known = ~np.isnan(load)
        missing = np.zeros(len(nodes))
        newest = nodes.cached(TargetLoadPacking, _newest_of, _newest)
        is_new = np.maximum(newest, self._seen_since) > loads.window_end - REPORTING_SECONDS
        for place in np.flatnonzero(is_known & is_new).tolist():
            new = (placed for placed in nodes.at(place).pods if self._is_missing(placed, loads))
            missing[place] = sum(map(self._predicted_on_node, new))
        has_capacity = is_known & (capacity != 0)
        use = np.zeros(len(nodes))
        np.divide(100 * (load / 100 * capacity + self._predicted(pod) + missing), capacity, out=use, where=has_capacity)
        return np.where(is_known, self._scores(use), 0)

    def _score(self, use: float) -> int:
        target = self._target
        if use > FULL:
            return 0
        if use > target:
            return rounded(target * (FULL - use) / (FULL - target))
        return rounded((FULL - target) * use / target + target)

    def _scores(self, use: FloatArray) -> IntArray:
        """`_score`, of many."""
        target = self._target
        packed = (FULL - target) * use / target + target
        beyond = target * (FULL - use) / (FULL - target) if target < FULL else np.zeros_like(use)
        return all_rounded(np.where(use > FULL, 0.0, np.where(use > target, beyond, packed)))

    def _numbers(self, node: str) -> tuple[float, float]:
        return self._numbers_of(self._loads.latest, node)

    def _numbers_of(self, loads: Loads | None, node: str) -> tuple[float, float]:
        """Measured load in percent (NaN: unknown), and capacity in thousandths of a CPU."""
        measured = None if loads is None else loads.of(node)
        found = cpu_loads(measured) if measured else []
        object_of_node = self._nodes.get(node)
        return found[-1] if found else math.nan, float(object_of_node.cpu_milli) if object_of_node else 0.0

    def _is_missing(self, placed: PlacedPod, loads: Loads) -> bool:
        """Whether the pod is too new to be in the measurements."""
        placed_at = _placed_at(placed)
        if placed_at == math.inf:
            if self._seen_since == -math.inf:
                return True
            placed_at = self._seen_since
        since = math.floor(max(placed_at, self._seen_since))
        return since > loads.window_end or loads.window_end - since < REPORTING_SECONDS

    def _predicted_on_node(self, placed: PlacedPod) -> int:
        pod = self._pods.get(placed.name, placed.namespace)
        if pod is not None:
            return self._predicted(pod)
        request = placed.request("cpu")
        return rounded(request * self._multiplier) if request else self._default_milli

    def _predicted(self, pod: AnyPod) -> int:
        """What the pod is predicted to use, in thousandths of a CPU. Init containers have ended by then."""
        total = milli(pod.spec.overhead.get("cpu", 0))
        for container in pod.spec.containers:
            limits, requests = container.resources.limits, container.resources.requests
            if "cpu" in limits:
                total += milli(limits["cpu"])
            elif "cpu" in requests:
                total += rounded(milli(requests["cpu"]) * self._multiplier)
            else:
                total += self._default_milli
        return total


def _placed_at(placed: PlacedPod) -> float:
    """When the pod came to its node. One that is bound and not started yet has just come."""
    if placed.assumed_at is not None:
        return placed.assumed_at
    return placed.started if placed.started is not None else math.inf


def _newest(node: NodeView) -> float:
    return max(map(_placed_at, node.pods), default=-math.inf)


def _newest_of(nodes: NodeRows) -> FloatArray:
    return np.fromiter(map(_newest, nodes), np.float64, len(nodes))
