"""Which workload is simulated: that of a file, or pods that follow from a seed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from mooring.base.errors import OperatorMistake, Problem
from mooring.cli.cluster_source import print_notes

if TYPE_CHECKING:
    from mooring.simulator import Cluster, Workload

F = TypeVar("F", bound=Callable[..., Any])


class WorkloadSource(NamedTuple):
    """As given on the command line."""

    file: str | None
    pods: int | None
    seed: int | None
    columns: dict[str, str]

    def check(self) -> None:
        """At most one workload is named, with the options that belong to it."""
        if self.file is not None and self.pods is not None:
            raise click.UsageError("--workload and --generate-pods exclude each other.")
        if self.columns and self.file is None:
            raise click.UsageError("--column is about the trace of --workload.")
        if self.seed is not None and self.pods is None:
            raise click.UsageError("--seed is about --generate-pods; a GeneratedWorkload has its seed in its file.")

    @property
    def is_given(self) -> bool:
        return self.file is not None or self.pods is not None

    def __str__(self) -> str:
        return self.file or f"{self.pods or 0:,} generated pods"

    def read(self, cluster: Cluster) -> Workload:
        """Without pods, where none are named."""
        from mooring.simulator import Workload

        if self.file is not None:
            workload = Workload.read(self.file, cluster=cluster, columns=self.columns)
            print_notes(workload.notes)
            return workload
        return Workload.generate(self.pods, seed=self.seed or 0) if self.pods is not None else Workload([])


def workload_options(command: F) -> F:
    """The command gets `pods`, a WorkloadSource."""

    @functools.wraps(command)
    def with_workload(
        *arguments: Any,
        workload_file: str | None,
        generate_pods: int | None,
        seed: int | None,
        columns: tuple[str, ...],
        **options: Any,
    ) -> Any:
        pods = WorkloadSource(workload_file, generate_pods, seed, mapped_columns(columns))
        pods.check()
        return command(*arguments, pods=pods, **options)

    wrapped: Any = with_workload
    for option in (
        click.option(
            "--column",
            "columns",
            multiple=True,
            metavar="NAME=COLUMN",
            help="Which column of a trace has what, where its name is another; may be given several times.",
        ),
        click.option(
            "--seed", type=int, metavar="N", help="Of --generate-pods: another seed, other pods.  [default: 0]"
        ),
        click.option(
            "--generate-pods",
            type=click.IntRange(1),
            metavar="N",
            help="Instead of --workload: N pods of three sizes, one every ten seconds, that run for ten minutes, on "
            "average.",
        ),
        click.option(
            "--workload",
            "workload_file",
            metavar="FILE",
            help="Manifests (YAML or JSON) whose pods all arrive at the beginning, a GeneratedWorkload, or a trace "
            "(CSV, JSON, Parquet) with a row for each pod.",
        ),
    ):
        wrapped = option(wrapped)
    result: F = wrapped
    return result


def mapped_columns(columns: Sequence[str]) -> dict[str, str]:
    """Our name of each column → its name in the file."""
    mapped, problems = {}, []
    for text in columns:
        ours, equals, theirs = text.partition("=")
        if not (ours and equals and theirs):
            problems.append(Problem(f"--column {text}", "must be NAME=COLUMN, as in arrival=submit_time"))
        mapped[ours] = theirs
    if problems:
        raise OperatorMistake.found_in("the command line", problems)
    return mapped
