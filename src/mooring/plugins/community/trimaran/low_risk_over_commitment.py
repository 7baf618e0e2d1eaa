"""LowRiskOverCommitment: favour nodes where pods' limits and measured load leave little risk of too much use.

For CPU and memory, the risk has two parts. That of limits is the share by which limits exceed the node, of what they
exceed requests by. That of load is the probability that more is used than is requested, by a Beta distribution with
the measured average and deviation. The score is what the greater risk leaves to 100. Pods that name neither CPU nor
memory, and nodes without measurements, have 0.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Annotated, NamedTuple

from mooring.framework import (
    Background,
    Clock,
    Cycle,
    Http,
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
)
from mooring.plugins.community.trimaran.args import TrimaranArgs
from mooring.plugins.community.trimaran.beta_distribution import beta_of, regularized_incomplete_beta
from mooring.plugins.community.trimaran.load_collector import LoadCollector
from mooring.plugins.community.trimaran.load_sources import MeasuredNode, source_of
from mooring.plugins.community.trimaran.loads import CPU, MEMORY, LoadMeasurement, Loads, Statistics, statistics
from mooring.plugins.community.trimaran.node_columns import rounded
from mooring.plugins.community.trimaran.pod_resources import Amount, LoadPod, limits_of, requests_of

DEFAULT_WINDOW, DEFAULT_WEIGHT = 5, 0.5
MOST_OF_VARIANCE = 0.99
MEBI = 1.0 / 1024.0 / 1024.0


class LowRiskOverCommitmentArgs(TrimaranArgs):
    """Arguments of LowRiskOverCommitment."""

    smoothing_window_size: Annotated[
        int, Meta(description="Over how many samples measurements are smoothed; less than 1 counts as 5.")
    ] = DEFAULT_WINDOW
    risk_limit_weights: Annotated[
        dict[str, float], Meta(description="By resource, how much limits count against load, 0 to 1; 0.5 if not given.")
    ] = {}


class Use(NamedTuple):
    """Of one resource on a node: what is requested and limited with the pod and without it, and what there is."""

    request: int
    limit: int
    request_before: int
    limit_before: int
    capacity: int


class LowRiskOverCommitment(Plugin):
    """Favour nodes with little risk of too much use."""

    score_needs_pre_score = False

    def __init__(
        self,
        args: LowRiskOverCommitmentArgs,
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
        window = args.smoothing_window_size if args.smoothing_window_size > 0 else DEFAULT_WINDOW
        self._smoothing = math.sqrt(window)
        given = args.risk_limit_weights
        weights = {name: given.get(name, DEFAULT_WEIGHT) for name in ("cpu", "memory")}
        self._weights = {name: each if 0 <= each <= 1 else DEFAULT_WEIGHT for name, each in weights.items()}
        self._loads, self._pods = loads, pods
        self._incoming: tuple[Pod, tuple[Amount, Amount]] | None = None
        source = source_of(args, http, resource_metrics, nodes, clock)
        self._collector = LoadCollector(
            self.name,
            source,
            loads,
            background,
            metrics,
            log,
            clock,
            problems,
            keeps_stale=args.compatibility == "scheduler-plugins",
        )

    async def start(self) -> None:
        self._collector.start()

    def pre_score(self, pod: Pod, feasible: NodeRows, cycle: Cycle) -> None:
        """Nothing: configurations of scheduler-plugins name this extension point, and `score` does all."""

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        loads = cycle.value(self._loads)
        requests, limits = self._wanted(pod)
        measured = None if loads is None else loads.of(node.name)
        if not measured or not (any(requests) or any(limits)):
            return 0
        requested, limited = self._on(node)
        risk = max(
            self._risk(
                "cpu", measured, _use(node.allocatable("cpu"), requested[0], limited[0], requests[0], limits[0])
            ),
            self._risk(
                "memory", measured, _use(node.allocatable("memory"), requested[1], limited[1], requests[1], limits[1])
            ),
        )
        return rounded((1 - risk) * 100)

    def _wanted(self, pod: Pod) -> tuple[Amount, Amount]:
        """What the incoming pod requests and may use at most: computed once, and read for every node."""
        if self._incoming is None or self._incoming[0] is not pod:
            self._incoming = (pod, (requests_of(pod), limits_of(pod)))
        return self._incoming[1]

    def _on(self, node: NodeView) -> tuple[Amount, Amount]:
        """What the pods on the node request and may use at most."""
        amounts = [self._amounts_of(placed) for placed in node.pods]
        return (
            Amount(sum(each[0].cpu_milli for each in amounts), sum(each[0].memory_bytes for each in amounts)),
            Amount(sum(each[1].cpu_milli for each in amounts), sum(each[1].memory_bytes for each in amounts)),
        )

    def _amounts_of(self, placed: PlacedPod) -> tuple[Amount, Amount]:
        pod = self._pods.get(placed.name, placed.namespace)
        if pod is None:  # not listed yet: what it requests is known
            requested = Amount(placed.request("cpu"), placed.request("memory"))
            return requested, requested
        return pod.amounts

    def _risk(self, resource: str, measured: tuple[LoadMeasurement, ...], use: Use) -> float:
        of_limits = (use.limit - use.capacity) / (use.limit - use.request) if use.limit > use.capacity else 0.0
        found = statistics(measured, CPU if resource == "cpu" else MEMORY)
        of_load = 0.0 if found is None else self._risk_of_load(found, resource, use)
        weight = self._weights[resource]
        return min(max(weight * of_limits + (1 - weight) * of_load, 0.0), 1.0)

    def _risk_of_load(self, found: Statistics, resource: str, use: Use) -> float:
        capacity = float(use.capacity) if resource == "cpu" else use.capacity * MEBI
        mean = deviation = 0.0
        if capacity > 0:
            mean = max(min(found.average * capacity / 100 / capacity, 1.0), 0.0)
            deviation = max(min(found.deviation * capacity / 100 / capacity, 1.0), 0.0)
        deviation *= self._smoothing
        largest = mean * (1 - mean) if 0 < mean < 1 else 0.0
        deviation = min(deviation, math.sqrt(largest * MOST_OF_VARIANCE))
        if not use.capacity:
            return 0.0
        allocated = min(max(use.request_before / use.capacity, 0.0), 1.0)
        limit = None
        if use.limit_before < use.capacity and use.request_before <= use.limit_before:
            limit = use.limit_before / use.capacity
        return 1 - _probability_within(mean, deviation, allocated, limit)


@lru_cache(maxsize=65_536)
def _probability_within(mean: float, deviation: float, allocated: float, limit: float | None) -> float:
    """The probability that no more is used than is allocated, given that no more is used than the limits."""
    distribution = None
    if mean == 0 or (deviation == 0 and mean <= allocated):
        probability = 1.0
    elif deviation == 0:
        probability = 0.0
    else:
        distribution = beta_of(mean, deviation)
        probability = 0.0 if distribution is None else regularized_incomplete_beta(allocated, *distribution)
    if limit == 0:
        return 1.0
    if limit is not None and distribution is not None:
        within_limit = regularized_incomplete_beta(limit, *distribution)
        if within_limit > 0:
            probability = min(max(probability / within_limit, 0.0), 1.0)
    return probability


def _use(capacity: int, requested: int, limited: int, request: int, limit: int) -> Use:
    return Use(min(requested + request, capacity), limited + limit, min(requested, capacity), limited, capacity)
