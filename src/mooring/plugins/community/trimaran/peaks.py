"""Peaks: favour nodes whose power grows least by the pod.

The power of a node follows from the load of its CPU by a model, k0 + k1·e^(k2·load). The raw score is by how much the
pod increases it, times 10¹⁵: the least becomes 100. A node without a model needs no power by its model, and is best.
A node that the pod would overload, or whose load is not known, has 0.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from mooring.base.errors import OperatorMistake
from mooring.framework import (
    ArgsPart,
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
)
from mooring.objects.quantity import milli
from mooring.plugins.community.go_arithmetic import CheapestBest
from mooring.plugins.community.trimaran.args import TrimaranArgs
from mooring.plugins.community.trimaran.load_collector import LoadCollector
from mooring.plugins.community.trimaran.load_sources import MeasuredNode, source_of
from mooring.plugins.community.trimaran.loads import Loads, cpu_loads

MODEL_FILE = "NODE_POWER_MODEL"
"""The environment variable that names a file with the models, where the arguments have none."""
SCALE = 10.0**15
MOST = 2**62
UNFIT = 2**62 + 1
"""The raw score of a node that the pod would overload, or whose load is not known: it is not compared with others."""


class PowerModel(ArgsPart):
    """The power of a node in watts: k0 + k1·e^(k2·load in percent)."""

    k0: float = 0.0
    k1: float = 0.0
    k2: float = 0.0


NO_MODEL = PowerModel()


class PeaksArgs(TrimaranArgs):
    """Arguments of Peaks. The names with a capital letter are scheduler-plugins'."""

    node_power_model: Annotated[dict[str, PowerModel], Meta(description="By node: its power model.")] = {}
    watcher_address_of_go: Annotated[str, Meta(description="As watcherAddress.")] = msgspec.field(
        default="", name="WatcherAddress"
    )
    node_power_model_of_go: Annotated[dict[str, PowerModel], Meta(description="As nodePowerModel.")] = msgspec.field(
        default_factory=dict, name="NodePowerModel"
    )

    @property
    def source(self) -> TrimaranArgs:
        """Where loads come from, whichever name the address has."""
        address = self.watcher_address or self.watcher_address_of_go
        return TrimaranArgs(watcher_address=address, metric_provider=self.metric_provider)

    def unused_services(self) -> Iterable[type]:
        return self.source.unused_services() if self.watcher_address_of_go else super().unused_services()

    def mistakes(self) -> Iterable[tuple[str, str]]:
        if self.watcher_address and self.watcher_address_of_go:
            yield "WatcherAddress", "is given twice; remove it or watcherAddress"
        if self.node_power_model and self.node_power_model_of_go:
            yield "NodePowerModel", "is given twice; remove it or nodePowerModel"
        yield from self.source.mistakes()
        try:
            self.models()
        except OperatorMistake as mistake:
            yield "nodePowerModel", str(mistake)

    def models(self) -> dict[str, PowerModel]:
        """Those of the arguments, or of the file that the environment names."""
        given = self.node_power_model or self.node_power_model_of_go
        if given:
            return given
        file = os.environ.get(MODEL_FILE, "")
        if not file:
            raise OperatorMistake(f"open : no such file or directory; give the models here, or a file by {MODEL_FILE}")
        try:
            return msgspec.json.decode(Path(file).read_bytes(), type=dict[str, PowerModel])
        except (OSError, msgspec.MsgspecError) as error:
            raise OperatorMistake(f"{file} cannot be read: {error}") from error


class Peaks(Plugin):
    """Favour nodes whose power grows least by the pod."""

    def __init__(
        self,
        args: PeaksArgs,
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
        self._models, self._loads, self._nodes = args.models(), loads, nodes
        is_compatible = args.compatibility == "scheduler-plugins"
        self._unfit = 0 if is_compatible else UNFIT
        source = source_of(args.source, http, resource_metrics, nodes, clock)
        self._collector = LoadCollector(
            self.name, source, loads, background, metrics, log, clock, problems, keeps_stale=is_compatible
        )

    async def start(self) -> None:
        self._collector.start()

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        loads = cycle.value(self._loads)
        if loads is None or not loads.nodes:
            return 0
        measured = loads.of(node.name)
        found = cpu_loads(measured) if measured else []
        if not found:
            return self._unfit
        load, object_of_node = found[0], self._nodes.get(node.name)
        capacity = float(object_of_node.cpu_milli) if object_of_node is not None else 0.0
        with_pod = 100 * (load / 100 * capacity + _request_milli(pod)) / capacity if capacity else 0.0
        if with_pod > 100:
            return self._unfit
        model = self._models.get(node.name, NO_MODEL)
        try:
            growth = model.k1 * (math.exp(model.k2 * with_pod) - math.exp(model.k2 * load)) * SCALE
        except OverflowError:
            growth = math.inf
        return max(min(int(growth), MOST), -MOST) if math.isfinite(growth) else MOST

    def normalize(self, pod: Pod, nodes: NodeRows, scores: IntArray, cycle: Cycle) -> IntArray:
        is_fit = scores != UNFIT
        normalized = np.zeros_like(scores)
        if is_fit.any():
            fit, cheapest = scores[is_fit], CheapestBest()
            normalized[is_fit] = cheapest.scale(fit, cheapest.measure(int(fit.min()), int(fit.max())))
        return normalized


def _request_milli(pod: Pod) -> int:
    """What the pod requests; overhead alone does not count."""
    overhead = pod.spec.overhead
    requested = pod.request("cpu")
    if overhead and "cpu" in overhead:
        return requested if requested > milli(overhead["cpu"]) else 0
    return requested
