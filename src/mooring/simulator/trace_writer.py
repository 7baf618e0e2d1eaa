"""Writes rows of a trace: CSV, JSON, JSON lines or Parquet, by the end of the file's name, compressed or not.

What `read_trace_file` reads back is equal. The same rows give the same bytes (of Parquet: with the same polars).
"""

from __future__ import annotations

import csv
import gzip
import io
import lzma
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

import msgspec

from mooring import __version__
from mooring.base.earlier_output import first_line, has_parquet_entry
from mooring.base.errors import OperatorMistake
from mooring.base.files import writing_whole
from mooring.simulator.parquet_files import polars
from mooring.simulator.text_files import COMPRESSED, uncompressed_name
from mooring.simulator.trace_rows import COLUMNS, DEFAULT_NAMESPACE, TraceRow

_ROWS_AT_ONCE = 50_000
"""Of a Parquet file."""
_ENTRY = "mooring.trace"
"""In the metadata of a Parquet file."""


def write_trace(path: str | Path, rows: Iterable[TraceRow], resources: Sequence[str] | None = None) -> int:
    """Write the rows, and return how many. `resources` names the columns of what pods request; None: those of the rows,
    which are then held in memory.

    The file appears whole or not at all.
    """
    name = uncompressed_name(path)
    write = next((write for end, write in WRITERS.items() if name.endswith(end)), None)
    if write is None:
        raise OperatorMistake(f"{path} cannot be written: the name of a trace ends in {', '.join(WRITERS)}.")
    if resources is None:
        rows = list(rows)
        resources = list(dict.fromkeys(resource for row in rows for resource in row.requests))
    counted = _Counted(rows)
    try:
        with writing_whole(path) as file, _compressed(file, path) as content:
            write(content, counted, resources)
    except OSError as error:
        raise OperatorMistake(f"{path} cannot be written: {error.strerror or error}.") from error
    return counted.number


def is_trace(path: str) -> bool:
    """Whether `write_trace` wrote it: JSON has no room for a mark, and counts as another's."""
    name = uncompressed_name(path)
    if name.endswith(".parquet"):
        return has_parquet_entry(path, _ENTRY)
    return name.endswith(".csv") and first_line(path).split(",")[: len(COLUMNS)] == list(COLUMNS)


class _Counted:
    def __init__(self, rows: Iterable[TraceRow]) -> None:
        self._rows = rows
        self.number = 0

    def __iter__(self) -> Iterator[TraceRow]:
        for row in self._rows:
            self.number += 1
            yield row


def _write_csv(file: IO[bytes], rows: Iterable[TraceRow], resources: Sequence[str]) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*COLUMNS, *resources))
    writer.writerows(
        (*_cells(row).values(), *(row.requests.get(resource, "") for resource in resources)) for row in rows
    )
    text.detach()


def _write_json(file: IO[bytes], rows: Iterable[TraceRow], resources: Sequence[str]) -> None:
    before = b"[\n"
    for line in _json_objects(rows, resources):
        file.write(before + line)
        before = b",\n"
    file.write(b"\n]\n" if before != b"[\n" else b"[]\n")


def _write_json_lines(file: IO[bytes], rows: Iterable[TraceRow], resources: Sequence[str]) -> None:
    for line in _json_objects(rows, resources):
        file.write(line + b"\n")


def _json_objects(rows: Iterable[TraceRow], resources: Sequence[str]) -> Iterator[bytes]:
    """An object for each row, without what is empty."""
    for row in rows:
        cells: dict[str, Any] = {
            "arrival": _short(row.arrival),
            "duration": None if row.duration is None else _short(row.duration),
            "name": row.name,
            "namespace": "" if row.namespace == DEFAULT_NAMESPACE else row.namespace,
            "priority": row.priority,
            "labels": dict(row.labels),
            "owner": row.owner,
            "scheduler": row.scheduler,
            "node_selector": {key: list(values) for key, values in row.node_selector.items()},
            **{resource: row.requests.get(resource) for resource in resources},
        }
        yield msgspec.json.encode({name: value for name, value in cells.items() if value not in (None, "", {})})


def _write_parquet(file: IO[bytes], rows: Iterable[TraceRow], resources: Sequence[str]) -> None:
    frames = polars("Writing Parquet")
    numbers = {"arrival": frames.Float64, "duration": frames.Float64, "priority": frames.Int64}
    schema = {name: numbers.get(name, frames.String) for name in (*COLUMNS, *resources)}
    remaining, parts = iter(rows), []
    while chunk := list(islice(remaining, _ROWS_AT_ONCE)):
        table = [
            (
                row.arrival,
                row.duration,
                row.name,
                row.namespace,
                row.priority,
                _pairs(row.labels) or None,
                row.owner or None,
                row.scheduler or None,
                _alternatives(row) or None,
                *(row.requests.get(resource) for resource in resources),
            )
            for row in chunk
        ]
        parts.append(frames.DataFrame(table, schema=schema, orient="row"))
    content = io.BytesIO()  # not the file itself: polars reports a full disk in its own way
    frames.concat(parts or [frames.DataFrame(schema=schema)]).write_parquet(content, metadata={_ENTRY: __version__})
    file.write(content.getbuffer())


WRITERS: dict[str, Callable[[IO[bytes], Iterable[TraceRow], Sequence[str]], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".json": _write_json,
    ".jsonl": _write_json_lines,
}


def _cells(row: TraceRow) -> dict[str, Any]:
    """All columns but the resources, as texts and numbers."""
    return {
        "arrival": _short(row.arrival),
        "duration": "" if row.duration is None else _short(row.duration),
        "name": row.name,
        "namespace": "" if row.namespace == DEFAULT_NAMESPACE else row.namespace,
        "priority": "" if row.priority is None else row.priority,
        "labels": _pairs(row.labels),
        "owner": row.owner,
        "scheduler": row.scheduler,
        "node_selector": _alternatives(row),
    }


def _short(seconds: float) -> int | float:
    """Whole seconds without decimals."""
    return int(seconds) if seconds == int(seconds) else seconds


def _pairs(labels: Mapping[str, str]) -> str:
    return ";".join(f"{key}={value}" for key, value in labels.items())


def _alternatives(row: TraceRow) -> str:
    return _pairs({key: "|".join(values) for key, values in row.node_selector.items()})


@contextmanager
def _compressed(file: IO[bytes], path: str | Path) -> Iterator[IO[bytes]]:
    """The file, or what compresses into it. Without a time or a name in it, the same rows give the same bytes."""
    end = Path(path).suffix.lower()
    if end not in COMPRESSED:
        yield file
    elif end == ".gz":
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
            yield packed  # type: ignore[misc]
    else:
        with lzma.LZMAFile(file, "wb") as packed_xz:
            yield packed_xz
