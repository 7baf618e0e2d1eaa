"""Volumes that are bound already: whether they exist, and which nodes can use them.

The volume's node affinity decides. Where a CSI driver has taken over an in-tree plugin on the node, the affinity is
read in that driver's labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mooring.base.errors import Fault
from mooring.framework import BoolArray, NodeRows, NodeView, Objects
from mooring.framework.node_selectors import where_selector
from mooring.objects.core import NodeSelector
from mooring.objects.migration import InTree, Untranslatable, in_tree_of, migrated_nodes_of
from mooring.objects.placement_rules import selector_matches
from mooring.objects.storage import CSINode, PersistentVolume, PersistentVolumeClaim
from mooring.plugins.default.csi_node_rows import CSINodeRows
from mooring.plugins.default.volume_binding.assumed_objects import AssumedObjects


def admits_node(required: NodeSelector | None, node: NodeView) -> bool:
    """Whether a volume with this affinity can be used on the node. It is read by labels alone, not by the name."""
    return required is None or selector_matches(required, None, node.labels)


def where_admitted(required: NodeSelector | None, nodes: NodeRows) -> BoolArray:
    """`admits_node`, for many nodes."""
    return np.ones(len(nodes), bool) if required is None else where_selector(required, nodes, by_name=False)


class BoundVolumes:
    """The volumes of bound claims."""

    def __init__(self, volumes: AssumedObjects[PersistentVolume], csi_nodes: Objects[CSINode]) -> None:
        self._volumes = volumes
        self._csi_nodes = csi_nodes

    def at(self, claims: Sequence[PersistentVolumeClaim], node: NodeView) -> tuple[bool, bool]:
        """Whether a volume cannot be used on the node, and whether one is gone. The first of either is enough."""
        for claim in claims:
            volume = self._volumes.get(claim.spec.volume_name)
            if volume is None:
                return False, True
            if not self.is_usable(volume, node):
                return True, False
        return False, False

    def is_usable(self, volume: PersistentVolume, node: NodeView) -> bool:
        """Whether the volume can be used on the node, as the node's drivers know it."""
        required, in_tree = volume.required_nodes, _taken_over(volume)
        if in_tree is not None:
            csi_node = self._csi_nodes.get(node.name)
            if csi_node is not None and in_tree.plugin in csi_node.migrated:
                required = _translated(volume, in_tree)
        return admits_node(required, node)

    def over(
        self, claims: Sequence[PersistentVolumeClaim], nodes: NodeRows, rows: CSINodeRows
    ) -> tuple[BoolArray, BoolArray]:
        """`at`, for many nodes."""
        is_misplaced, is_gone = np.zeros(len(nodes), bool), np.zeros(len(nodes), bool)
        for claim in claims:
            volume = self._volumes.get(claim.spec.volume_name)
            if volume is None:
                is_gone |= ~is_misplaced
                break
            is_admitted = where_admitted(volume.required_nodes, nodes)
            if in_tree := _taken_over(volume):
                is_migrated = rows.is_migrated(in_tree.plugin).take(nodes.rows) & ~is_misplaced
                if is_migrated.any():
                    is_admitted = np.where(
                        is_migrated, where_admitted(_translated(volume, in_tree), nodes), is_admitted
                    )
            is_misplaced |= ~is_admitted
        return is_misplaced, is_gone


def _taken_over(volume: PersistentVolume) -> InTree | None:
    in_tree = in_tree_of(volume)
    return in_tree if in_tree is not None and in_tree.is_migrated else None


def _translated(volume: PersistentVolume, in_tree: InTree) -> NodeSelector | None:
    try:
        return migrated_nodes_of(volume, in_tree)
    except Untranslatable as problem:
        raise Fault(f"could not translate pv: {problem}") from problem
