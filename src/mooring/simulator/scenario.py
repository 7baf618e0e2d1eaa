"""What is simulated: a cluster as it is at the beginning, and the pods that arrive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import msgspec

from mooring.base.errors import OperatorMistake
from mooring.objects import Node, Pod
from mooring.objects.meta import KubeObject

KindKey = tuple[str, str]
"""apiVersion and kind."""
Documents = Mapping[KindKey, Sequence[Mapping[str, Any]]]


class Cluster(msgspec.Struct, frozen=True):
    """Nodes, the pods on them, pending pods, and the other objects that plugins read."""

    nodes: Sequence[Node]
    pods: Sequence[Pod] = ()
    objects: Sequence[KubeObject] = ()
    documents: Documents = {}
    """Further objects, decoded only where a plugin reads their kind."""
    notes: Sequence[str] = ()
    """What the reader of its file should know, such as what a snapshot lacks."""

    @staticmethod
    def read(path: str | Path) -> Cluster:
        """A cluster file or a snapshot. All that is wrong in it is reported at once, as an OperatorMistake."""
        from mooring.simulator.cluster_files import read_cluster

        if not isinstance(path, str | Path):
            raise OperatorMistake(f"Cluster.read reads a file, got a {type(path).__name__}.")
        return read_cluster(str(path))

    @staticmethod
    def of_live(kubeconfig: str | Path | None = None, *, context: str | None = None) -> Cluster:
        """A cluster that runs, as it is now, found as `mooring run` finds it. Only lists are requested of it."""
        from mooring.client import find_connection
        from mooring.simulator.live_clusters import read_live_cluster

        named = str(kubeconfig) if kubeconfig is not None else None
        return read_live_cluster(find_connection(kubeconfig=named, context=context))

    @staticmethod
    def of_nodes(count: int) -> Cluster:
        """`node-1` to `node-N`, of 4 CPU and 16 GiB each."""
        from mooring.simulator.cluster_files import plain_cluster

        if count < 0:
            raise OperatorMistake(f"A cluster cannot have {count} nodes.")
        return plain_cluster(count)

    @staticmethod
    def generate(
        nodes: int | None = None,
        *,
        kinds: Sequence[Mapping[str, Any]] | None = None,
        zones: Sequence[str] | None = None,
        seed: int = 0,
    ) -> Cluster:
        """Nodes of several kinds, by a seed: what a GeneratedCluster document with these fields makes.

        `kinds` are mappings with `name`, `weight` or `count`, `labels`, `taints` and `allocatable`.
        """
        from mooring.simulator.cluster_files import generated_cluster

        return generated_cluster(nodes=nodes, kinds=kinds, zones=zones, seed=seed)

    def with_documents(self, documents: Documents) -> Cluster:
        """The same cluster, with further objects. Those of a kind that it has are the new ones."""
        return msgspec.structs.replace(self, documents={**self.documents, **documents}) if documents else self

    def __repr__(self) -> str:
        return f"<cluster of {len(self.nodes):,} nodes and {len(self.pods):,} pods>"

    def _repr_html_(self) -> str:
        from mooring.simulator.html_report import cluster_fragment

        return cluster_fragment(self)

    def seen_as(self, kind: type[KubeObject]) -> list[KubeObject]:
        """All objects of a kind; nodes and pods by a plugin's own type, too. They do not follow a simulation."""
        for objects, own in ((self.nodes, Node), (self.pods, Pod)):
            if kind.KIND == own.KIND:
                return [msgspec.convert(msgspec.to_builtins(each), kind, strict=False) for each in objects]
        return self.objects_of(kind)

    def lasting_objects_of(self, kind: type[KubeObject]) -> list[KubeObject]:
        """All objects of a kind that a simulation does not change: nodes by a plugin's own type, but no pods."""
        return self.seen_as(kind) if kind.KIND == Node.KIND else self.objects_of(kind)

    def objects_of(self, kind: type[KubeObject]) -> list[KubeObject]:
        """All objects of a kind, but nodes and pods."""
        found = [each for each in self.objects if type(each) is kind]
        for document in self.documents.get((kind.KIND.api_version, kind.KIND.kind), ()):
            found.append(msgspec.convert(document, kind, strict=False))
        return found


def check_cluster(cluster: object, called: str) -> None:
    """Arguments in another order would fail far from the mistake. `called` shows the right one."""
    if not isinstance(cluster, Cluster):
        raise OperatorMistake(f"{called}: the first argument must be a Cluster, got a {type(cluster).__name__}.")


class Arrival(msgspec.Struct, frozen=True, gc=False):
    """A pod that is created at a moment, in seconds from the beginning."""

    at: float
    pod: Pod
    duration: float | None = None
    """How long it runs once it is bound; None: for ever."""


class Workload(Sequence[Arrival]):
    """Pods that arrive, in any order."""

    def __init__(
        self, arrivals: Sequence[Arrival], documents: Documents | None = None, notes: Sequence[str] = ()
    ) -> None:
        """`documents` are further objects of its manifests, which the cluster has from the beginning."""
        self.arrivals = arrivals
        self.documents: Documents = documents or {}
        self.notes = notes
        """What the reader of a trace should know, such as columns that are not read."""

    @staticmethod
    def read(path: str | Path, *, cluster: Cluster | None = None, columns: Mapping[str, str] | None = None) -> Workload:
        """Manifests, or a trace whose columns are mapped by `columns`, from our name to that of the file.

        Manifests are admitted with the classes and namespaces of the cluster.
        """
        from mooring.simulator.workload_files import read_workload

        if not isinstance(path, str | Path):
            raise OperatorMistake(
                f"Workload.read reads a file, got a {type(path).__name__}; Workload.from_frame reads a data frame."
            )
        return read_workload(str(path), cluster, columns or {})

    @staticmethod
    def from_frame(frame: Any, *, columns: Mapping[str, str] | None = None) -> Workload:
        """A row for each pod: a data frame of pandas, Polars, PyArrow or others, or a mapping of columns.

        The columns are those of a trace; `columns` maps our names to those of the frame.
        """
        from mooring.simulator.traces import read_trace_frame

        return read_trace_frame(frame, columns)

    @staticmethod
    def generate(
        pods: int | None = None,
        *,
        duration: float | str | None = None,
        arrivals: Mapping[str, Any] | None = None,
        run_time: Mapping[str, Any] | float | str | None = None,
        classes: Sequence[Mapping[str, Any]] | None = None,
        name_prefix: str | None = None,
        seed: int = 0,
    ) -> Workload:
        """Pods that arrive by a seed: what a GeneratedWorkload document with these fields makes.

        Workload.generate(1000, arrivals={"process": "daily", "every": "2s"}, run_time="10m", seed=7)
        """
        from mooring.base.memory import refuse_without_memory
        from mooring.simulator.generated_workload import POD_BYTES, rows_of_fields
        from mooring.simulator.trace_rows import arrivals_of

        rows = rows_of_fields(
            pods=pods,
            duration=duration,
            arrivals=arrivals,
            runTime=run_time,
            classes=classes,
            namePrefix=name_prefix,
            seed=seed,
        )
        if pods is not None:
            refuse_without_memory("pods", pods, POD_BYTES)
        return Workload(arrivals_of(rows))

    def __len__(self) -> int:
        return len(self.arrivals)

    def __iter__(self) -> Iterator[Arrival]:
        return iter(self.arrivals)

    @overload
    def __getitem__(self, index: int) -> Arrival: ...
    @overload
    def __getitem__(self, index: slice) -> Workload: ...
    def __getitem__(self, index: int | slice) -> Arrival | Workload:
        if isinstance(index, slice):
            return Workload(self.arrivals[index], self.documents, self.notes)
        return self.arrivals[index]

    def _repr_html_(self) -> str:
        from mooring.simulator.html_report import workload_fragment

        return workload_fragment(self)

    def __repr__(self) -> str:
        return f"<workload of {len(self):,} pods>"
