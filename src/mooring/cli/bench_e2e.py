"""`mooring bench e2e`: schedulers compared on a real API server."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mooring.base.errors import OperatorMistake, Problem, did_you_mean
from mooring.cli.interruption import INTERRUPTED, finishes
from mooring.cli.output import print_json, print_line, print_lines
from mooring.cli.output_files import OutputFile, replaces_files

if TYPE_CHECKING:
    from mooring.bench.e2e.measurement import Run
    from mooring.bench.e2e.rounds import BenchmarkPlan
    from mooring.bench.e2e.scenario import Scenario, Task
    from mooring.bench.machine import Machine

DRAINED_PODS = 5000
ARRIVAL_SECONDS = 30
"""How long pods arrive where the command line does not give their number."""
DEFAULT_RATE = 100.0
EVICTABLE_PER_NODE = 4
"""Running pods that fill a node of the workload preemption."""


@click.command(short_help="Compare schedulers on a real API server.")
@click.option("--nodes", type=click.IntRange(min=1), default=5000, show_default=True, help="Nodes of the cluster.")
@click.option(
    "--pods",
    type=click.IntRange(min=2),
    help=f"Pods to schedule in a run.  [default: {DRAINED_PODS}; with arrivals, those of {ARRIVAL_SECONDS} s]",
)
@click.option("--running", type=click.IntRange(min=0), default=0, show_default=True, help="Pods on nodes before.")
@click.option(
    "--workload",
    multiple=True,
    metavar="NAME",
    help="Which pods; may be given several times, `all` is all of them.  [default: basic]",
)
@click.option(
    "--scheduler",
    "schedulers",
    multiple=True,
    metavar="NAME[=COMMAND]",
    help="mooring, kube-scheduler, or any command; may be given several times.  [default: mooring, kube-scheduler]",
)
@click.option(
    "--bare/--no-bare", default=True, show_default=True, help="Also drain by a client that only posts bindings."
)
@click.option(
    "--page",
    is_flag=True,
    help="Also measure Mooring while it records, with a page (mooring web) open.",
)
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True, help="Runs of each; medians count.")
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    metavar="PODS",
    help="Instead of a drain, let so many pods a second arrive and measure how long each waits.",
)
@click.option(
    "--unschedulable",
    type=click.IntRange(min=1),
    metavar="PODS",
    help=f"Pods that fit no node, beside arrivals.  [--rate default: {DEFAULT_RATE:g}]",
)
@click.option(
    "--node-updates",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="Nodes that change every second, with --unschedulable.  [default: 20]",
)
@click.option(
    "--preemption-wave",
    type=click.IntRange(min=1),
    metavar="PODS",
    help=f"Pods that preempt, all at once, beside arrivals.  [--rate default: {DEFAULT_RATE:g}]",
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Use this cluster, which must have no nodes, instead of an etcd and kube-apiserver of its own.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of a table.")
@click.option(
    "--svg",
    type=OutputFile("picture", "mooring.bench.e2e.picture:is_picture"),
    metavar="FILE",
    help="Also draw a picture that compares.",
)
@replaces_files
def e2e(
    nodes: int,
    pods: int | None,
    running: int,
    workload: tuple[str, ...],
    schedulers: tuple[str, ...],
    bare: bool,
    page: bool,
    rounds: int,
    rate: float | None,
    unschedulable: int | None,
    node_updates: float | None,
    preemption_wave: int | None,
    kubeconfig: Path | None,
    as_json: bool,
    svg: str | None,
) -> int:
    """Measure schedulers on a real API server, one after the other in rounds, beside the bare bind rate.

    All pods are pending before a scheduler starts. The benchmark starts an etcd and a kube-apiserver of its own, which
    a checkout's scripts/install-debian and scripts/build-real get. The bare bind rate is that of a client that only
    posts bindings (scripts/build-bind-rate): what this API server can take.

    With --rate, --unschedulable or --preemption-wave pods arrive steadily while the scheduler runs, and what counts is
    how long they wait for their node.

    The workload gangs has PodGroups of ten pods, whose feature gates the API server and both schedulers have on.

    In a COMMAND, {kubeconfig}, {config}, {gates} and {dir} stand for the cluster's kubeconfig, a
    KubeSchedulerConfiguration that names it, the value of --feature-gates, and a folder for files.

    Ends with 1 if pods were left without a node. Ctrl-C prints what was measured.

    \b
    Example:
      mooring bench e2e --nodes 1000 --pods 2000 --workload basic --workload spread --svg bench.svg
      mooring bench e2e --scheduler mooring --scheduler 'other=other-scheduler --config={config}'
      mooring bench e2e --workload gangs --pods 10000
      mooring bench e2e --rate 300
      mooring bench e2e --scheduler mooring --no-bare --page
      mooring bench e2e --unschedulable 10000
    """
    from mooring.bench.e2e.contenders import find_contenders, is_python
    from mooring.bench.e2e.rounds import BenchmarkPlan
    from mooring.bench.machine import this_machine
    from mooring.bench.programs import ETCD, KUBE_APISERVER, KUBE_SCHEDULER, require_programs
    from mooring.client import load_kubeconfig

    wanted = _Wanted(nodes, pods, running, workload, rate, unschedulable, node_updates, preemption_wave)
    wanted.check()
    _check_workloads(workload, is_given_cluster=kubeconfig is not None)
    contenders = find_contenders(
        schedulers or ("mooring", KUBE_SCHEDULER), with_bare=bare and not wanted.has_arrivals, with_page=page
    )
    if kubeconfig is None:
        require_programs((ETCD, KUBE_APISERVER))
    else:
        load_kubeconfig([kubeconfig])  # a mistake in it is reported before any progress
    if any(map(is_python, contenders)):
        print_line("scripts/build-bind-rate was not run: a slower client in Python posts the bare bindings.", err=True)
    scenario, tasks = wanted.scenario_and_tasks()
    plan = BenchmarkPlan(scenario, tasks, contenders, rounds, kubeconfig)
    return _measure(plan, this_machine(), as_json=as_json, svg=svg)


@dataclass(frozen=True)
class _Wanted:
    """What is to be measured, as the command line gives it."""

    nodes: int
    pods: int | None
    running: int
    workloads: tuple[str, ...]
    rate: float | None
    unschedulable: int | None
    node_updates: float | None
    wave: int | None

    @property
    def has_arrivals(self) -> bool:
        return any(each is not None for each in (self.rate, self.unschedulable, self.wave))

    def check(self) -> None:
        if self.unschedulable is not None and self.wave is not None:
            raise click.UsageError("--unschedulable and --preemption-wave are measured one after the other: give one.")
        if self.node_updates is not None and self.unschedulable is None:
            raise click.UsageError("--node-updates belongs to --unschedulable.")
        if self.wave is not None and (self.workloads or self.running):
            raise click.UsageError("--preemption-wave has nodes and pods of its own: without --workload and --running.")
        if self.wave is not None and self.wave > self.nodes:
            raise click.UsageError(f"each pod of the wave takes a node: --nodes must be at least {self.wave}.")

    def scenario_and_tasks(self) -> tuple[Scenario, list[Task]]:
        from mooring.bench.e2e.arrivals import Arrivals, Nothing
        from mooring.bench.e2e.backgrounds import PreemptionWave, Unschedulable
        from mooring.bench.e2e.drain import Drain
        from mooring.bench.e2e.scenario import Task
        from mooring.bench.workloads import END_TO_END, WORKLOADS, a_plain_pod

        rate = self.rate or DEFAULT_RATE
        pods = self.pods or (max(2, round(rate * ARRIVAL_SECONDS)) if self.has_arrivals else DRAINED_PODS)
        if self.wave is not None:
            full_nodes = replace(WORKLOADS["preemption"], incoming=a_plain_pod)
            task = Task("preemption", full_nodes, self.nodes, pods, self.nodes * EVICTABLE_PER_NODE)
            return Arrivals(rate, PreemptionWave(self.wave)), [task]
        names = END_TO_END if "all" in self.workloads else self.workloads or ("basic",)
        tasks = [Task(name, WORKLOADS[name], self.nodes, pods, self.running) for name in names]
        if self.unschedulable is not None:
            return Arrivals(rate, Unschedulable(self.unschedulable, self.node_updates or 20.0)), tasks
        return (Arrivals(rate, Nothing()) if self.rate is not None else Drain()), tasks


def _check_workloads(names: tuple[str, ...], *, is_given_cluster: bool) -> None:
    from mooring.bench.workloads import END_TO_END, WORKLOADS

    problems = []
    for name in END_TO_END if "all" in names else names:
        if name not in WORKLOADS:
            problems.append(Problem("--workload", f'there is no workload "{name}".{did_you_mean(name, END_TO_END)}'))
        elif name not in END_TO_END:
            problems.append(
                Problem("--workload", f'"{name}" cannot be measured end to end: not all its pods are bound')
            )
        elif is_given_cluster and WORKLOADS[name].gates:
            why = f"needs feature gates of the API server ({', '.join(WORKLOADS[name].gates)})"
            problems.append(Problem("--workload", f'"{name}" {why}; measure it without --kubeconfig'))
        elif is_given_cluster and any(True for _ in WORKLOADS[name].objects()):
            why = "creates objects that cannot be removed from a cluster; measure it without --kubeconfig"
            problems.append(Problem("--workload", f'"{name}" {why}'))
    if problems:
        raise OperatorMistake(f"the workloads are {', '.join(END_TO_END)}, all.", problems)


def _measure(plan: BenchmarkPlan, machine: Machine, *, as_json: bool, svg: str | None) -> int:
    from mooring.bench.e2e.rounds import measure

    runs: list[Run] = []
    try:
        is_whole = finishes(measure(plan, runs, lambda line: print_lines(line, err=True)))
    finally:
        # Also after a failure: hours of measuring are not lost.
        _show(runs, machine, as_json=as_json, svg=svg)
    if not is_whole:
        return INTERRUPTED
    return int(any(run.bound < run.pods for run in runs))


def _show(runs: list[Run], machine: Machine, *, as_json: bool, svg: str | None) -> None:
    import msgspec

    from mooring.base.files import write_whole
    from mooring.bench.e2e.picture import picture
    from mooring.bench.e2e.summary import summarize
    from mooring.bench.e2e.tables import legend, table

    summaries = summarize(runs)
    if as_json:
        print_json(msgspec.to_builtins({"machine": machine, "summaries": summaries, "runs": runs}))
    elif runs:
        print_line(f"{_title(runs[0])} {machine}")
        print_lines(f"\n{table(summaries)}\n\n{legend(summaries)}")
    if svg is not None and runs:
        try:
            write_whole(svg, picture(summaries, f"{_title(runs[0])} {machine}"))
        except OSError as error:
            raise OperatorMistake(f"{svg} cannot be written: {error.strerror or error}.") from error


def _title(run: Run) -> str:
    return f"{run.scenario}: {run.nodes:,} nodes, {run.running:,} pods on them, {run.pods:,} pods to schedule."
