"""NodeResourcesAllocatable: favour small nodes, or large ones, whatever runs on them.

The raw score is the weighted mean of what the node has to offer, negative in the mode Least. CPU counts in
thousandths and memory in bytes, so a weight also is a rate of exchange: by default a thousandth of a CPU is worth
1 MiB. The pod does not matter; neither do the pods on the node.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Annotated

import numpy as np

from mooring.framework import Args, ArgsPart, Cycle, IntArray, Meta, NodeRows, NodeView, Plugin, Pod, Reads
from mooring.objects.requests import is_counted
from mooring.plugins.community.go_arithmetic import MinMax, quotient, quotients, wrapped

LEAST, MOST = "Least", "Most"
DEFAULT_WEIGHTS = {"cpu": 1 << 20, "memory": 1}


class WeightedResource(ArgsPart):
    """A resource and how much one unit of it counts."""

    name: str
    weight: Annotated[int, Meta(description="How much a thousandth of a CPU, a byte or a piece counts.")] = 0


class NodeResourcesAllocatableArgs(Args):
    """Arguments of NodeResourcesAllocatable."""

    mode: Annotated[str, Meta(description="Least favours small nodes, Most large ones.")] = LEAST
    resources: Annotated[
        list[WeightedResource], Meta(description="What counts; none given: cpu with 1048576 and memory with 1.")
    ] = []

    def mistakes(self) -> Iterable[tuple[str, str]]:
        for at, resource in enumerate(self.resources):
            if resource.weight <= 0:
                yield (
                    f"resources[{at}].weight",
                    f"Invalid value: {resource.weight}: resource weight of {resource.name} should be a positive "
                    f"value, got :{resource.weight}",
                )
        if self.mode not in (LEAST, MOST, ""):
            yield "mode", f'Invalid value: "{self.mode}": invalid support ModeType'


class NodeResourcesAllocatable(Plugin):
    """Favour nodes with little or with much to allocate."""

    reads = Reads.NODE
    normalizer = MinMax()

    def __init__(self, args: NodeResourcesAllocatableArgs) -> None:
        weights = {resource.name: resource.weight for resource in args.resources} or DEFAULT_WEIGHTS
        sign = 1 if args.mode == MOST else -1
        # A name that scheduling does not account for counts 0, and its weight still divides.
        self._weights = {name: sign * weight for name, weight in weights.items() if is_counted(name)}
        self._total = wrapped(sum(weights.values()))

    def sign(self, pod: Pod) -> Hashable | None:
        return ()

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        total = sum(node.allocatable(name) * weight for name, weight in self._weights.items())
        return quotient(wrapped(total), self._total)

    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> IntArray:
        total = np.zeros(len(nodes), np.int64)
        for name, weight in self._weights.items():
            total += nodes.allocatable(name) * np.int64(weight)
        return quotients(total, self._total)
