"""CSV tables of published traces. Bad rows are named by file, line and column, all of them up to a limit."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from mooring.base.errors import OperatorMistake, Problem
from mooring.simulator.text_files import text_file
from mooring.simulator.traces import MOST_PROBLEMS

Record = TypeVar("Record")


class CsvTable:
    """A file with a row for each record. `header` names the columns where the file does not."""

    def __init__(self, path: str | Path, required: Sequence[str], *, header: Sequence[str] | None = None) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self._required = required
        self._header = header
        self.columns: dict[str, int] = {}
        """Where each column stands; of a file with a header, known once its first row is read."""

    def read(self, record: Callable[[TableRow], Record]) -> Iterator[Record]:
        """What `record` makes of each row. If rows are bad, they are left out, and reported after the last."""
        with text_file(self.path) as lines:
            reader = csv.reader(lines)
            try:
                self._name_columns(reader)
                width = 1 + max(self.columns[name] for name in self._required)
                for values in reader:
                    if not values:
                        continue
                    before, row = len(self.problems), TableRow(self, values, reader.line_num)
                    if len(values) < width:
                        self.problem(reader.line_num, None, f"has {len(values)} columns; {width} are expected")
                    else:
                        made = record(row)
                        if len(self.problems) == before:
                            yield made
                    if len(self.problems) >= MOST_PROBLEMS:
                        break
            except csv.Error as error:
                self.problem(reader.line_num, None, f"is no CSV: {error}")
        if self.problems:
            raise OperatorMistake.found_in(str(self.path), self.problems)

    def problem(self, line: int, column: str | None, message: str) -> None:
        where = "the row" if column is None else f'column "{column}"'
        self.problems.append(Problem(where, message, line))

    def _name_columns(self, reader: Iterator[list[str]]) -> None:
        names = self._header if self._header is not None else [name.strip() for name in next(reader, [])]
        self.columns = {name: index for index, name in enumerate(names)}
        missing = [name for name in self._required if name not in self.columns]
        if missing:
            found = ", ".join(names) or "none"
            raise OperatorMistake.found_in(
                str(self.path),
                [Problem(f'column "{name}"', f"is missing in the first line (found: {found})") for name in missing],
            )


class TableRow:
    """A row of a table. What cannot be read is noted as a problem, and read as nothing."""

    __slots__ = ("_table", "_values", "line")

    def __init__(self, table: CsvTable, values: list[str], line: int) -> None:
        self._table = table
        self._values = values
        self.line = line

    def text(self, column: str) -> str:
        """Empty where the table has no such column."""
        index = self._table.columns.get(column)
        return self._values[index].strip() if index is not None and index < len(self._values) else ""

    def name(self, column: str) -> str:
        """A text that must be there."""
        if not (text := self.text(column)):
            self.problem(column, "is empty")
        return text

    def number(self, column: str, *, least: float = 0.0) -> float | None:
        """None where it is empty. At least `least`."""
        if not (text := self.text(column)):
            return None
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if math.isfinite(found) and found >= least:
            return found
        bound = "" if math.isinf(least) else f" of at least {least:g}"
        self.problem(column, f"must be a number{bound}, got {text!r}")
        return None

    def amount(self, column: str) -> float:
        """A number that must be there."""
        if not self.text(column):
            self.problem(column, "is empty; a number is expected")
        return self.number(column) or 0.0

    def whole(self, column: str) -> int:
        """A whole number that must be there; 1.0 is one."""
        found = self.amount(column)
        if found != int(found):
            self.problem(column, f"must be a whole number, got {self.text(column)!r}")
        return int(found)

    def problem(self, column: str, message: str) -> None:
        self._table.problem(self.line, column, message)
