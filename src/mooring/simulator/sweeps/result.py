"""What a sweep returns."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mooring.simulator.sweeps.parameters import shown
from mooring.simulator.sweeps.results_file import FinishedRun, frame_of
from mooring.simulator.sweeps.worker import Row

if TYPE_CHECKING:
    from polars import DataFrame

MOST_FAILED = 10
"""So many failed runs are listed."""
MOST_ROWS = 20


class SweepResult:
    """The rows of all finished runs, in the order of the runs."""

    def __init__(
        self, runs: Sequence[FinishedRun], total: int, *, restored: int = 0, is_interrupted: bool = False
    ) -> None:
        self.runs = runs
        """Those that finished or failed."""
        self.total = total
        """How many runs the sweep has."""
        self.restored = restored
        """How many of them an earlier call had finished."""
        self.is_interrupted = is_interrupted
        """It was stopped before the end. With `out`, the same sweep resumes where it was."""

    @property
    def rows(self) -> list[Row]:
        """A mapping from columns to values for each row, with the parameters; a failed run is a row with its error."""
        return [row for run in self.runs for row in run.whole_rows]

    @property
    def failed(self) -> list[FinishedRun]:
        return [run for run in self.runs if run.error is not None]

    def frame(self) -> DataFrame:
        """The rows as a data frame."""
        return frame_of(self.runs)

    def __str__(self) -> str:
        finished = len(self.runs) - len(self.failed)
        text = f"{finished:,} of {self.total:,} runs finished"
        if self.restored:
            text += f", {self.restored:,} of them in an earlier call"
        if self.is_interrupted:
            text += "; interrupted"
        lines = [f"{text}."]
        if self.failed:
            lines.append(f"{len(self.failed):,} failed:")
            lines += [f"  {shown(run.labels)}: {run.error}" for run in self.failed[:MOST_FAILED]]
            if len(self.failed) > MOST_FAILED:
                lines.append(f"  and {len(self.failed) - MOST_FAILED:,} others")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<sweep: {str(self).splitlines()[0]}>"

    def _repr_html_(self) -> str:
        """For notebooks: the summary and the first rows."""
        rows = self.rows[:MOST_ROWS]
        columns = list(dict.fromkeys(name for row in rows for name in row))
        head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_cell(row.get(name)))}</td>" for name in columns) + "</tr>"
            for row in rows
        )
        more = len(self.rows) - len(rows)
        note = f"<p>and {more:,} further rows</p>" if more > 0 else ""
        summary = html.escape(str(self)).replace("\n", "<br>")
        return f"<p>{summary}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{len(value)} values" if isinstance(value, list) else str(value)
