"""LoadAware: favour nodes that are really idle, by what Prometheus measured and what we placed since.

A background task queries Prometheus for the CPU use of all nodes at once and publishes it. A sample is blind to pods
that started after it was taken, so their requests count on top. Without any sample every node is alike.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from mooring.framework import (
    Args,
    Background,
    Clock,
    Cycle,
    Http,
    Log,
    Meta,
    NodeRows,
    NodeView,
    Plugin,
    Pod,
    Published,
    Reads,
    Skip,
)


class LoadAwareArgs(Args):
    prometheus_address: str
    query: str = 'sum by (node) (rate(node_cpu_seconds_total{mode!="idle"}[1m]))'
    refresh_seconds: Annotated[float, Meta(gt=0)] = 30


class Load(msgspec.Struct, frozen=True):
    """One sample."""

    used_cpu_milli: dict[str, int]
    """By node name."""
    taken_at: float


class LoadAware(Plugin):
    """Favour nodes with less CPU in use."""

    reads = Reads.PODS

    def __init__(
        self,
        args: LoadAwareArgs,
        http: Http,
        load: Published[Load],
        background: Background,
        clock: Clock,
        log: Log,
    ) -> None:
        self._args, self._http, self._load = args, http, load
        self._background, self._clock, self._log = background, clock, log

    async def start(self) -> None:
        self._background.every(self._args.refresh_seconds, self._refresh)

    async def _refresh(self) -> None:
        taken_at = self._clock.now()
        url = f"{self._args.prometheus_address}/api/v1/query"
        response = await self._http.get(url, params={"query": self._args.query})
        series = response.json()["data"]["result"]
        used = {one["metric"]["node"]: round(float(one["value"][1]) * 1000) for one in series}
        self._load.publish(Load(used, taken_at))

    def pre_score(self, pod: Pod, feasible: NodeRows, cycle: Cycle) -> Load | Skip:
        load = cycle.value(self._load)
        return Skip() if load is None else load

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        load: Load = cycle.score_state(self)
        unseen = sum(
            placed.request("cpu") for placed in node.pods if placed.started is None or placed.started > load.taken_at
        )
        used = load.used_cpu_milli.get(node.name, 0) + unseen
        capacity = node.allocatable("cpu")
        return max(0, 100 - used * 100 // capacity) if capacity else 0
