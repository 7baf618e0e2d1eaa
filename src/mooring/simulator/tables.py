"""Results as tables: for CSV, Parquet and data frames, with the same columns in all of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from mooring import __version__
from mooring.base.earlier_output import first_line, has_parquet_entry
from mooring.base.errors import OperatorMistake
from mooring.simulator.outcome import SimulationResult
from mooring.simulator.parquet_files import polars

Results = Mapping[str, SimulationResult]
"""By the name of the configuration."""


class ResultTable(msgspec.Struct, frozen=True):
    """Columns with their types, and rows."""

    columns: dict[str, type]
    rows: Sequence[Sequence[Any]]

    def frame(self) -> Any:
        """As a polars DataFrame."""
        frames = polars("A data frame")
        return frames.DataFrame(self.rows, schema=self.columns, orient="row")


CONFIGURATION = "configuration"
POD_COLUMNS = {
    "namespace": str,
    "name": str,
    "owner": str,
    "arrived_at": float,
    "bound_at": float,
    "waited": float,
    "node": str,
    "ended_at": float,
    "attempts": int,
    "is_preempted": bool,
    "preempted_by": str,
    "message": str,
}
TIMELINE_COLUMNS: dict[str, type] = {"at": float, "running": int, "pending": int}
"""Before those of resources."""


def pods_table(results: Results) -> ResultTable:
    """A row for each pod."""
    return _table(
        results,
        POD_COLUMNS,
        lambda result: (
            (
                pod.namespace,
                pod.name,
                pod.owner,
                pod.arrived_at,
                pod.bound_at,
                pod.waited_seconds,
                pod.node,
                pod.ended_at,
                pod.attempts,
                pod.is_preempted,
                pod.preempted_by,
                pod.message,
            )
            for pod in result.pods
        ),
    )


def timeline_table(results: Results) -> ResultTable:
    """A row for each sample: what runs and waits, and by resource what is requested, fragmented and unbalanced."""
    every = [result for result in results.values() if result.timeline]
    resources = list(dict.fromkeys(name for result in every for name in result.timeline[-1].requested))
    measured = list(dict.fromkeys(name for result in every for name in result.timeline[-1].fragmentation))
    columns = TIMELINE_COLUMNS | {f"{resource}_requested": float for resource in resources}
    columns |= {f"{resource}_{what}": float for what in ("fragmentation", "imbalance") for resource in measured}
    return _table(
        results,
        columns,
        lambda result: (
            (
                sample.at,
                sample.running,
                sample.pending,
                *(sample.requested.get(resource) for resource in resources),
                *(sample.fragmentation.get(resource) for resource in measured),
                *(sample.imbalance.get(resource) for resource in measured),
            )
            for sample in result.timeline
        ),
    )


def summary_table(results: Results) -> ResultTable:
    """A row for each run."""
    figures = {name: result.summary() for name, result in results.items()}
    names = list(dict.fromkeys(figure for each in figures.values() for figure in each))
    rows = [(name, *(_real(each.get(figure)) for figure in names)) for name, each in figures.items()]
    return ResultTable({CONFIGURATION: str, **dict.fromkeys(names, float)}, rows)


def _real(value: float | None) -> float | None:
    return None if value is None else float(value)


def _structs(what: str, columns: dict[str, type]) -> Callable[[Results], ResultTable]:
    def made(results: Results) -> ResultTable:
        return _table(
            results,
            columns,
            lambda result: (tuple(getattr(each, name) for name in columns) for each in getattr(result, what)),
        )

    return made


influence_table = _structs(
    "influence",
    {
        "plugin": str,
        "scored": int,
        "decided": int,
        "rejecting": int,
        "rejected_nodes": int,
        "last": int,
        "alone": int,
    },
)
evictions_table = _structs("evictions", {"at": float, "victim": str, "preemptor": str, "node": str})
spread_table = _structs(
    "spread", {"owner": str, "pods": int, "nodes": int, "most_on_node": int, "zones": int, "zone_skew": int}
)
moves_table = _structs(
    "moves",
    {
        "pod": str,
        "at": float,
        "before": str,
        "after": str,
        "cause": str,
        "plugin": str,
        "instead": str,
        "points": int,
        "reason": str,
    },
)


def _table(
    results: Results, columns: dict[str, type], rows_of: Callable[[SimulationResult], Iterable[tuple[Any, ...]]]
) -> ResultTable:
    """With a column that names the configuration, unless there is one result without a name."""
    if list(results) == [""]:
        return ResultTable(columns, list(rows_of(results[""])))
    rows = [(name, *row) for name, result in results.items() for row in rows_of(result)]
    return ResultTable({CONFIGURATION: str, **columns}, rows)


# Files

ENDS = (".csv", ".parquet")


def check_name(path: str | Path) -> None:
    """The end of a file's name decides its format."""
    if Path(path).suffix.lower() not in ENDS:
        raise OperatorMistake(f"The name {path} must end in {' or '.join(ENDS)}: its end decides the format.")
    if Path(path).suffix.lower() == ".parquet":
        polars("Writing Parquet")


def is_pods_file(path: str) -> bool:
    """Whether `write_table` wrote pods there."""
    return _is_table(path, list(POD_COLUMNS), has_more=False)


def is_timeline_file(path: str) -> bool:
    """Whether `write_table` wrote the cluster over time there."""
    return _is_table(path, list(TIMELINE_COLUMNS), has_more=True)


def _is_table(path: str, columns: list[str], *, has_more: bool) -> bool:
    if Path(path).suffix.lower() == ".parquet":
        return has_parquet_entry(path, _entry(columns))
    found = first_line(path).removeprefix(f"{CONFIGURATION},").split(",")
    return found[: len(columns)] == columns and (has_more or len(found) == len(columns))


def _entry(columns: Iterable[str]) -> str:
    """In the metadata of a Parquet file: which table of ours it is."""
    own = [name for name in columns if name != CONFIGURATION]
    return f"mooring.{own[0]}.{own[1]}"


def write_table(path: str | Path, table: ResultTable) -> None:
    """As CSV or Parquet, by the end of the name: whole or not at all."""
    from mooring.base.files import writing_private

    check_name(path)
    try:
        with writing_private(Path(path)) as file:
            if Path(path).suffix.lower() == ".parquet":
                # Not into the file itself: polars reports a full disk in its own way.
                content = io.BytesIO()
                table.frame().write_parquet(content, metadata={_entry(table.columns): __version__})
                file.write(content.getbuffer())
            else:
                _write_csv(file, table)
    except OSError as error:
        raise OperatorMistake(f"{path} cannot be written: {error.strerror or error}.") from error


def _write_csv(file: IO[bytes], table: ResultTable) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(table.rows)  # None is an empty cell
    text.detach()
