"""Published traces, read into rows of our schema and nodes: one file for each format.

trace = read("openb", ["openb_pod_list_default.csv", "openb_node_list_gpu_node.csv"])
write_trace("workload.csv", trace.rows, trace.resources)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from mooring.base.errors import OperatorMistake, did_you_mean
from mooring.simulator.importers.azure_packing import import_azure_packing
from mooring.simulator.importers.helios import import_helios
from mooring.simulator.importers.imported_trace import ImportedNode, ImportedTrace
from mooring.simulator.importers.openb import OpenbNode, OpenbPod, import_openb, read_openb_nodes, read_openb_pods
from mooring.simulator.importers.pai2020 import import_pai2020
from mooring.simulator.importers.philly import import_philly

IMPORTERS: dict[str, Callable[[Sequence[str | Path]], ImportedTrace]] = {
    "openb": import_openb,
    "pai2020": import_pai2020,
    "philly": import_philly,
    "helios": import_helios,
    "azure-packing": import_azure_packing,
}
"""By the name of the format."""


def read(format: str, paths: Sequence[str | Path] | str | Path) -> ImportedTrace:
    """The trace of these files or folders. Bad rows are reported when its rows are read."""
    if format not in IMPORTERS:
        known = ", ".join(IMPORTERS)
        raise OperatorMistake(f'"{format}" is no format of a trace: {known}.{did_you_mean(format, IMPORTERS)}')
    named = [paths] if isinstance(paths, str | Path) else list(paths)
    missing = [str(path) for path in named if not Path(path).exists()]
    if missing or not named:
        raise OperatorMistake(f"There is no file {', '.join(missing)}." if missing else "Name the files of the trace.")
    return IMPORTERS[format](named)


__all__ = [
    "IMPORTERS",
    "ImportedNode",
    "ImportedTrace",
    "OpenbNode",
    "OpenbPod",
    "read",
    "read_openb_nodes",
    "read_openb_pods",
]
