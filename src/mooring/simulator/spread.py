"""How the pods of one owner are spread over nodes and zones.

Of each owner the moment counts at which the most of its pods ran: a Job whose pods run one after the other is no
Deployment whose pods share a node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from mooring.objects import Node, Pod
from mooring.objects.migration import ZONE


class OwnerSpread(msgspec.Struct, frozen=True, gc=False):
    """Where the pods of an owner were when the most of them ran."""

    owner: str
    pods: int
    nodes: int
    """On how many nodes."""
    most_on_node: int
    zones: int
    """In how many zones; 0: nodes have none."""
    zone_skew: int
    """The difference between the zone that had the most of them and the one that had the fewest."""


def owner_of(pod: Pod) -> str:
    """Namespace, kind and name of its controller, as far as they are known; "": it has none."""
    for reference in pod.metadata.owner_references:
        if reference.controller:
            if not reference.name:
                return reference.uid
            return f"{pod.namespace}/{reference.kind}/{reference.name}"
    return ""


class Spread:
    """Counts the running pods of each owner by node and zone."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._zone_of = {node.name: node.metadata.labels.get(ZONE, "") for node in nodes}
        self._zones = sorted({zone for zone in self._zone_of.values() if zone})
        self._owners: dict[str, _Owner] = {}

    def add(self, owner: str, node: str) -> None:
        """A pod of the owner was bound."""
        if not owner:
            return
        if (known := self._owners.get(owner)) is None:
            known = self._owners[owner] = _Owner(owner)
        known.add(node, self._zone_of.get(node, ""), self._zones)

    def remove(self, owner: str, node: str) -> None:
        """One of them ended, or was evicted."""
        if (known := self._owners.get(owner)) is not None:
            known.remove(node, self._zone_of.get(node, ""))

    def owners(self) -> list[OwnerSpread]:
        """Those that had two pods or more at a time, in the order in which their first pods were bound."""
        return [known.widest for known in self._owners.values() if known.widest.pods > 1]


class _Owner:
    __slots__ = ("_by_node", "_by_zone", "_nodes_by_count", "_running", "widest")

    def __init__(self, owner: str) -> None:
        self._running = 0
        self._by_node: Counter[str] = Counter()
        self._nodes_by_count: Counter[int] = Counter()
        """How many nodes have one of its pods, two, …: so the most on a node is found without a look at all nodes."""
        self._by_zone: Counter[str] = Counter()
        self.widest = OwnerSpread(owner, 0, 0, 0, 0, 0)

    def add(self, node: str, zone: str, zones: list[str]) -> None:
        self._running += 1
        self._count(node, 1)
        if zone:
            self._by_zone[zone] += 1
        if self._running > self.widest.pods:
            by_zone = [self._by_zone[each] for each in zones]
            self.widest = OwnerSpread(
                self.widest.owner,
                self._running,
                len(self._by_node),
                max(self._nodes_by_count),
                sum(count > 0 for count in by_zone),
                max(by_zone) - min(by_zone) if by_zone else 0,
            )

    def remove(self, node: str, zone: str) -> None:
        self._running -= 1
        self._count(node, -1)
        if zone:
            self._by_zone[zone] -= 1

    def _count(self, node: str, change: int) -> None:
        before = self._by_node[node]
        after = before + change
        if before:
            self._nodes_by_count[before] -= 1
            if not self._nodes_by_count[before]:
                del self._nodes_by_count[before]
        if after:
            self._by_node[node] = after
            self._nodes_by_count[after] += 1
        else:
            del self._by_node[node]
