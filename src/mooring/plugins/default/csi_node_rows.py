"""CSINodes by row of the node table: which rows have one, volume limits of drivers, migrated in-tree plugins."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mooring.framework import BoolArray, IntArray, NodeRows, Objects
from mooring.objects.storage import CSINode

NO_LIMIT = 2**62


class CSINodeRows:
    """CSINodes in columns, as long as the node table; rebuilt when a node is added or deleted or a CSINode changes."""

    def __init__(self, csi_nodes: Objects[CSINode]) -> None:
        self._csi_nodes = csi_nodes
        self._nodes: NodeRows | None = None
        self._version = -1

    def of(self, all_nodes: NodeRows) -> CSINodeRows:
        """These columns, as they are for these nodes (`cycle.nodes`)."""
        if self._nodes is not all_nodes or self._version != self._csi_nodes.version:
            self._nodes, self._version = all_nodes, self._csi_nodes.version
            self._make(all_nodes)
        return self

    def _make(self, all_nodes: NodeRows) -> None:
        self.size = int(all_nodes.rows[-1]) + 1 if len(all_nodes) else 0
        self.row_of: Mapping[str, int] = dict(zip(all_nodes.names, all_nodes.rows.tolist(), strict=True))
        self.has_csi_node: BoolArray = np.zeros(self.size, bool)
        self._limits: dict[str, IntArray] = {}
        self._migrated: dict[str, BoolArray] = {}
        for csi_node in self._csi_nodes.all():
            row = self.row_of.get(csi_node.name)
            if row is None:
                continue
            self.has_csi_node[row] = True
            for driver, limit in csi_node.limits.items():
                self._limits.setdefault(driver, np.full(self.size, NO_LIMIT))[row] = limit
            for plugin in csi_node.migrated:
                self._migrated.setdefault(plugin, np.zeros(self.size, bool))[row] = True

    def limit(self, driver: str) -> IntArray:
        """How many of the driver's volumes a row can attach."""
        limits = self._limits.get(driver)
        return limits if limits is not None else np.full(self.size, NO_LIMIT)

    def is_migrated(self, plugin: str) -> BoolArray:
        """Where a CSI driver does the in-tree plugin's work."""
        migrated = self._migrated.get(plugin)
        return migrated if migrated is not None else np.zeros(self.size, bool)
