"""`mooring bench e2e`: schedulers compared on a real API server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mooring.base.errors import OperatorMistake, Problem, did_you_mean
from mooring.cli.interruption import INTERRUPTED, finishes
from mooring.cli.output import print_json, print_line, print_lines

if TYPE_CHECKING:
    from mooring.bench.e2e.measurement import Run
    from mooring.bench.e2e.rounds import Plan
    from mooring.bench.machine import Machine


@click.command(short_help="Compare schedulers on a real API server.")
@click.option("--nodes", type=click.IntRange(min=1), default=5000, show_default=True, help="Nodes of the cluster.")
@click.option("--pods", type=click.IntRange(min=2), default=5000, show_default=True, help="Pods to schedule in a run.")
@click.option("--running", type=click.IntRange(min=0), default=0, show_default=True, help="Pods on nodes before.")
@click.option(
    "--workload", multiple=True, metavar="NAME", help="Which pods; may be given several times.  [default: basic]"
)
@click.option(
    "--scheduler",
    "schedulers",
    multiple=True,
    metavar="NAME[=COMMAND]",
    help="mooring, kube-scheduler, or any command; may be given several times.  [default: mooring, kube-scheduler]",
)
@click.option(
    "--bare/--no-bare", default=True, show_default=True, help="Also measure a client that only posts bindings."
)
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True, help="Runs of each; medians count.")
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Use this cluster, which must have no nodes, instead of an etcd and kube-apiserver of its own.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of a table.")
def e2e(
    nodes: int,
    pods: int,
    running: int,
    workload: tuple[str, ...],
    schedulers: tuple[str, ...],
    bare: bool,
    rounds: int,
    kubeconfig: Path | None,
    as_json: bool,
) -> int:
    """Measure schedulers on a real API server, one after the other in rounds, beside the bare bind rate.

    All pods are pending before a scheduler starts. The benchmark starts an etcd and a kube-apiserver of its own, which
    a checkout's scripts/install-debian and scripts/build-real get. The bare bind rate is that of a client that only
    posts bindings (scripts/build-bind-rate): no scheduler can be faster on this API server.

    In a COMMAND, {kubeconfig}, {config} and {dir} stand for the cluster's kubeconfig, a KubeSchedulerConfiguration that
    names it, and a folder for files. Ends with 1 if pods were left without a node. Ctrl-C prints what was measured.

    \b
    Example:
      mooring bench e2e --nodes 1000 --pods 2000 --workload basic --workload spread
      mooring bench e2e --scheduler mooring --scheduler 'other=other-scheduler --config={config}'
    """
    from mooring.bench.e2e.contenders import find_contenders, is_python
    from mooring.bench.e2e.drain import Task
    from mooring.bench.e2e.rounds import Plan
    from mooring.bench.machine import this_machine
    from mooring.bench.programs import ETCD, KUBE_APISERVER, KUBE_SCHEDULER, require_programs

    _check_workloads(workload)
    contenders = find_contenders(schedulers or ("mooring", KUBE_SCHEDULER), with_bare=bare)
    if kubeconfig is None:
        require_programs((ETCD, KUBE_APISERVER))
    if any(map(is_python, contenders)):
        print_line("scripts/build-bind-rate was not run: a slower client in Python posts the bare bindings.", err=True)
    tasks = [Task(name, nodes, pods, running) for name in workload or ("basic",)]
    return _measure(Plan(tasks, contenders, rounds, kubeconfig), this_machine(), as_json=as_json)


def _check_workloads(names: tuple[str, ...]) -> None:
    from mooring.bench.workloads import END_TO_END, WORKLOADS

    problems = []
    for name in names:
        if name not in WORKLOADS:
            problems.append(Problem("--workload", f'there is no workload "{name}".{did_you_mean(name, END_TO_END)}'))
        elif name not in END_TO_END:
            problems.append(Problem("--workload", f'"{name}" cannot be measured end to end: none of its pods is bound'))
    if problems:
        raise OperatorMistake(f"the workloads are {', '.join(END_TO_END)}.", problems)


def _measure(plan: Plan, machine: Machine, *, as_json: bool) -> int:
    from mooring.bench.e2e.rounds import measure

    runs: list[Run] = []
    try:
        is_whole = finishes(measure(plan, runs, lambda line: print_lines(line, err=True)))
    finally:
        _show(runs, machine, as_json=as_json)
    if not is_whole:
        return INTERRUPTED
    return int(any(run.bound < run.pods for run in runs))


def _show(runs: list[Run], machine: Machine, *, as_json: bool) -> None:
    import msgspec

    from mooring.bench.e2e.summary import summarize
    from mooring.bench.e2e.tables import LEGEND, table

    summaries = summarize(runs)
    if as_json:
        print_json(msgspec.to_builtins({"machine": machine, "summaries": summaries, "runs": runs}))
    elif runs:
        first = runs[0]
        print_line(f"{first.nodes:,} nodes, {first.running:,} pods on them, {first.pods:,} pods to schedule. {machine}")
        print_lines(f"\n{table(summaries)}\n\n{LEGEND}")
