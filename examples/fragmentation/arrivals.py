"""Which pods of a trace arrive in a run of the evaluation, in which order, and which node comes first of equals.

All pods arrive in random order, then copies of random ones, until so much GPU demand has arrived; or pods are left out
where there is too much. Nodes get random ranks.
"""

from __future__ import annotations

import msgspec

from mooring.simulator.importers.openb import OpenbNode, OpenbPod

from .go_random import GoRandom
from .trace import Trace

LOAD = 1.3
"""GPU demand that arrives, of the cluster's capacity."""
WORDS_OF_INFORMERS = 10
"""So many random numbers the paper's simulator uses before it permutes nodes."""


class Order(msgspec.Struct, frozen=True):
    """The random choices of a run."""

    arrivals: list[int]
    """Places in the trace's list of pods; the copies follow the originals."""
    ranks: list[int]
    """Of each node of the trace."""


def order_of(trace: Trace, generator: GoRandom, load: float = LOAD) -> Order:
    """Drawn in the order of the paper's simulator."""
    pods, most = trace.pods, load * trace.gpu_capacity
    generator.skip(1)
    arrivals = list(range(len(pods)))
    generator.shuffle(arrivals)
    total = sum(pod.total_gpu_milli for pod in pods)
    if total < most:
        while True:
            drawn = generator.below(len(pods))
            # By what it wants of each device: the last copies may so exceed the load by some devices.
            if total + pods[drawn].gpu_milli > most:
                break
            arrivals.append(drawn)
            total += pods[drawn].total_gpu_milli
    else:
        while total > most:
            total -= pods[arrivals.pop(generator.below(len(arrivals)))].total_gpu_milli
    generator.skip(WORDS_OF_INFORMERS)
    return Order(arrivals, generator.permutation(len(trace.nodes)))


def ranked(trace: Trace, order: Order) -> list[OpenbNode]:
    """The nodes by rank: a scheduler that takes the first of equals then follows the ranks."""
    return [node for _, node in sorted(zip(order.ranks, trace.nodes, strict=True), key=lambda each: each[0])]


def arriving(trace: Trace, order: Order) -> list[tuple[str, OpenbPod]]:
    """The pods in their order, each with a name of its own."""
    named, seen = [], set()
    for number, place in enumerate(order.arrivals):
        row = trace.pods[place]
        named.append((f"{row.name}-copy-{number}" if place in seen else row.name, row))
        seen.add(place)
    return named
