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

    __slots__ = ("_rows", "_size_bytes", "_table")

    def __init__(self, table: Table, size_bytes: int) -> None:
        self._table = table
        self._rows = RowCounts()
        self._size_bytes = size_bytes

    @property
    def size_bytes(self) -> int:
        """That of the first node that listed it; as long as some node does, sizes of others are ignored."""
        return self._size_bytes

    @property
    def node_count(self) -> int:
        return len(self._rows)

    def on(self, node: NodeView) -> bool:
        return node.row in self._rows

    def on_rows(self, nodes: NodeRows) -> BoolArray:
        return cast(Rows, nodes).cells_of(self._rows.mask(self._table.capacity))

    def count(self, row: int, by: int) -> int:
        """The node on this row lists it (1), or does no longer (-1). Returns how many do."""
        if by < 0 or row not in self._rows:
            self._rows.add(row, by)
        return len(self._rows)


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
                entry.count(row, 1)

    def take(self, row: int, images: Iterable[ContainerImage]) -> None:
        """The node on this row listed these and does so no longer."""
        for name in {name for image in images for name in image.names}:
            if not self._known[name].count(row, -1):
                del self._known[name]
