"""Alibaba's GPU-sharing trace of 2023 (cluster-trace-gpu-v2023), whose files begin with `openb_`.

A node list (`sn,cpu_milli,memory_mib,gpu,model`) and a pod list (`name,cpu_milli,memory_mib,num_gpu,gpu_milli`, and in
most files `gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time`).

`read_openb_nodes` and `read_openb_pods` have all columns; `import_openb` makes rows of our schema of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from mooring.simulator.importers.csv_tables import CsvTable, TableRow
from mooring.simulator.importers.imported_trace import (
    GPU_MILLI,
    GPU_MODEL,
    ImportedNode,
    ImportedTrace,
    NotImported,
    files_in,
    milli_cpu,
)
from mooring.simulator.trace_rows import TraceRow

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
"""Those that every pod list has."""
MILLI_OF_A_GPU = 1000


class OpenbNode(msgspec.Struct, frozen=True, gc=False):
    """A row of a node list. All GPUs of a node are of one model."""

    name: str
    cpu_milli: int
    memory_mib: int
    num_gpu: int
    model: str = ""
    """Empty: it has no GPU."""


class OpenbPod(msgspec.Struct, frozen=True, gc=False):
    """A row of a pod list. Times are seconds from the beginning of the trace; None: not in the file."""

    name: str
    cpu_milli: int
    memory_mib: int
    num_gpu: int
    gpu_milli: int
    """Of each of its GPUs, at most 1000; 0 where it wants none."""
    gpu_spec: str = ""
    """The models that will do, separated by `|`; empty: any."""
    qos: str = ""
    phase: str = ""
    creation_time: float | None = None
    deletion_time: float | None = None
    scheduled_time: float | None = None

    @property
    def models(self) -> tuple[str, ...]:
        """The models that will do; none: any."""
        return tuple(self.gpu_spec.split("|")) if self.gpu_spec else ()

    @property
    def total_gpu_milli(self) -> int:
        return self.num_gpu * self.gpu_milli


def read_openb_nodes(path: str | Path) -> list[OpenbNode]:
    """The nodes of a node list (.csv, .csv.gz, .csv.xz), in its order."""
    return list(CsvTable(path, NODE_COLUMNS).read(_node))


def read_openb_pods(path: str | Path) -> list[OpenbPod]:
    """The pods of a pod list (.csv, .csv.gz, .csv.xz), in its order; also of one with the first five columns only."""
    return list(CsvTable(path, POD_COLUMNS).read(_pod))


def _node(row: TableRow) -> OpenbNode:
    return OpenbNode(
        row.name("sn"), row.whole("cpu_milli"), row.whole("memory_mib"), row.whole("gpu"), row.text("model")
    )


def _pod(row: TableRow) -> OpenbPod:
    num_gpu = row.whole("num_gpu")
    gpu_milli = min(row.whole("gpu_milli"), MILLI_OF_A_GPU) if num_gpu else 0
    return OpenbPod(
        row.name("name"),
        row.whole("cpu_milli"),
        row.whole("memory_mib"),
        num_gpu,
        gpu_milli,
        row.text("gpu_spec"),
        row.text("qos"),
        row.text("pod_phase"),
        row.number("creation_time"),
        row.number("deletion_time"),
        row.number("scheduled_time"),
    )


def import_openb(paths: Sequence[str | Path]) -> ImportedTrace:
    """A pod list, and a node list if there is one."""
    files = files_in(paths, {"nodes": "node_list", "pods": "pod_list"}, required="pods")
    pods = read_openb_pods(files["pods"])
    nodes = read_openb_nodes(files["nodes"]) if "nodes" in files else []
    notes = ["GPUs of a node are counted together, in thousandths: which of them a pod shares is not modelled."]
    if all(pod.creation_time is None for pod in pods):
        notes.append("The list has no times: all pods arrive at the beginning and run for ever.")
    left_out = NotImported()
    rows = _rows(pods, left_out)
    return ImportedTrace(
        rows, ("cpu", "memory", GPU_MILLI), [_imported(node) for node in nodes], left_out=left_out, notes=notes
    )


def _rows(pods: Sequence[OpenbPod], left_out: NotImported) -> Iterator[TraceRow]:
    begin = min((pod.creation_time for pod in pods if pod.creation_time is not None), default=0.0)
    for pod in pods:
        created = begin if pod.creation_time is None else pod.creation_time
        began = created if pod.scheduled_time is None else pod.scheduled_time
        if pod.deletion_time is not None and pod.scheduled_time is None:
            left_out.add("pods were deleted before they were scheduled: they run as long as they waited.")
        gpu = {GPU_MILLI: str(pod.total_gpu_milli)} if pod.total_gpu_milli else {}
        yield TraceRow(
            arrival=created - begin,
            duration=None if pod.deletion_time is None else max(0.0, pod.deletion_time - began),
            name=pod.name,
            labels={"qos": pod.qos} if pod.qos else {},
            node_selector={GPU_MODEL: pod.models} if pod.models and pod.num_gpu else {},
            requests={"cpu": milli_cpu(pod.cpu_milli), "memory": f"{pod.memory_mib}Mi", **gpu},
        )


def _imported(node: OpenbNode) -> ImportedNode:
    allocatable = {"cpu": milli_cpu(node.cpu_milli), "memory": f"{node.memory_mib}Mi"}
    if node.num_gpu:
        allocatable[GPU_MILLI] = str(node.num_gpu * MILLI_OF_A_GPU)
    return ImportedNode(node.name, allocatable, {GPU_MODEL: node.model} if node.model else {})
