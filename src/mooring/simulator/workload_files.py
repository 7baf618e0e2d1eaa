"""Workloads from files: manifests or a trace, by the name of the file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec

from mooring.base.errors import OperatorMistake
from mooring.base.nesting import decode
from mooring.simulator.manifests import manifest_workload
from mooring.simulator.scenario import Cluster, Workload
from mooring.simulator.text_files import binary_file, readable, uncompressed_name
from mooring.simulator.trace_rows import ARRIVAL
from mooring.simulator.traces import read_trace_file

TRACES = (".csv", ".parquet", ".jsonl", ".ndjson")
"""What is always a trace; .json may be one."""


def read_workload(path: str, cluster: Cluster | None, columns: Mapping[str, str]) -> Workload:
    """The pods of a file; `columns` maps our names of a trace's columns to those of the file."""
    if is_trace(path, columns):
        return read_trace_file(path, columns)
    if columns:
        ends = ", ".join((*TRACES, ".json"))
        raise OperatorMistake(
            f"--column is about traces, and {path} is none: its name does not end in {ends}, or it has manifests."
        )
    with readable(path, "The workload"):
        text = Path(path).read_bytes()
    return manifest_workload(text, path, cluster or Cluster([]))


def is_trace(path: str, columns: Mapping[str, str]) -> bool:
    """Whether a file has rows, not manifests. JSON has them in an array, or in lines that have no kind."""
    name = uncompressed_name(path)
    if name.endswith(TRACES):
        return True
    if not name.endswith(".json"):
        return False
    with readable(path, "The workload"), binary_file(path) as file:
        first = next((line for line in file if line.strip()), b"")
    return first.lstrip().startswith(b"[") or columns.get(ARRIVAL, ARRIVAL) in _fields(first)


def _fields(line: bytes) -> Collection[str]:
    """Those of the object in a line; none where it is not a whole one, as in a manifest of several lines."""
    try:
        found = decode(line)
    except msgspec.DecodeError:
        return ()
    return found if isinstance(found, dict) and "kind" not in found else ()
