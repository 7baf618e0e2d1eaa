"""What nodes use by metrics.k8s.io: the service that reads it, and how its lists are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from mooring.base.clock import parse_timestamp
from mooring.base.errors import Fault
from mooring.base.nesting import decode
from mooring.objects.meta import Kind
from mooring.objects.quantity import BadQuantity, QuantityText, milli, whole

NODE_METRICS = Kind("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", namespaced=False)


@dataclass(frozen=True, slots=True)
class NodeUse:
    """What a node used when it was last measured."""

    node: str
    cpu_milli: int
    memory_bytes: int
    measured_at: float
    """Seconds since the epoch."""


class ResourceMetrics(Protocol):
    """The metrics API of the cluster (metrics.k8s.io), which metrics-server serves, for background tasks.

    Taking it in a constructor grants the scheduler the right to list `nodes.metrics.k8s.io`, unless the arguments leave
    it out (`Args.unused_services`).
    """

    async def nodes(self, *, timeout_seconds: float = 10.0) -> Sequence[NodeUse]:
        """What every node uses. Raises `Fault` when the API is not served, not allowed, or not readable.

        An item that cannot be read is left out.
        """
        ...


class _Metadata(msgspec.Struct):
    name: str = ""


class _Item(msgspec.Struct):
    metadata: _Metadata
    usage: dict[str, QuantityText] = {}
    timestamp: str = ""


class _ItemList(msgspec.Struct):
    items: list[_Item]


def node_uses(body: bytes, source: str) -> list[NodeUse]:
    """The nodes of a NodeMetricsList. `source` names the server in messages."""
    try:
        listed: _ItemList = decode(body, _ItemList)
    except msgspec.MsgspecError as error:
        raise Fault(f"{source} returned something that is not a list of NodeMetrics: {error}") from error
    return [use for item in listed.items if (use := _use(item)) is not None]


def _use(item: _Item) -> NodeUse | None:
    try:
        cpu, memory = milli(item.usage.get("cpu", 0)), whole(item.usage.get("memory", 0))
        return NodeUse(item.metadata.name, cpu, memory, parse_timestamp(item.timestamp))
    except (BadQuantity, ValueError, OverflowError):
        return None
