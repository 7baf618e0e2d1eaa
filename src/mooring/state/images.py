"""The images on nodes, by name: which rows have one, and how large it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from mooring.framework import BoolArray, NodeRows, NodeView
from mooring.objects.core import ContainerImage
from mooring.state.row_counts import RowCounts
from mooring.state.views import Rows, Table


class ImageSummary:
    """The framework's `Image`: one name under which some node lists an image."""

    __slots__ = ("_table", "rows", "size_bytes")

    def __init__(self, table: Table, size_bytes: int) -> None:
        self._table = table
        self.rows = RowCounts()
        self.size_bytes = size_bytes
        """That of the first node that listed it; as long as some node does, sizes of others are ignored."""

    @property
    def node_count(self) -> int:
        return len(self.rows)

    def on(self, node: NodeView) -> bool:
        return node.row in self.rows

    def on_rows(self, nodes: NodeRows) -> BoolArray:
        return cast(Rows, nodes).cells_of(self.rows.mask(self._table.capacity))


class ImageIndex:
    """Every image name of every node."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._known: dict[str, ImageSummary] = {}

    def get(self, name: str) -> ImageSummary | None:
        return self._known.get(name)

    def put(self, row: int, images: Iterable[ContainerImage]) -> None:
        """The node on this row lists these. A name it lists twice counts once."""
        known = self._known
        for image in images:
            for name in image.names:
                entry = known.get(name)
                if entry is None:
                    entry = known[name] = ImageSummary(self._table, image.size_bytes)
                if row not in entry.rows:
                    entry.rows.add(row, 1)

    def take(self, row: int, images: Iterable[ContainerImage]) -> None:
        """The node on this row listed these and does so no longer."""
        for name in {name for image in images for name in image.names}:
            entry = self._known[name]
            entry.rows.add(row, -1)
            if not entry.rows:
                del self._known[name]
