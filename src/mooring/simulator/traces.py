"""Workloads from traces: files with a row for each pod, as CSV, JSON or Parquet, and data frames.

The columns are those of `trace_rows`; others are left out, and noted. A JSON file is an array of objects, or has an
object in each line. All bad rows are reported up to a limit, each with its line (or its number in the file) and column.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from typing import IO, Any, TypeVar

import msgspec

from mooring.base.errors import OperatorMistake, Problem, did_you_mean
from mooring.base.nesting import decode
from mooring.objects.names import label_value, qualified_name
from mooring.objects.quantity import BadQuantity, exact
from mooring.objects.requests import is_counted
from mooring.simulator.data_frames import columns_of
from mooring.simulator.parquet_files import polars
from mooring.simulator.scenario import Arrival, Workload
from mooring.simulator.text_files import binary_file, readable, text_file, uncompressed_name
from mooring.simulator.trace_rows import ARRIVAL, COLUMNS, DEFAULT_NAMESPACE, TraceRow, arrivals_of

MOST_NAMED = 10
"""So many columns that are not read are named."""
NATIVE = ("cpu", "memory", "ephemeral-storage")
MOST_PROBLEMS = 20
"""So many bad rows are listed."""
_ROWS_AT_ONCE = 10_000
"""Of a Parquet file."""

Value = TypeVar("Value")
Cells = Mapping[str, Any]
"""A row by the names of its columns: texts, or what JSON and Parquet have."""
Place = tuple[str, int]
"""`line` or `row`, and its number."""


def read_trace_file(path: str, columns: Mapping[str, str] | None = None) -> Workload:
    """The pods of a trace, by the end of its name. `columns` maps our names of columns to those of the file."""
    name, reading = uncompressed_name(path), _Reading(path, columns or {})
    if name.endswith(".csv"):
        with text_file(path) as lines:
            return reading.workload(_csv_cells(lines, reading))
    with readable(path, "The trace"):
        if name.endswith(".parquet"):
            return reading.workload(_parquet_cells(path, reading))
        if name.endswith(".json"):
            with binary_file(path) as file:
                return reading.workload(_json_cells(file.read(), reading))
        with binary_file(path) as file:
            return reading.workload(_json_lines_cells(file, reading))


def read_trace(lines: Iterable[str], source: str, columns: Mapping[str, str] | None = None) -> list[Arrival]:
    """The pods of the lines of a CSV file."""
    reading = _Reading(source, columns or {})
    return reading.arrivals(_csv_cells(lines, reading))


def read_trace_frame(frame: Any, columns: Mapping[str, str] | None = None) -> Workload:
    """The pods of a data frame."""
    reading = _Reading("the data frame", columns or {})
    return reading.workload(_frame_cells(frame, reading))


# The formats: each yields the cells of its rows


def _csv_cells(lines: Iterable[str], reading: _Reading) -> Iterator[tuple[Cells, Place]]:
    rows = csv.reader(lines)
    try:
        names = next(rows, [])
        reading.name_columns(names)
        for values in rows:
            if len(values) == len(names):
                yield dict(zip(names, values, strict=True)), ("line", rows.line_num)
            elif values:
                message = f"has {len(values)} columns, and the first line {len(names)}"
                reading.problem(("line", rows.line_num), None, message)
            if reading.is_full:
                return
    except csv.Error as error:
        reading.problem(("line", rows.line_num), None, f"is no CSV: {error}")


def _json_cells(text: bytes, reading: _Reading) -> Iterator[tuple[Cells, Place]]:
    if not text.lstrip().startswith(b"["):
        yield from _json_lines_cells(text.splitlines(), reading)
        return
    try:
        # Parts of the text, decoded when their turn comes: objects of a million rows would take a gigabyte.
        rows = msgspec.json.decode(text, type=list[msgspec.Raw])
    except (msgspec.DecodeError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise OperatorMistake(f"The trace {reading.source} is no JSON: {why}.") from error
    yield from _objects(((bytes(row), ("row", number)) for number, row in enumerate(rows, start=1)), reading)


def _json_lines_cells(lines: IO[bytes] | list[bytes], reading: _Reading) -> Iterator[tuple[Cells, Place]]:
    texts = ((line, ("line", number)) for number, line in enumerate(lines, start=1) if line.strip())
    yield from _objects(texts, reading)


def _objects(texts: Iterable[tuple[bytes, Place]], reading: _Reading) -> Iterator[tuple[Cells, Place]]:
    """Objects need not have all columns: those of a row are known when it is read."""
    for text, place in texts:
        if reading.is_full:
            return
        try:
            cells = decode(text)
        except msgspec.DecodeError as error:
            reading.problem(place, None, f"is no JSON: {error}")
            continue
        if not isinstance(cells, dict):
            reading.problem(place, None, "must be an object whose fields are the columns")
            continue
        reading.add_columns(cells)
        yield cells, place


def _parquet_cells(path: str, reading: _Reading) -> Iterator[tuple[Cells, Place]]:
    frames = polars("Reading Parquet")
    try:
        names = list(frames.read_parquet_schema(path))
        reading.name_columns(names)
        table = frames.read_parquet(path, columns=reading.needed(names))
    except frames.exceptions.PolarsError as error:
        raise OperatorMistake(f"The trace {path} is no Parquet file: {str(error).splitlines()[0]}.") from error
    for number, cells in enumerate(table.iter_rows(named=True, buffer_size=_ROWS_AT_ONCE), start=1):
        yield cells, ("row", number)


def _frame_cells(frame: Any, reading: _Reading) -> Iterator[tuple[Cells, Place]]:
    table = columns_of(frame)
    reading.name_columns(list(table))
    names = reading.needed(table)
    for number, values in enumerate(zip(*(table[name] for name in names), strict=True), start=1):
        yield dict(zip(names, values, strict=True)), ("row", number)


# The columns, whatever the format


class _Reading:
    """Makes rows of cells, and collects what is wrong in them."""

    def __init__(self, source: str, columns: Mapping[str, str]) -> None:
        self.source = source
        self._columns = columns
        self._present: set[str] = set()
        self._columns_of_file: list[str] = []
        """The columns of the file, in its order; `notes` leaves those out that are read."""
        self._names: dict[str, str] = {}
        """Our name of each column → its name in the file."""
        self._resources: list[str] = []
        self._problems: list[Problem] = []
        self._seen: dict[str, set[str]] = {}
        """Names of pods by namespace."""
        self._parsed: dict[tuple[str, str], Any] = {}
        """Values of columns whose texts repeat, by column and text."""
        self._requests: dict[tuple[str, ...], Mapping[str, str]] = {}
        """By the texts of all resources."""
        self._is_dated: bool | None = None
        """Whether arrivals are timestamps; None: not known yet."""

    # Columns

    def name_columns(self, present: Collection[str]) -> None:
        """The file has these columns and no others."""
        twice = [name for name, count in Counter(present).items() if count > 1]
        if twice:
            problems = [Problem(f'column "{name}"', "is there twice in the first line", 1) for name in twice]
            raise OperatorMistake.found_in(self.source, problems)
        self.add_columns(present)
        self._check_mapped(present)

    def add_columns(self, present: Collection[str]) -> None:
        """These columns are in the file. The first ones must include that of arrivals."""
        if self._present.issuperset(present):
            return
        is_first = not self._present
        for theirs in present:
            mapped = [ours for ours, name in self._columns.items() if name == theirs]
            if theirs not in self._present and (mapped or theirs not in self._columns):
                self._name_column(theirs, mapped or [theirs])
            if theirs not in self._present:
                self._columns_of_file.append(theirs)
            self._present.add(theirs)
        if is_first and ARRIVAL not in self._names:
            self._check_mapped(present)
            found = ", ".join(present) or "none"
            message = f"there is no such column; name the one that has it by --column arrival=NAME (found: {found})"
            raise OperatorMistake.found_in(self.source, [Problem(ARRIVAL, message)])

    def _name_column(self, theirs: str, names: list[str]) -> None:
        for ours in names:
            self._names[ours] = theirs
            if ours not in COLUMNS and is_counted(ours):
                self._resources.append(ours)
                self._requests.clear()

    def notes(self) -> list[str]:
        """The columns that are not read: one by one where another name was meant, the others together."""
        known = set(self.needed(self._present))
        unknown = [name for name in self._columns_of_file if name not in known]
        meant = {name: _meant(name, self._names) for name in unknown}
        notes = [f'{self.source}: column "{name}" is not read.{hint}' for name, hint in meant.items() if hint]
        others = [name for name, hint in meant.items() if not hint]
        if others:
            more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
            notes.append(f"{self.source}: columns that are not read: {', '.join(others[:MOST_NAMED])}{more}.")
        return notes

    def needed(self, present: Iterable[str]) -> list[str]:
        """Those columns that are read."""
        read = {self._names[name] for name in (*COLUMNS, *self._resources) if name in self._names}
        return [name for name in present if name in read]

    def _check_mapped(self, present: Collection[str]) -> None:
        problems = [
            Problem(f"--column {ours}={theirs}", f'the file has no column "{theirs}".{did_you_mean(theirs, present)}')
            for ours, theirs in self._columns.items()
            if theirs not in present
        ]
        if problems:
            raise OperatorMistake.found_in(self.source, problems)

    # Rows

    @property
    def is_full(self) -> bool:
        """So many problems were found that the rest is not read."""
        return len(self._problems) >= MOST_PROBLEMS

    def workload(self, cells: Iterator[tuple[Cells, Place]]) -> Workload:
        arrivals = self.arrivals(cells)
        return Workload(arrivals, notes=self.notes())

    def arrivals(self, cells: Iterator[tuple[Cells, Place]]) -> list[Arrival]:
        """The pods of all rows. Where arrivals are timestamps, time begins with the earliest."""
        rows = self._rows(cells)
        first = next(rows, None)
        if first is None:
            raise OperatorMistake(f"The trace {self.source} has no rows.")
        if self._is_dated:
            dated = [first, *rows]
            begin = min(row.arrival for row in dated)
            rows = (msgspec.structs.replace(row, arrival=round(row.arrival - begin, 6)) for row in dated)
            return arrivals_of(rows)
        return arrivals_of(chain((first,), rows))

    def _rows(self, cells: Iterator[tuple[Cells, Place]]) -> Iterator[TraceRow]:
        for number, (row, place) in enumerate(cells, start=1):
            before = len(self._problems)
            made = self._row(row, place, number)
            if len(self._problems) == before:
                yield made
            if self.is_full:
                break
        if self._problems:
            raise OperatorMistake.found_in(self.source, self._problems)
        self._check_mapped(self._present)

    def _row(self, row: Cells, place: Place, number: int) -> TraceRow:
        at = self._value(row, place, ARRIVAL, self._moment)
        if at is None:
            at = 0.0
            if _is_empty(row.get(self._names[ARRIVAL])):
                self.problem(place, ARRIVAL, "is empty; every pod needs the moment at which it arrives")
        name = self._text(row, place, "name") or f"pod-{number}"
        namespace = self._text(row, place, "namespace") or DEFAULT_NAMESPACE
        among = self._seen.setdefault(namespace, set())
        if name in among:
            self.problem(place, "name", f'there are two pods "{namespace}/{name}"; names must differ')
        among.add(name)
        return TraceRow(
            arrival=at,
            duration=self._value(row, place, "duration", _seconds),
            name=name,
            namespace=namespace,
            priority=self._repeated(row, place, "priority", _priority),
            labels=self._repeated(row, place, "labels", _labels) or {},
            owner=self._text(row, place, "owner"),
            scheduler=self._text(row, place, "scheduler"),
            node_selector=self._repeated(row, place, "node_selector", _alternatives) or {},
            requests=self._requests_of(row, place),
        )

    def _requests_of(self, row: Cells, place: Place) -> Mapping[str, str]:
        texts = tuple([self._text(row, place, resource) for resource in self._resources])
        if (known := self._requests.get(texts)) is not None:
            return known
        before = len(self._problems)
        found = {
            resource: text for resource in self._resources if (text := self._value(row, place, resource, _quantity))
        }
        if len(self._problems) == before:
            self._requests[texts] = found
        return found

    def _text(self, row: Cells, place: Place, column: str) -> str:
        return self._value(row, place, column, _plain_text) or ""

    def _repeated(self, row: Cells, place: Place, column: str, read: Callable[[Any], Value]) -> Value | None:
        """The value of a column whose texts repeat: each is parsed once."""
        theirs = self._names.get(column)
        value = row.get(theirs) if theirs is not None else None
        if not isinstance(value, str):
            return self._value(row, place, column, read)
        key = (column, value)
        if key not in self._parsed:
            before = len(self._problems)
            found = self._value(row, place, column, read)
            if len(self._problems) > before:
                return found
            self._parsed[key] = found
        parsed: Value | None = self._parsed[key]
        return parsed

    def _value(self, row: Cells, place: Place, column: str, read: Callable[[Any], Value]) -> Value | None:
        """None: it is empty, or bad."""
        theirs = self._names.get(column)
        value = row.get(theirs) if theirs is not None else None
        if isinstance(value, str):
            value = value.strip()
        if value is None or value == "":
            return None
        try:
            return read(value)
        except (_Bad, BadQuantity) as error:
            self.problem(place, column, str(error))
            return None

    def _moment(self, value: Any) -> float:
        """Seconds from the beginning, or since the epoch for a timestamp."""
        if (seconds := _number(value)) is not None:
            is_dated = False
            if not math.isfinite(seconds) or seconds < 0:
                raise _Bad(f"must be a number of seconds, 0 or more, or a timestamp, got {_shown(value)}")
        else:
            is_dated, seconds = True, _timestamp(value)
        if self._is_dated is None:
            self._is_dated = is_dated
        if is_dated is not self._is_dated:
            expected = "a timestamp" if self._is_dated else "a number of seconds"
            raise _Bad(f"must be {expected} as in the rows before, got {_shown(value)}")
        return seconds

    def problem(self, place: Place, column: str | None, message: str) -> None:
        """What is wrong in a line, which is named as such, or in a row of a file without lines."""
        kind, number = place
        where = "the row" if column is None else f'column "{self._names.get(column, column)}"'
        if kind == "line":
            self._problems.append(Problem(where, message, number))
        else:
            self._problems.append(Problem(f"row {number}" if column is None else f"row {number}, {where}", message))


def _meant(name: str, read: Collection[str]) -> str:
    """Which column was probably meant, among those that the file lacks."""
    if "gpu" in name.lower() and "/" not in name:
        return ' Did you mean "nvidia.com/gpu"? Resources other than cpu, memory and ephemeral-storage have a domain.'
    return did_you_mean(name, [each for each in (*COLUMNS, *NATIVE) if each not in read])


class _Bad(ValueError):
    """A value that is explained."""


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _plain_text(value: Any) -> str:
    """The text of a cell; a whole number is written without decimals, whatever the type of its column."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _Bad(f"must be text or a number, got {_shown(value)}")
    return str(value)


def _number(value: Any) -> float | None:
    """None: it is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _seconds(value: Any) -> float:
    seconds = value.total_seconds() if isinstance(value, timedelta) else _number(value)
    if seconds is None:
        raise _Bad(f"must be a number, got {_shown(value)}")
    if not math.isfinite(seconds) or seconds < 0:
        raise _Bad(f"must be a number of seconds, 0 or more, got {_shown(value)}")
    return float(seconds)


def _timestamp(value: Any) -> float:
    """In seconds since the epoch. Without an offset it is UTC."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        moment = None
    if isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day)
    if not isinstance(moment, datetime):
        raise _Bad(f"must be a number of seconds or a timestamp such as 2026-01-31T12:00:00Z, got {_shown(value)}")
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (moment - _EPOCH).total_seconds()


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _priority(value: Any) -> int:
    found = _number(value)
    if found is None or not -_HIGHEST <= found <= _HIGHEST or found != int(found):
        raise _Bad(f"must be a whole number of 32 bits, got {_shown(value)}")
    return int(found)


_HIGHEST = 2**31 - 1


def _quantity(value: Any) -> str:
    """Empty: it requests none."""
    text = _plain_text(value)
    amount = exact(text)
    if amount < 0:
        raise _Bad(f"must not be negative, got {_shown(value)}")
    return text if amount else ""


def _labels(value: Any) -> dict[str, str]:
    """Of a text with pairs, or of an object."""
    if isinstance(value, Mapping):
        pairs = {str(key): each for key, each in value.items() if each is not None}
    else:
        pairs = _pairs(_plain_text(value))
    for key, each in pairs.items():
        if wrong := [*qualified_name(key), *(label_value(each) if isinstance(each, str) else ["must be text"])]:
            raise _Bad(f"has no valid label: {key}={each}: {wrong[0]}")
    return pairs


def _alternatives(value: Any) -> dict[str, tuple[str, ...]]:
    """Labels whose values are separated by `|`, or lists in an object."""
    if isinstance(value, Mapping):
        listed = {
            str(key): tuple(each) if isinstance(each, list) else (each,)
            for key, each in value.items()
            if each is not None
        }
    else:
        listed = {key: tuple(each.split("|")) for key, each in _pairs(_plain_text(value)).items()}
    for key, values in listed.items():
        for each in values or ("",):
            _labels({key: each})
        if not values:
            raise _Bad(f"has no value for {key}")
    return listed


def _pairs(text: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(";") if pair.strip()]
    if any(not equals or not key.strip() for key, equals, _ in pairs):
        raise _Bad(f"must be key=value pairs separated by ;, got {text!r}")
    return {key.strip(): value.strip() for key, _, value in pairs}


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:76]}…"
