"""How much the nodes hold together, whatever runs on them, and which labels they have.

What exceeds it, or requires another label, can never be scheduled on them. Nodes are counted by what they allow and by
the keys of their labels: few differ, so that a sum costs little in a large cluster. Cordoned nodes count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from mooring.client.informer import Informer
from mooring.objects import Node
from mooring.objects.quantity import BadQuantity, whole
from mooring.objects.requests import Amounts, in_units

PODS = "pods"
_Shape = tuple[tuple[tuple[str, int], ...], frozenset[str]]
"""What a node allows, and the keys of its labels."""


class ClusterRoom:
    """The sum of what nodes allow, and the keys of their labels."""

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        self._shapes: Counter[_Shape] = Counter()
        self._of_node: dict[str, _Shape] = {}
        self._on_change: list[Callable[[], None]] = []
        for node in nodes:
            self.put(node)

    @classmethod
    def watching(cls, nodes: Informer[Node]) -> ClusterRoom:
        room = cls(nodes.all())
        nodes.subscribe(changed=room.put, deleted=room.remove)
        return room

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Called when a node comes, goes, allows something else, or has other labels."""
        self._on_change.append(changed)

    def put(self, node: Node) -> None:
        shape = tuple(sorted(allocatable_of(node).items())), frozenset(node.labels)
        if self._of_node.get(node.name) == shape:
            return
        self._drop(node.name)
        self._of_node[node.name] = shape
        self._shapes[shape] += 1
        self._changed()

    def remove(self, node: Node) -> None:
        self._drop(node.name)
        self._changed()

    def _drop(self, name: str) -> None:
        if (shape := self._of_node.pop(name, None)) is not None:
            self._shapes -= Counter({shape: 1})

    def _changed(self) -> None:
        for notify in self._on_change:
            notify()

    @property
    def nodes(self) -> int:
        return len(self._of_node)

    def total(self, resource: str) -> int:
        """What all nodes together allow."""
        return sum(dict(amounts).get(resource, 0) * count for (amounts, _), count in self._shapes.items())

    def most_pods(self, requests: Amounts) -> int:
        """How many pods that each request this at least may run at once: an upper bound."""
        return sum(_most_on_one(dict(amounts), requests) * count for (amounts, _), count in self._shapes.items())

    def has_label(self, key: str) -> bool:
        """Whether any node has a label of this key."""
        return any(key in keys for _, keys in self._shapes)


def allocatable_of(node: Node) -> Amounts:
    """In the scheduler's units, with `pods`; nothing where a quantity cannot be read."""
    quantities = node.status.allocatable
    try:
        return {**in_units(quantities), PODS: whole(quantities.get(PODS, 0))}
    except BadQuantity:
        return {}


def _most_on_one(allocatable: Amounts, requests: Amounts) -> int:
    of_each = [allocatable.get(resource, 0) // amount for resource, amount in requests.items() if amount > 0]
    return max(0, min(allocatable.get(PODS, 0), *of_each)) if of_each else max(0, allocatable.get(PODS, 0))
