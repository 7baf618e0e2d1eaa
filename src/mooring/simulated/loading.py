"""Fills an embedded API server with the objects of a cluster file or a snapshot, before it is started."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from mooring.base.errors import Problem
from mooring.simulated.cluster_file import ClusterFile, InitialObjects, read_cluster_file
from mooring.simulated.controllers.persistent_volume_controller import DEFAULT_CLASS
from mooring.simulated.records import Document

_MOST_NAMED, _LONGEST = 50, 100
"""Kinds that a snapshot lacks, and characters of each: the header is another person's."""
LineOf = Callable[[Document], int | None]


class _Restored(Protocol):
    problems: list[Problem]

    def sentences(self) -> Iterator[str]: ...


class Server(Protocol):
    """The embedded API server, as far as it is filled here: this package does not import it."""

    @property
    def store(self) -> Any: ...
    def load(self, documents: Iterable[Document], line_of: LineOf) -> list[Problem]: ...
    def restore(self, documents: Iterable[Document], line_of: LineOf) -> _Restored: ...


def fill(server: Server, path: str, *, now: float) -> list[str]:
    """Create and restore the objects of the file; all that is wrong is reported at once.

    Returns sentences for who reads the result: what a snapshot lacks, what could not be restored.
    """
    return fill_from(server, read_cluster_file(path, now=now))


def fill_from(server: Server, file: ClusterFile) -> list[str]:
    """The same, of a file that was read, or a snapshot that is in no file."""
    notes = []
    if file.snapshot is not None and (left_out := file.snapshot.header.left_out):
        named = ", ".join(f"{each.kind[:_LONGEST]} ({each.reason[:_LONGEST]})" for each in left_out[:_MOST_NAMED])
        named += f" and {len(left_out) - _MOST_NAMED:,} more" if len(left_out) > _MOST_NAMED else ""
        notes.append(f"Not in the snapshot: {named}. Decisions that depend on them may differ.")
    restored = server.restore(file.initial.restored, file.line_of)
    created = server.load(with_default_storage(file.initial).in_order(), file.line_of)
    file.refuse([*file.problems, *restored.problems, *created])
    notes += restored.sentences()
    if not server.store.list("nodes"):
        notes.append(
            f"{file.source} has no nodes: pods stay pending until a node is created. A SimulatedNodes document in the "
            "file makes some."
        )
    return notes


def with_default_storage(initial: InitialObjects) -> InitialObjects:
    """An embedded cluster has a default StorageClass, unless it is to be like one that brings its own or none."""
    if not initial.restored and not any(each["kind"] == "StorageClass" for each in initial.objects):
        initial.objects.insert(0, DEFAULT_CLASS)
    return initial
