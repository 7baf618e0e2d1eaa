"""Where the results of simulations go: to standard output, and to files for other programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mooring.base.errors import OperatorMistake, Problem
from mooring.cli.interruption import INTERRUPTED
from mooring.cli.output import print_json, print_line
from mooring.cli.output_files import OutputFile, replaces_files
from mooring.cli.simulation_tables import document_of, print_comparison

if TYPE_CHECKING:
    from mooring.simulator import SimulationComparison

Command = TypeVar("Command", bound=Callable[..., Any])


def output_options(command: Command) -> Command:
    """`--pods`, `--timeline`, `--html`, `--force`, `-o` and `--json`."""
    for option in reversed(
        (
            click.option(
                "--pods",
                "pods_file",
                type=OutputFile("table of pods", "mooring.simulator.tables:is_pods_file"),
                metavar="FILE",
                help="Also write a row for each pod (.csv, .parquet).",
            ),
            click.option(
                "--timeline",
                "timeline_file",
                type=OutputFile("timeline", "mooring.simulator.tables:is_timeline_file"),
                metavar="FILE",
                help="Also write the cluster over time: requested, fragmentation, pods (.csv, .parquet).",
            ),
            click.option(
                "--html",
                "html_file",
                type=OutputFile("report", "mooring.simulator.html_report:is_report"),
                metavar="FILE",
                help="Also write a report with plots, as one page.",
            ),
            click.option(
                "-o",
                "--output",
                "output",
                type=click.Choice(["text", "json"]),
                default="text",
                show_default=True,
                help="How to print.",
            ),
            click.option("--json", "output", flag_value="json", help="The same as -o json."),
        )
    ):
        command = option(command)
    return replaces_files(command)


class SimulationOutputs:
    """Checked before anything is simulated: a long run must not end with a file that cannot be written."""

    def __init__(self, output: str, pods_file: str | None, timeline_file: str | None, html_file: str | None) -> None:
        self._output = output
        self._pods, self._timeline, self._html = pods_file, timeline_file, html_file
        from mooring.simulator.tables import check_name

        problems = []
        for option, path in (("--pods", pods_file), ("--timeline", timeline_file)):
            if path is not None:
                try:
                    check_name(path)
                except OperatorMistake as mistake:
                    problems.append(Problem(option, mistake.summary))
        if problems:
            raise OperatorMistake.found_in("the command line", problems)

    def write(self, comparison: SimulationComparison, title: str) -> None:
        """Print first: what was computed is seen, whatever becomes of the files."""
        if self._output == "json":
            print_json(document_of(comparison))
        else:
            print_comparison(comparison)
        from mooring.simulator.html_report import write_page
        from mooring.simulator.tables import pods_table, timeline_table, write_table

        if self._pods is not None:
            write_table(self._pods, pods_table(comparison.results))
        if self._timeline is not None:
            write_table(self._timeline, timeline_table(comparison.results))
        if self._html is not None:
            write_page(self._html, comparison, title)
        if any(result.is_interrupted for result in comparison.results.values()):
            print_line("Interrupted: what was computed so far is above.", err=True)
            raise click.exceptions.Exit(INTERRUPTED)
