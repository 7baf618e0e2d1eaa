"""The results of a sweep on disk: `results.parquet`, and beside it, while the sweep runs, `results.parquet.parts/`.

Finished runs are written to numbered parts, each whole or not at all: a sweep that is killed loses what it had computed
since the last one. At the end all parts become one file, in the order of the runs, and the parts are removed. A file
has the rows of its runs as columns that anything reads, and in its metadata which runs these are, by which definitions.
A file of other runs or other definitions is refused: results that do not belong together are never mixed.
"""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec

from mooring import __version__
from mooring.base.errors import OperatorMistake, Problem
from mooring.base.files import hold_private, in_made_folder, write_whole
from mooring.base.log import Log
from mooring.simulator.parquet_files import polars
from mooring.simulator.sweeps.parameters import MOST_LISTED, Label, SweepRun, key_of, labels_of, shown
from mooring.simulator.sweeps.worker import ERROR, Row

if TYPE_CHECKING:
    from polars import DataFrame

METADATA = "mooring.sweep"
FORMAT = 1
SUFFIX = ".parquet"
LEAST_SECONDS, LEAST_SHARE = 1.0, 0.01
"""Between two parts: so many seconds, or this share of the time that the sweep has taken. Thus parts stay few."""

log = Log("sweep")


class FinishedRun(msgspec.Struct, frozen=True):
    """What a run returned, or why it failed."""

    labels: dict[str, Label]
    rows: list[Row]
    error: str | None = None
    traceback: str = ""

    @property
    def key(self) -> str:
        return key_of(self.labels)

    @property
    def whole_rows(self) -> list[Row]:
        """With its labels; a failed run is one row."""
        if self.error is not None:
            return [{**self.labels, ERROR: self.error}]
        return [{**self.labels, **row} for row in self.rows]


class Definitions(msgspec.Struct, frozen=True):
    """By what results were computed."""

    mooring: str
    version: str
    """The user's."""
    run: str
    values: dict[str, dict[str, str]] = {}
    """The fingerprints of values, by parameter and label."""

    @classmethod
    def of(cls, run: Any, version: str, runs: Sequence[SweepRun]) -> Definitions:
        from mooring.simulator.sweeps.fingerprints import fingerprint

        known: dict[int, str | None] = {}
        values: dict[str, dict[str, str]] = {}
        for each in runs:
            for name, value in each.values.items():
                if id(value) not in known:
                    known[id(value)] = fingerprint(value)
                if (found := known[id(value)]) is not None:
                    values.setdefault(name, {})[str(each.labels.get(name, ""))] = found
        if (function := fingerprint(run)) is not None:
            values[FUNCTION] = {"": function}
        return cls(__version__, version, getattr(run, "__qualname__", type(run).__qualname__), values)

    def changed_since(self, earlier: Definitions) -> list[Problem]:
        """What differs in the definitions that both have."""
        problems = []
        if self.mooring != earlier.mooring:
            problems.append(Problem("mooring", f"{earlier.mooring} computed it, this is {self.mooring}"))
        if self.version != earlier.version:
            problems.append(Problem("version", f'it has "{earlier.version}", the sweep has "{self.version}"'))
        if self.run != earlier.run:
            problems.append(Problem("run", f'"{earlier.run}" computed it, not "{self.run}"'))
        for name, values in self.values.items():
            for label, found in values.items():
                if earlier.values.get(name, {}).get(label, found) != found:
                    where = f'{name} "{label}"' if label else name
                    problems.append(Problem(where, "its definition has changed since; give it another name"))
        return problems


FUNCTION = "run()"


class _Contents(msgspec.Struct, frozen=True):
    """The metadata of a file."""

    format: int
    definitions: Definitions
    columns: list[list[str]]
    """The columns of rows, in their order; runs name them by index."""
    runs: list[tuple[str, int, int, str | None]]
    """Of each run its key, the number of its rows, the index of their columns, its error. Rows are in this order."""


class ResultsFile:
    """Where results are kept while a sweep runs, and afterwards."""

    def __init__(self, path: Path, definitions: Definitions, *, now: Callable[[], float] = time.monotonic) -> None:
        if path.suffix != SUFFIX:
            raise OperatorMistake(f'The results of a sweep are a Parquet file: "{path}" must end in {SUFFIX}.')
        self._path = path
        self._parts = path.with_name(f"{path.name}.parts")
        self._definitions = definitions
        self._now = now
        self._began = self._written = now()
        self._buffer: list[FinishedRun] = []
        self._number = 0
        self._lock_file = self._parts / "lock"
        self._lock: IO[bytes] | None = None
        polars(f"Writing {path}")

    def __enter__(self) -> ResultsFile:
        try:
            with in_made_folder(self._parts):
                self._lock = hold_private(self._lock_file, "")
        except BlockingIOError as error:
            raise OperatorMistake(f"Another sweep is writing {self._path}; choose another file.") from error
        except OSError as error:
            raise self._cannot_write(error) from error
        return self

    def __exit__(self, *_: object) -> None:
        """Parts without any run leave no trace."""
        with contextlib.suppress(OSError):
            if not any(self._part_files()):
                self._remove_parts()
        if self._lock is not None:
            self._lock.close()

    def restore(self, runs: Sequence[SweepRun]) -> dict[str, FinishedRun]:
        """The runs that are finished already, by key. Runs that failed are there as well."""
        restored: dict[str, FinishedRun] = {}
        for path in [self._path, *self._part_files()]:
            for run in self._read(path, is_part=path != self._path):
                key = run.key
                if key not in restored or restored[key].error is not None:
                    restored[key] = run
        wanted = {run.key for run in runs}
        if others := [key for key in restored if key not in wanted]:
            listed = [Problem(shown(labels_of(key)), "is no run of this sweep") for key in others[:MOST_LISTED]]
            raise OperatorMistake(
                f"{self._path} has {len(others):,} runs of another sweep. Choose another file, or remove it and "
                f"{self._parts.name}.",
                listed,
            )
        self._number = max((int(path.stem) for path in self._part_files()), default=0)
        return restored

    def add(self, run: FinishedRun) -> None:
        """It is on disk soon, or after `flush`."""
        self._buffer.append(run)
        now = self._now()
        if now - self._written >= max(LEAST_SECONDS, LEAST_SHARE * (now - self._began)):
            self.flush()

    def flush(self) -> None:
        if self._buffer:
            self._number += 1
            self._write(self._parts / f"{self._number:06}{SUFFIX}", self._buffer)
            self._buffer = []
        self._written = self._now()

    def finish(self, runs: Sequence[FinishedRun]) -> None:
        """One file of all runs, in place of the parts."""
        self._write(self._path, runs)
        self._remove_parts()

    def _remove_parts(self) -> None:
        """What a sweep writes there, and the folder if nothing else is in it."""
        for each in [*self._part_files(), *self._parts.glob(".mooring-*"), self._lock_file]:
            with contextlib.suppress(OSError):
                each.unlink()
        with contextlib.suppress(OSError):
            self._parts.rmdir()

    def _part_files(self) -> list[Path]:
        return sorted(path for path in self._parts.glob(f"*{SUFFIX}") if path.stem.isdigit())

    def _write(self, path: Path, runs: Sequence[FinishedRun]) -> None:
        columns: dict[tuple[str, ...], int] = {}
        listed = []
        for run in runs:
            names = tuple(dict.fromkeys(name for row in run.rows for name in row))
            index = columns.setdefault(names, len(columns))
            listed.append((run.key, len(run.rows), index, run.error))
        contents = _Contents(FORMAT, self._definitions, [list(names) for names in columns], listed)
        data = io.BytesIO()
        frame_of(runs).write_parquet(data, metadata={METADATA: msgspec.json.encode(contents).decode()})
        try:
            write_whole(path, data.getvalue())
        except OSError as error:
            raise self._cannot_write(error) from error

    def _read(self, path: Path, *, is_part: bool) -> list[FinishedRun]:
        """The runs of a file. A part that the machine lost is not missed: its runs are repeated."""
        frames = polars(f"Reading {path}")
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise OperatorMistake(f"{path} cannot be read: {error.strerror}.") from error
        try:
            text = frames.read_parquet_metadata(io.BytesIO(data))[METADATA]
            contents = msgspec.json.decode(text, type=_Contents)
            rows = frames.read_parquet(io.BytesIO(data)).to_dicts()
        except Exception as error:  # polars has many
            if is_part:
                log.warning("Part of a sweep's results cannot be read; its runs are repeated", file=path)
                return []
            raise OperatorMistake(
                f"{path} is there already and is no result of a sweep that can be resumed. Choose another file, or "
                "remove it."
            ) from error
        if changed := self._definitions.changed_since(contents.definitions):
            raise OperatorMistake(
                f"{self._path} was computed by other definitions. Choose another file, or remove it and "
                f"{self._parts.name} to compute everything again.",
                changed[:MOST_LISTED],
            )
        return _runs_of(contents, rows)

    def _cannot_write(self, error: OSError) -> OperatorMistake:
        return OperatorMistake(
            f"The results {self._path} cannot be written: {error.strerror or error}. "
            "What was written before is kept; the same sweep resumes there."
        )


def _runs_of(contents: _Contents, rows: list[Row]) -> list[FinishedRun]:
    runs, at = [], 0
    for key, count, index, error in contents.runs:
        labels, columns = labels_of(key), contents.columns[index]
        own = rows[at : at + (count if error is None else 1)]
        at += len(own)
        kept = [] if error is not None else [{name: row[name] for name in columns} for row in own]
        runs.append(FinishedRun(labels, kept, error))
    return runs


def frame_of(runs: Iterable[FinishedRun]) -> DataFrame:
    """A row for each row of the runs, in their order; the errors of failed runs are the last column, if any failed."""
    frames = polars("A data frame")
    rows = [row for run in runs for row in run.whole_rows]
    frame = frames.DataFrame(rows, infer_schema_length=None)
    if ERROR in frame.columns:
        frame = frame.select([*(name for name in frame.columns if name != ERROR), ERROR])
    return frame  # type: ignore[no-any-return]
