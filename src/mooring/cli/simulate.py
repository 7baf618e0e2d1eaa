"""`mooring simulate`: a workload on a cluster, with one configuration or several, on virtual time."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mooring.base.errors import OperatorMistake, Problem
from mooring.cli.cluster import check_one_source, initial_objects, load_file, with_default_storage
from mooring.cli.common import gates_option, load, plugins_option, registry_with, verbosity_option
from mooring.cli.goflags import VerbosityCommand
from mooring.cli.output import print_json, print_line, print_table

if TYPE_CHECKING:
    from mooring.apiserver import EmbeddedApiServer
    from mooring.framework.gates import FeatureGates
    from mooring.simulator import Arrival, Cluster, SimulationResult

DEFAULT_CONFIGURATION = "default"
SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
MOST_REASONS, MOST_MOVED = 5, 10
PROGRESS_SECONDS = 1.0


@click.command(cls=VerbosityCommand)
@click.option("--cluster", "cluster_file", metavar="FILE", help="A cluster file or a snapshot.")
@click.option("--nodes", type=click.IntRange(1, 20_000), metavar="N", help="Nodes node-1 … node-N.  [default: 3]")
@click.option(
    "--workload",
    "workload_file",
    required=True,
    metavar="FILE",
    help="Manifests (YAML or JSON) whose pods all arrive at the beginning, or a trace (CSV) with a row for each pod.",
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="NAME=COLUMN",
    help="Which column of a trace has what, where its name is another; may be given several times.",
)
@click.option(
    "--config",
    "configurations",
    multiple=True,
    metavar="FILE",
    help="A KubeSchedulerConfiguration; several are compared.  [default: the default profile]",
)
@plugins_option
@gates_option
@click.option("--pods", "pods_file", metavar="FILE", help="Also write a row for each pod and configuration (CSV).")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of tables.")
@verbosity_option
def simulate(
    cluster_file: str | None,
    nodes: int | None,
    workload_file: str,
    columns: tuple[str, ...],
    configurations: tuple[str, ...],
    plugins: tuple[str, ...],
    gates: FeatureGates,
    pods_file: str | None,
    as_json: bool,
) -> None:
    """Simulate a workload on a cluster, without an API server and in a fraction of its time.

    The scheduler's own queue, plugins, preemption and retries run on virtual time; requests take none. Nothing is
    written to any cluster. Ctrl-C prints what was computed so far.

    \b
    Example:
      mooring simulate --nodes 10 --workload deployment.yaml
      mooring simulate --cluster prod.snapshot --workload trace.csv --config now.yaml --config next.yaml
    """
    from mooring.simulator import simulate as run

    check_one_source(nodes, cluster_file)
    cluster, arrivals = _scenario(cluster_file, nodes, workload_file, _mapped(columns))
    registry = registry_with(plugins)
    loaded = {path: load(path, registry, gates) for path in configurations} or {
        DEFAULT_CONFIGURATION: load(None, registry, gates)
    }
    outcomes: dict[str, SimulationResult] = {}
    for name, configuration in loaded.items():
        began, progress = time.process_time(), _Progress(name, len(arrivals))
        outcomes[name] = run(cluster, arrivals, configuration, registry, gates=gates, progress=progress)
        progress.end(time.process_time() - began)
        if outcomes[name].is_interrupted:
            break
    if pods_file is not None:
        _write_pods(pods_file, outcomes)
    if as_json:
        print_json({name: _document(outcome) for name, outcome in outcomes.items()})
    else:
        _print(outcomes)


def _scenario(
    cluster_file: str | None, nodes: int | None, workload_file: str, columns: dict[str, str]
) -> tuple[Cluster, list[Arrival]]:
    from mooring.apiserver import EmbeddedApiServer
    from mooring.base.clock import ManualClock
    from mooring.simulator.manifests import add_workload, cluster_of
    from mooring.simulator.simulation import START
    from mooring.simulator.traces import read_trace

    server: EmbeddedApiServer = EmbeddedApiServer(clock=ManualClock(START))
    if cluster_file is not None:
        load_file(server, cluster_file)
    else:
        server.load(with_default_storage(initial_objects(nodes, None)).in_order())
    before = cluster_of(server)
    try:
        if workload_file.lower().endswith(".csv"):
            with Path(workload_file).open(encoding="utf-8-sig", newline="") as lines:
                return before, read_trace(lines, workload_file, columns)
        text = Path(workload_file).read_bytes()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise OperatorMistake(f"The workload {workload_file} cannot be read: {why}.") from error
    if columns:
        raise OperatorMistake(f"--column is about traces, and {workload_file} is none: its name does not end in .csv.")
    arrivals = add_workload(server, text, workload_file, now=START)
    return before.with_documents(cluster_of(server)), arrivals


def _mapped(columns: Sequence[str]) -> dict[str, str]:
    mapped, problems = {}, []
    for text in columns:
        ours, equals, theirs = text.partition("=")
        if not (ours and equals and theirs):
            problems.append(Problem(f"--column {text}", "must be NAME=COLUMN, as in arrival=submit_time"))
        mapped[ours] = theirs
    if problems:
        raise OperatorMistake.found_in("the command line", problems)
    return mapped


class _Progress:
    """A line on standard error every second of real time."""

    def __init__(self, name: str, pods: int) -> None:
        self._name, self._pods = name, pods
        self._began = self._shown = time.monotonic()

    def __call__(self, arrived: int, seconds: float) -> None:
        now = time.monotonic()
        if now < self._shown + PROGRESS_SECONDS:
            return
        self._shown = now
        rate = arrived / (now - self._began)
        left = (self._pods - arrived) / rate
        shown = f"{arrived:,} of {self._pods:,} pods, {rate:,.0f} pods/s, about {left:.0f} s left"
        print_line(f"{self._name}: {shown} ({_duration(seconds)} simulated)", err=True)

    def end(self, cpu_seconds: float) -> None:
        print_line(f"{self._name}: simulated in {cpu_seconds:.1f} s of CPU time", err=True)


def _print(outcomes: dict[str, SimulationResult]) -> None:
    rows: dict[str, Callable[[SimulationResult], str]] = {
        "pods": lambda each: f"{len(each.pods):,}",
        "bound": lambda each: f"{len(each.bound):,}",
        "never bound": lambda each: f"{len(each.pending):,}",
        **{f"waited {name}": _wait(share) for name, share in SHARES.items()},
        "preempted": lambda each: f"{each.preemptions:,}",
        "attempts": lambda each: f"{each.attempts:,}",
        "last change after": lambda each: _duration(each.ended_at),
    }
    first = next(iter(outcomes.values()))
    for resource in first.use:
        if first.use[resource].peak:
            rows[f"{resource} requested, mean"] = _share(resource, "mean")
            rows[f"{resource} requested, peak"] = _share(resource, "peak")
    table = [[label, *(show(each) for each in outcomes.values())] for label, show in rows.items()]
    print_table("Simulated", ["", *outcomes], table)
    for name, outcome in outcomes.items():
        if outcome.is_interrupted:
            print_line(f"{name} was interrupted after {_duration(outcome.ended_at)}.")
        if reasons := outcome.pending_reasons:
            shown = [[f"{count:,}", why] for why, count in reasons[:MOST_REASONS]]
            print_table(f"Pending with {name}", ["pods", "reason"], shown)
    _print_moved(outcomes)


def _print_moved(outcomes: dict[str, SimulationResult]) -> None:
    (first, reference), *others = outcomes.items()
    for name, outcome in others:
        moved = reference.moved(outcome)
        title = f"On another node with {name} than with {first}: {len(moved):,} of {len(reference.pods):,} pods"
        shown = [[here.key, here.node or "-", there.node or "-"] for here, there in moved[:MOST_MOVED]]
        print_table(title, ["pod", first, name], shown)


def _wait(share: float) -> Callable[[SimulationResult], str]:
    def shown(outcome: SimulationResult) -> str:
        [seconds] = outcome.waited(share)
        return "-" if seconds is None else _duration(seconds)

    return shown


def _share(resource: str, which: str) -> Callable[[SimulationResult], str]:
    # Without time there is no mean: all pods arrived at the beginning, and run for ever.
    return lambda outcome: (
        f"{getattr(outcome.use[resource], which):.1%}" if outcome.ended_at or which == "peak" else "-"
    )


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 86_400 else f"{seconds / 86_400:.1f} d"


def _document(outcome: SimulationResult) -> dict[str, Any]:
    import msgspec

    document: dict[str, Any] = msgspec.to_builtins(outcome)
    summary = {
        "bound": len(outcome.bound),
        "pending": len(outcome.pending),
        "waitedSeconds": dict(zip(SHARES, outcome.waited(*SHARES.values()), strict=True)),
        "pendingReasons": [{"reason": why, "pods": count} for why, count in outcome.pending_reasons],
    }
    return {"summary": summary, **document}


def _write_pods(path: str, outcomes: dict[str, SimulationResult]) -> None:
    from mooring.base.files import write_private

    fields = ("namespace", "name", "arrived_at", "bound_at", "node", "ended_at", "attempts", "is_preempted", "message")
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["configuration", *fields])
    for name, outcome in outcomes.items():
        for pod in outcome.pods:
            writer.writerow([name, *("" if (value := getattr(pod, field)) is None else value for field in fields)])
    try:
        write_private(Path(path), text.getvalue())
    except OSError as error:
        raise OperatorMistake(f"{path} cannot be written: {error.strerror or error}.") from error
