"""`mooring bench …`: what a decision, or a create, costs on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import click

from mooring.base.errors import OperatorMistake, Problem, did_you_mean
from mooring.cli.bench_e2e import e2e
from mooring.cli.bench_scheduler_perf import scheduler_perf
from mooring.cli.command_group import CommandGroup
from mooring.cli.common import plugin_named, plugins_option
from mooring.cli.output import print_line

if TYPE_CHECKING:
    from mooring.bench.decide import DecisionCost


@click.group(cls=CommandGroup)
def bench() -> None:
    """Measure what Mooring costs on this machine. Compare figures of one machine only, best of one run.

    \b
    Example:
      mooring bench decide --workload basic
      mooring bench e2e --nodes 1000 --pods 2000
    """


bench.add_command(e2e)
bench.add_command(scheduler_perf)


@bench.command(short_help="Decide pods of a workload, without an API server.")
@click.option("--nodes", type=click.IntRange(min=1), default=5000, show_default=True, help="Nodes in the table.")
@click.option("--pods", type=click.IntRange(min=1), default=1000, show_default=True, help="Pods to decide.")
@click.option("--running", type=click.IntRange(min=0), default=5000, show_default=True, help="Pods on nodes before.")
@click.option(
    "--workload", multiple=True, metavar="NAME", help="Which pods; may be given several times.  [default: all]"
)
@plugins_option
@click.option(
    "--with",
    "added",
    multiple=True,
    metavar="PLUGIN",
    help="Measure the default profile with this plugin as well; may be given several times.",
)
@click.option("--rounds", type=click.IntRange(min=1), default=1, show_default=True, help="Medians of so many rounds.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line instead of a table.")
def decide(
    nodes: int,
    pods: int,
    running: int,
    workload: tuple[str, ...],
    plugins: tuple[str, ...],
    added: tuple[str, ...],
    rounds: int,
    as_json: bool,
) -> None:
    """Decide pods of a workload one after the other, in this process and without an API server.

    Measures the CPU time per pod of deciding, of assuming the pod on its node and of keeping the evidence, and how many
    pods a second one core decides and assumes. With --with, profiles without and with the plugins take turns, and the
    last column is the share of pods a second that is left.

    \b
    Example:
      mooring bench decide --nodes 5000 --pods 1000 --workload basic --workload services
      mooring bench decide --workload basic --plugins my_plugin.py --with MyPlugin --rounds 5
    """
    import msgspec

    from mooring.bench.decide import measure
    from mooring.bench.workloads import WORKLOADS

    _check(workload, WORKLOADS)
    classes = [plugin_named(name, plugins).cls for name in added]
    if not as_json:
        print_line(_row("workload", "nodes", "decide", "assume", "evidence", "pods/s") + "   (us of CPU a pod)")
    for name in workload or WORKLOADS:
        for figure in measure(name, nodes, pods, running, classes, rounds):
            print_line(json=msgspec.json.encode(figure).decode()) if as_json else print_line(_figures(figure))


def _check(named: Iterable[str], workloads: Mapping[str, object]) -> None:
    if unknown := [name for name in named if name not in workloads]:
        problems = [
            Problem("--workload", f'there is no workload "{name}".{did_you_mean(name, workloads)}') for name in unknown
        ]
        raise OperatorMistake(f"the workloads are {', '.join(workloads)}.", problems)


def _figures(figure: DecisionCost) -> str:
    micros = (figure.decide_micros, figure.assume_micros, figure.evidence_micros)
    row = _row(figure.workload, figure.nodes, *(f"{each:.0f}" for each in micros), f"{figure.pods_per_second:.0f}")
    return f"{row}{figure.share:>8.0%}  with {', '.join(figure.added)}" if figure.added else row


def _row(name: str, *cells: object) -> str:
    return f"{name:<16}" + "".join(f"{cell:>10}" for cell in cells)


@bench.command(short_help="Simulate a workload on virtual time.")
@click.option("--nodes", type=click.IntRange(min=1), default=5000, show_default=True, help="Nodes of the cluster.")
@click.option("--pods", type=click.IntRange(min=1), default=50_000, show_default=True, help="Pods that arrive.")
@click.option("--workload", default="basic", show_default=True, metavar="NAME", help="Which pods.")
@click.option(
    "--rate", type=click.FloatRange(min=0, min_open=True), default=100.0, show_default=True, help="Pods a second."
)
@click.option(
    "--run-seconds",
    type=click.FloatRange(min=0),
    default=300.0,
    show_default=True,
    help="How long a pod runs, in simulated seconds; 0: for ever.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
def simulate(nodes: int, pods: int, workload: str, rate: float, run_seconds: float, as_json: bool) -> None:
    """Simulate pods that arrive, run and end, with the default profile: CPU time and memory of this process.

    \b
    Example:
      mooring bench simulate --nodes 5000 --pods 50000
      mooring bench simulate --nodes 100000 --pods 100000 --run-seconds 0
    """
    import msgspec

    from mooring.bench.simulations import measure
    from mooring.bench.workloads import WORKLOADS

    _check([workload], WORKLOADS)
    figure = measure(workload, nodes, pods, rate, run_seconds or None)
    if as_json:
        print_line(json=msgspec.json.encode(figure).decode())
        return
    print_line(_row("workload", "nodes", "pods", "bound", "simulated", "CPU s", "pods/s", "peak MB"))
    cells = (f"{figure.simulated_seconds:.0f} s", f"{figure.cpu_seconds:.1f}", f"{figure.pods_per_second:.0f}")
    print_line(_row(workload, nodes, pods, figure.bound, *cells, f"{figure.peak_megabytes:.0f}"))


@bench.command(short_help="Sweep over simulations on all cores.")
@click.option("--runs", type=click.IntRange(min=1), default=60, show_default=True, help="Simulations, a seed each.")
@click.option("--nodes", type=click.IntRange(min=1), default=500, show_default=True, help="Nodes of the cluster.")
@click.option("--pods", type=click.IntRange(min=1), default=5000, show_default=True, help="Pods that arrive.")
@click.option("--workload", default="basic", show_default=True, metavar="NAME", help="Which pods.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes.  [default: one for each core]")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
def sweep(runs: int, nodes: int, pods: int, workload: str, workers: int | None, as_json: bool) -> None:
    """Run many simulations, and print what share of the cores they used.

    The share is CPU time by wall time and workers, from the call of the sweep until it has returned: the start of the
    workers and the last runs, which not all of them share, are in it. Other programs on the machine make it smaller.

    \b
    Example:
      mooring bench sweep --runs 60
    """
    import msgspec

    from mooring.bench.sweeps import measure
    from mooring.bench.workloads import WORKLOADS

    _check([workload], WORKLOADS)
    figure = measure(workload, nodes, pods, runs, workers)
    if as_json:
        print_line(json=msgspec.json.encode({**msgspec.to_builtins(figure), "used_share": figure.used_share}).decode())
        return
    print_line(_row("workload", "nodes", "pods", "runs", "workers", "seconds", "CPU s", "runs/s", "used"))
    cells = (f"{figure.seconds:.1f}", f"{figure.cpu_seconds:.1f}", f"{figure.runs_per_second:.1f}")
    print_line(_row(workload, nodes, pods, runs, figure.workers, *cells, f"{figure.used_share:.1%}"))


@bench.command(short_help="Measure what the metric calls of an attempt cost.")
@click.option("--nodes", type=click.IntRange(min=2), default=1000, show_default=True, help="Nodes in the table.")
@click.option("--pods", type=click.IntRange(min=1), default=1000, show_default=True, help="Pods to bind.")
def metrics(nodes: int, pods: int) -> None:
    """Measure what the metric calls of one attempt cost, beside the CPU that an attempt takes.

    An attempt is all that a scheduler spends on a pod until it is bound, on an embedded API server in a process of its
    own.

    \b
    Example:
      mooring bench metrics --nodes 1000 --pods 1000
    """
    from mooring.bench.metrics import measure

    figure = measure(nodes, pods)
    print_line(f"{'nodes':>8}{'metrics':>10}{'decide':>10}{'attempt':>10}{'share':>9}   (us of CPU an attempt)")
    micros = "".join(f"{each:>10.1f}" for each in (figure.metric_micros, figure.decide_micros, figure.attempt_micros))
    print_line(f"{nodes:>8}{micros}{figure.share_of_attempt:>9.1%}")


@bench.command(short_help="Measure the embedded API server's creates.")
@click.option("--pods", type=click.IntRange(min=1), default=5000, show_default=True, help="Pods to create.")
@click.option("--watchers", type=click.IntRange(min=0), default=3, show_default=True, help="Clients that watch pods.")
@click.option("--in-flight", type=click.IntRange(min=1), default=32, show_default=True, help="Creates at a time.")
def apiserver(pods: int, watchers: int, in_flight: int) -> None:
    """Measure how many pods a second the embedded API server creates, and its CPU time for each.

    \b
    Example:
      mooring bench apiserver --pods 5000 --watchers 3
    """
    from mooring.bench.apiserver import measure

    figure = measure(pods, watchers, in_flight)
    print_line(f"{'pods':>8}{'watchers':>10}{'creates/s':>12}{'server':>12}   (us of CPU a create)")
    print_line(f"{pods:>8}{watchers:>10}{figure.per_second:>12.0f}{figure.server_micros:>12.0f}")
