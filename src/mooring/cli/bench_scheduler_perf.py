"""`mooring bench scheduler-perf`: upstream's scheduler benchmark for Mooring and kube-scheduler side by side."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mooring.cli.interruption import INTERRUPTED, finishes
from mooring.cli.output import print_json, print_line, print_table

if TYPE_CHECKING:
    from mooring.bench.scheduler_commands import SchedulerCommand
    from mooring.bench.scheduler_perf.selection import CaseChoice


@click.command("scheduler-perf", short_help="Run upstream's scheduler_perf workloads against schedulers.")
@click.option(
    "--config",
    "configs",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    help="A performance-config.yaml, or a folder of them; without it, those of k8s.io/kubernetes in Go's module cache.",
)
@click.option("--filter", "pattern", default="", metavar="REGEX", help="Only workloads whose name matches.")
@click.option(
    "--labels",
    default="performance",
    show_default=True,
    metavar="LABELS",
    help="Only workloads with these labels, and with -LABEL those without; empty for all.",
)
@click.option(
    "--scheduler",
    "schedulers",
    multiple=True,
    metavar="NAME[=COMMAND]",
    help="mooring, kube-scheduler, or any command; may be given several times.  [default: mooring, kube-scheduler]",
)
@click.option("--rounds", type=click.IntRange(min=1), default=1, show_default=True, help="Runs of each, in turn.")
@click.option(
    "--limit", type=click.FloatRange(min=1), default=600, show_default=True, help="Seconds after which a run is ended."
)
@click.option("--list", "list_only", is_flag=True, help="List the workloads, and why some cannot run.")
@click.option("--json", "as_json", is_flag=True, help="Print what upstream's dashboards read, a line of JSON per run.")
def scheduler_perf(
    configs: tuple[Path, ...],
    pattern: str,
    labels: str,
    schedulers: tuple[str, ...],
    rounds: int,
    limit: float,
    list_only: bool,
    as_json: bool,
) -> int:
    """Run Kubernetes' own scheduler benchmark with real schedulers against a real API server.

    Reads upstream's workload files unchanged, starts etcd, kube-apiserver and the scheduler for each run, and prints
    scheduling throughput with upstream's percentiles and thresholds. Pods a second are samples of whole seconds;
    with "~", from the first to the last pod of a run that is too short for them.

    In a COMMAND, {kubeconfig}, {config}, {gates}, {port} and {dir} stand for the cluster's kubeconfig, a
    KubeSchedulerConfiguration that names it, the workload's feature gates, the port of /metrics and a folder for files.
    Ends with 1 if a run did not end or missed its threshold. Ctrl-C prints what was measured.

    \b
    Example:
      mooring bench scheduler-perf --filter SchedulingBasic/500Nodes --labels ""
    """
    from mooring.bench.scheduler_perf.schedulers import read_commands
    from mooring.bench.scheduler_perf.selection import choose
    from mooring.bench.scheduler_perf.workload_files import find_folder, read_cases

    choices = choose(read_cases(configs or [find_folder()]), pattern, labels)
    if list_only:
        _list(choices)
        return 0
    return _run_all(choices, read_commands(schedulers), rounds, limit, as_json)


def _list(choices: Sequence[CaseChoice]) -> None:
    rows = []
    for each in choices:
        reason = f"not run: {each.impossible}" if each.impossible else ""
        if not reason and each.not_with_mooring:
            reason = f"not with Mooring: {each.not_with_mooring}"
        threshold = f"{each.case.threshold:g}" if each.case.threshold else "-"
        rows.append([each.case.name, threshold, reason or "runs"])
    print_table(f"{len(rows)} workloads", ["workload", "threshold", ""], rows)


def _run_all(
    choices: Sequence[CaseChoice], commands: Sequence[SchedulerCommand], rounds: int, limit: float, as_json: bool
) -> int:
    from mooring.bench.scheduler_perf.reporting import HEADINGS, not_run, rows, summary
    from mooring.bench.scheduler_perf.results import Run
    from mooring.bench.scheduler_perf.running import run_case

    runs: list[Run] = []

    async def run_them() -> None:
        for choice, _, command in product(choices, range(rounds), commands):
            if choice.impossible or (command.is_mooring and choice.not_with_mooring):
                continue
            run = Run(case=choice.case.name, scheduler=command.name)
            runs.append(run)
            progress = partial(_progress, f"{run.case} with {run.scheduler}")
            try:
                await run_case(choice.case, command, run, progress, limit)
            finally:
                progress(summary(run))
                if as_json:
                    print_json(run.document(), indent=None)

    try:
        is_whole = finishes(run_them())
    finally:
        left_out = list(not_run(choices))
        if as_json:
            for name, reason in left_out:
                print_json({"case": name, "notRun": reason}, indent=None)
        else:
            print_table("Scheduling throughput in pods a second", HEADINGS, list(rows(runs)))
            if left_out:
                print_table("Not run", ["workload", "reason"], left_out)
    if not is_whole:
        return INTERRUPTED
    return int(any(run.error or (run.verdict is not None and run.verdict.passed is False) for run in runs))


def _progress(name: str, line: str) -> None:
    print_line(f"{name}: {line}", err=True)
