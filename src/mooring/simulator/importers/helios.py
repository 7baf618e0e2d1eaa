"""SenseTime's Helios traces (HeliosData): for each cluster `cluster_log.csv` and `cluster_gpu_number.csv`.

A job of several nodes becomes a pod for each, with its part of the GPUs and CPUs. Nodes belong to virtual clusters; how
many each has follows from its GPUs, eight to a node. Memory, and the CPUs of nodes, are not in the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from mooring.simulator.importers.csv_tables import CsvTable, TableRow
from mooring.simulator.importers.imported_trace import GPU, ImportedNode, ImportedTrace, NotImported, files_in
from mooring.simulator.trace_rows import TraceRow

FILES = {"jobs": "cluster_log", "gpus": "cluster_gpu_number"}
JOB = ("job_id", "user", "vc", "gpu_num", "cpu_num", "node_num", "submit_time", "start_time", "end_time")
GPUS_OF_A_NODE = 8
MANY_CPUS = "1000"
"""More than any node has: CPUs do not limit pods."""
VIRTUAL_CLUSTER = "vc"
"""A label of nodes and pods."""
_MISSING = ("", "None", "Unknown", "NaT")


def import_helios(paths: Sequence[str | Path]) -> ImportedTrace:
    """The log of one cluster, and the GPUs of its virtual clusters if their file is there."""
    files = files_in(paths, FILES, required="jobs")
    left_out = NotImported()
    notes = ["The trace has no memory."]
    nodes: list[ImportedNode] = []
    if "gpus" in files:
        nodes = _nodes(files["gpus"])
        notes.append("How many CPUs nodes have is not in the trace: each gets 1000, so that only GPUs limit pods.")
    return ImportedTrace(_rows(files["jobs"], left_out), ("cpu", GPU), nodes, left_out=left_out, notes=notes)


def _rows(path: Path, left_out: NotImported) -> Iterator[TraceRow]:
    # Read twice: rows are written while they are read, and count from the first submission.
    begin = min((each for each in CsvTable(path, JOB).read(_submitted) if each is not None), default=0.0)
    for pods in CsvTable(path, JOB).read(lambda row: _pods(row, begin, left_out)):
        yield from pods


def _submitted(row: TableRow) -> float | None:
    return _time(row, "submit_time")


def _pods(row: TableRow, begin: float, left_out: NotImported) -> list[TraceRow]:
    submitted, started, ended = (_time(row, name) for name in ("submit_time", "start_time", "end_time"))
    gpus, cpus, nodes = row.whole("gpu_num"), row.whole("cpu_num"), row.whole("node_num")
    name, vc, user = row.name("job_id"), row.text("vc"), row.text("user")
    if not nodes:
        left_out.add("jobs had no node; they are left out.")
        return []
    if submitted is None or started is None:
        left_out.add("jobs have no time of submission or were never started; they are left out.")
        return []
    return [
        TraceRow(
            arrival=submitted - begin,
            duration=None if ended is None else max(0.0, ended - started),
            name=f"job-{name}-{index}",
            labels={key: value for key, value in ((VIRTUAL_CLUSTER, vc), ("user", user)) if value},
            owner=f"job-{name}",
            node_selector={VIRTUAL_CLUSTER: (vc,)} if vc else {},
            requests=_part(cpus, gpus, nodes, index),
        )
        for index in range(nodes)
    ]


def _part(cpus: int, gpus: int, nodes: int, index: int) -> dict[str, str]:
    """Of a job's CPUs and GPUs, those of one of its nodes: the first ones have what remains."""
    parts = {"cpu": cpus // nodes + (index < cpus % nodes), GPU: gpus // nodes + (index < gpus % nodes)}
    return {resource: str(amount) for resource, amount in parts.items() if amount}


def _nodes(path: Path) -> list[ImportedNode]:
    """As many as each virtual cluster had on its largest day."""
    table = CsvTable(path, ("date",))
    largest: dict[str, int] = {}

    def day(row: TableRow) -> None:
        for name in table.columns:
            if name not in ("", "date", "total"):
                largest[name] = max(largest.get(name, 0), row.whole(name))

    for _ in table.read(day):
        pass
    clusters = [name for name, gpus in largest.items() for _ in range(-(-gpus // GPUS_OF_A_NODE))]
    allocatable = {"cpu": MANY_CPUS, GPU: str(GPUS_OF_A_NODE)}
    return [
        ImportedNode(f"node-{number}", allocatable, {VIRTUAL_CLUSTER: name})
        for number, name in enumerate(clusters, start=1)
    ]


def _time(row: TableRow, column: str) -> float | None:
    """In seconds; None: it has none."""
    text = row.text(column)
    if text in _MISSING:
        return None
    try:
        return (datetime.fromisoformat(text).replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds()
    except ValueError:
        row.problem(column, f"must be a time as in 2020-06-09 18:41:01, got {text!r}")
        return None
