"""New volumes for claims: on which nodes their storage class can make them, and whether there is room.

The allowed topologies of a class limit where its volumes can be. Capacity is checked only for CSI drivers that publish
it: one CSIStorageCapacity of the class that the node has access to must take a volume of the claim's size.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from mooring.framework import BoolArray, IntArray, NodeRows, NodeView, Objects
from mooring.framework.node_selectors import where_labels
from mooring.framework.services import Index
from mooring.objects.selectors import Labels
from mooring.objects.storage import (
    NO_PROVISIONER,
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorTerm,
)
from mooring.plugins.default.volume_binding.matching import NONE


class Provision(msgspec.Struct, frozen=True):
    """A volume to be made for a claim."""

    claim: PersistentVolumeClaim
    storage_class: StorageClass
    capacities: Sequence[CSIStorageCapacity] | None
    """Those of the class that would take the claim; None: the driver publishes none."""

    def is_possible_for(self, node: NodeView) -> bool:
        """Whether the class makes volumes at all, and where this node can use them."""
        return self._is_dynamic and topologies_match(self.storage_class.allowed_topologies, node.labels)

    def where_possible(self, nodes: NodeRows) -> BoolArray:
        """`is_possible_for`, for many nodes."""
        if not self._is_dynamic:
            return np.zeros(len(nodes), bool)
        return where_topologies_match(self.storage_class.allowed_topologies, nodes)

    @property
    def _is_dynamic(self) -> bool:
        return self.storage_class.provisioner not in ("", NO_PROVISIONER)

    def capacity_at(self, node: NodeView) -> CSIStorageCapacity | None:
        """The capacity that would serve the node."""
        return next(
            (
                capacity
                for capacity in self.capacities or ()
                if capacity.node_topology is not None and capacity.node_topology.matches(node.labels)
            ),
            None,
        )

    def capacity_over(self, nodes: NodeRows) -> IntArray:
        """`capacity_at`, for many nodes: a position in `capacities`, or NONE."""
        found = np.full(len(nodes), NONE)
        for position, capacity in enumerate(self.capacities or ()):
            if capacity.node_topology is not None:
                found[(found == NONE) & where_labels(capacity.node_topology, nodes)] = position
        return found


class Provisioners:
    """Storage classes that provision volumes, and their capacity."""

    def __init__(
        self,
        classes: Objects[StorageClass],
        drivers: Objects[CSIDriver],
        capacities: Index[CSIStorageCapacity],
    ) -> None:
        self._classes = classes
        self._drivers = drivers
        self._capacities = capacities

    def provision(self, claim: PersistentVolumeClaim) -> Provision:
        storage_class = self._classes.get(claim.storage_class)
        assert storage_class is not None, f"claim {claim.key} waits for pods, so its class is there"
        return Provision(claim, storage_class, self._room_for(claim, storage_class))

    def _room_for(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass
    ) -> Sequence[CSIStorageCapacity] | None:
        size = claim.requested_bytes
        driver = self._drivers.get(storage_class.provisioner)
        if size is None or driver is None or not driver.spec.storage_capacity:
            return None
        return [
            capacity
            for capacity in self._capacities.at(storage_class.name)
            if (largest := capacity.largest_bytes) is not None and largest >= size
        ]


def topologies_match(terms: Sequence[TopologySelectorTerm], labels: Labels) -> bool:
    """Any term will do, all of whose labels have one of their values; no terms: everywhere."""
    return not terms or any(
        term.match_label_expressions
        and all(labels.get(part.key) in part.values for part in term.match_label_expressions)
        for term in terms
    )


def where_topologies_match(terms: Sequence[TopologySelectorTerm], nodes: NodeRows) -> BoolArray:
    """`topologies_match`, for many nodes."""
    if not terms:
        return np.ones(len(nodes), bool)
    found = np.zeros(len(nodes), bool)
    for term in terms:
        if term.match_label_expressions:
            mask = np.ones(len(nodes), bool)
            for part in term.match_label_expressions:
                mask &= nodes.where_label_in(part.key, part.values)
            found |= mask
    return found
