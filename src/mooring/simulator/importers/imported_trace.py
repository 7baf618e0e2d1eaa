"""What an importer makes of a published trace: rows of our schema, the nodes of its cluster, and what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mooring.base.documents import written
from mooring.base.earlier_output import head_of
from mooring.base.errors import OperatorMistake
from mooring.simulated.cluster_file import SHORT_FORM
from mooring.simulated.kubelet.node_registration import node_document
from mooring.simulator.cluster_files import cluster_with
from mooring.simulator.scenario import Cluster, Workload
from mooring.simulator.text_files import uncompressed_name
from mooring.simulator.trace_rows import TraceRow, arrivals_of
from mooring.simulator.virtual_time import START

GPU = "nvidia.com/gpu"
GPU_MILLI = "mooring.dev/gpu-milli"
"""Thousandths of GPUs, of traces whose pods share them. All GPUs of a node are counted together."""
GPU_MODEL = "gpu-model"
"""A label of nodes."""
_MARK = "# The nodes of a published trace, by mooring trace import.\n"
MANY_PODS = "1000"
"""Of a node: published traces know no limit of pods."""


class ImportedNode(msgspec.Struct, frozen=True):
    """A node, by what its file has about it."""

    name: str
    allocatable: Mapping[str, str]
    labels: Mapping[str, str] = {}


class NotImported:
    """Counts what is not imported, by the reason."""

    def __init__(self) -> None:
        self._reasons: Counter[str] = Counter()

    def add(self, reason: str) -> None:
        self._reasons[reason] += 1

    def sentences(self) -> Iterator[str]:
        for reason, count in self._reasons.items():
            yield f"{count:,} {reason}"


class ImportedTrace:
    """A trace of another format. Its rows are read while they are iterated, once: they may be millions."""

    def __init__(
        self,
        rows: Iterable[TraceRow],
        resources: Sequence[str],
        nodes: Sequence[ImportedNode] = (),
        *,
        left_out: NotImported | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        self.rows = iter(rows)
        self.resources = resources
        """What its pods request."""
        self.nodes = nodes
        """Empty where no file has them."""
        self._left_out = left_out or NotImported()
        self._notes = notes

    @property
    def notes(self) -> list[str]:
        """What was left out or assumed; complete once the rows were read."""
        return [*self._notes, *self._left_out.sentences()]

    def workload(self) -> Workload:
        """Its pods."""
        return Workload(arrivals_of(self.rows))

    def cluster(self) -> Cluster:
        """Its nodes."""
        return cluster_with(
            node_document(
                node.name, ordinal=ordinal, labels=node.labels, allocatable=_allocatable(node), zones=(), now=START
            )
            for ordinal, node in enumerate(self.nodes)
        )

    def cluster_file(self) -> str:
        """Its nodes as a cluster file: a SimulatedNodes document for those that differ in nothing but their names."""
        alike: dict[tuple[Any, ...], list[ImportedNode]] = {}
        for node in self.nodes:
            alike.setdefault((*node.allocatable.items(), *node.labels.items()), []).append(node)
        return _MARK + "---\n".join(written(_simulated_nodes(nodes)) for nodes in alike.values())


def is_cluster_file(path: str) -> bool:
    """Whether it is a cluster file of an imported trace."""
    return head_of(path).startswith(_MARK.encode())


def _simulated_nodes(nodes: list[ImportedNode]) -> dict[str, Any]:
    version, kind = SHORT_FORM
    first = nodes[0]
    labels = {"labels": dict(first.labels)} if first.labels else {}
    names = [node.name for node in nodes]
    return {
        "apiVersion": version,
        "kind": kind,
        **labels,
        "allocatable": _allocatable(first),
        "zones": [],
        "names": names,
    }


def _allocatable(node: ImportedNode) -> dict[str, str]:
    return {**node.allocatable, "pods": MANY_PODS}


def files_in(paths: Sequence[str | Path], roles: Mapping[str, str], required: str) -> dict[str, Path]:
    """The file of each role, by a part of its name. A folder stands for its files, of which others are left out."""
    found: dict[str, Path] = {}
    for path in map(Path, paths):
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            role = next((role for role, part in roles.items() if part in file.name), None)
            if role is None or not _is_table(file):
                if file != path:
                    continue
                parts = ", ".join(roles.values())
                raise OperatorMistake(
                    f"{file} is no file of this trace: their names contain one of {parts}; archives must be unpacked."
                )
            if role in found:
                raise OperatorMistake(f"{found[role]} and {file} are both a {roles[role]}; name one of them.")
            found[role] = file
    if required not in found:
        given = ", ".join(map(str, paths))
        raise OperatorMistake(f"There is no file whose name contains {roles[required]} among {given}.")
    return found


def _is_table(file: Path) -> bool:
    """Not an archive, nor a text beside the files."""
    return not file.is_dir() and Path(uncompressed_name(file)).suffix in ("", ".csv", ".json")


def milli_cpu(amount: float) -> str:
    """CPUs in thousandths, as a quantity."""
    return f"{amount / 1000:g}" if amount % 1000 == 0 and amount < 10**6 else f"{round(amount)}m"
