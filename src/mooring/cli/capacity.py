"""`mooring capacity`: the fewest nodes to add so that a whole workload is placed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mooring.cli.cluster_source import (
    ClusterSource,
    cluster_source_options,
    config_option,
    output_option,
    print_notes,
)
from mooring.cli.common import gates_option, load, plugins_option, registry_with, verbosity_option
from mooring.cli.goflags import VerbosityCommand
from mooring.cli.output import counted, print_json, print_line, print_table

if TYPE_CHECKING:
    from mooring.framework.gates import FeatureGates
    from mooring.simulator import CapacityPlan, CapacityResult
    from mooring.simulator.planning.capacity import CapacityTrial, UnplacedPod

DOES_NOT_SUFFICE = 1
MOST_PODS = 10
"""So many are listed; `-o json` has more."""
BOTH = "with and without preemption"
"""No pod has a higher priority than another."""


@click.command(cls=VerbosityCommand)
@click.argument("workload", required=False)
@click.option(
    "--node",
    "templates",
    multiple=True,
    required=True,
    metavar="TEMPLATE",
    help="A kind of node to add: cpu=8,memory=32Gi, or like:NODE of the cluster, or a file with one Node or "
    "SimulatedNodes. May be given several times.",
)
@click.option(
    "--cost",
    "costs",
    multiple=True,
    type=float,
    metavar="NUMBER",
    help="What a node costs, once for each --node, in their order: the cheapest nodes instead of the fewest.",
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="NAME=COLUMN",
    help="Which column of a trace has what, where its name is another; may be given several times.",
)
@click.option("--pending", is_flag=True, help="Also place the pods that are pending in the cluster.")
@click.option(
    "--max-wait",
    type=click.FloatRange(min=0),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="A pod is placed if it is bound so soon after its arrival.",
)
@click.option(
    "--proofs",
    type=click.IntRange(min=0),
    default=32,
    show_default=True,
    metavar="N",
    help="Simulations to prove that nothing cheaper suffices, at most.",
)
@cluster_source_options
@config_option
@plugins_option
@gates_option
@output_option
@verbosity_option
def capacity(
    workload: str | None,
    templates: tuple[str, ...],
    costs: tuple[float, ...],
    columns: tuple[str, ...],
    pending: bool,
    max_wait: float,
    proofs: int,
    source: ClusterSource,
    config_file: str | None,
    plugins: tuple[str, ...],
    gates: FeatureGates,
    output: str,
) -> int:
    """Find the fewest nodes to add to a cluster so that every pod of WORKLOAD is placed.

    WORKLOAD is a file of manifests or a trace, as of `mooring simulate`; with --pending it may be left out. Each number
    of nodes is tried by a simulation, without preemption and with it; DaemonSets of the cluster run on new nodes, too.
    Nothing is written to the cluster. Exit code 1: not everything can be placed without preemption.

    \b
    Example:
      mooring capacity jobs.yaml --node cpu=8,memory=32Gi
      mooring capacity trace.csv --cluster prod.snapshot --node like:node-7 --node gpu.yaml --cost 0.4 --cost 3.1
    """
    from mooring.cli.workload_options import mapped_columns
    from mooring.simulator import Workload
    from mooring.simulator import capacity as run

    if workload is None and not pending:
        raise click.UsageError("Name a WORKLOAD, or place the pods of the cluster with --pending.")
    if costs and len(costs) != len(templates):
        raise click.UsageError(f"{len(templates)} --node and {len(costs)} --cost: give one cost for each kind of node.")
    registry = registry_with(plugins)
    configuration = load(config_file, registry, gates)
    cluster = source.read([configuration], registry)
    arrivals = (
        Workload.read(workload, cluster=cluster, columns=mapped_columns(columns))
        if workload is not None
        else Workload([])
    )
    print_notes(arrivals.notes)
    try:
        result = run(
            cluster,
            arrivals,
            templates,
            configuration,
            costs=costs or None,
            pending=pending,
            max_wait=max_wait,
            proofs=proofs,
            registry=registry,
            gates=gates,
            outside_data=source.outside_data(cluster, configuration, registry, gates),
            progress=_show_progress,
        )
    except KeyboardInterrupt as interrupted:
        raise click.Abort from interrupted
    print_notes(result.notes)
    if output == "json":
        import msgspec

        document: dict[str, Any] = msgspec.to_builtins(result)
        print_json({"suffices": result.suffices, **document})
    else:
        _print(result, has_costs=bool(costs))
    return 0 if result.suffices else DOES_NOT_SUFFICE


def _show_progress(trial: CapacityTrial) -> None:
    nodes = ", ".join(f"{count:,} × {kind}" for kind, count in trial.nodes.items() if count) or "no nodes"
    print_line(f"Simulated with {nodes}: {counted(trial.unplaced, 'pod')} not placed", err=True)


def _print(result: CapacityResult, *, has_costs: bool) -> None:
    if not result.suffices and result.unfit:
        print_line(f"No number of these nodes places all {counted(result.pods, 'pod')}.")
        if result.impossible:
            _print_unplaced("Fits neither into the cluster nor on an empty node of any kind", result.impossible)
        else:
            _print_unplaced("Fits on no node that is added, even if it is empty", result.unfit)
    plans = {"without preemption": result.without_preemption, "with preemption": result.with_preemption}
    if result.with_preemption is result.without_preemption:
        plans = {BOTH: result.without_preemption}
    found = {name: plan for name, plan in plans.items() if plan is not None}
    if not found:
        return
    first = next(iter(found.values()))
    rows = [["nodes to add", *(_total(plan) for plan in found.values())]]
    if len(first.trial.nodes) > 1:
        rows += [[f"  {kind}", *(_count(plan, kind) for plan in found.values())] for kind in first.trial.nodes]
    if has_costs:
        rows.append(["cost", *(f"{plan.cost:g}" if plan.suffices else "-" for plan in found.values())])
    rows += [
        ["pods placed", *(f"{result.pods - plan.trial.unplaced:,} of {result.pods:,}" for plan in found.values())],
        ["pods evicted", *(f"{len(plan.trial.evicted):,}" for plan in found.values())],
        ["proven minimal", *(_proof(plan) for plan in found.values())],
        ["lower bound", *(f"{plan.least:,}, by the sum of requests" for plan in found.values())],
        ["simulations", *(f"{plan.runs:,}" for plan in found.values())],
    ]
    print_table("Fewest nodes to add" if not has_costs else "Cheapest nodes to add", ["", *found], rows)
    for name, plan in found.items():
        if not plan.suffices:
            added = f"with {counted(plan.total, 'node')} more" if plan.total else "with the nodes that there are"
            _print_unplaced(f"Not placed {name}, {added}", plan.trial.examples)
        for trial in plan.one_fewer:
            nodes = ", ".join(f"{count:,} × {kind}" for kind, count in trial.nodes.items())
            print_line(f"With one fewer, {name} ({nodes}): {counted(trial.unplaced, 'pod')} not placed.")
            if trial.examples:
                print_line(f"  {trial.examples[0].pod}: {trial.examples[0].message}")
        if plan.trial.evicted:
            print_table(f"Evicted {name}", ["pod"], [[key] for key in plan.trial.evicted[:MOST_PODS]])


def _total(plan: CapacityPlan) -> str:
    return f"{plan.total:,}" if plan.suffices else "none found"


def _count(plan: CapacityPlan, kind: str) -> str:
    return f"{plan.trial.nodes[kind]:,}"


def _proof(plan: CapacityPlan) -> str:
    if not plan.suffices:
        return "-"
    return "yes" if plan.is_proven else "no, but one fewer does not suffice"


def _print_unplaced(title: str, pods: list[UnplacedPod]) -> None:
    print_table(title, ["pod", "why"], [[pod.pod, pod.message] for pod in pods[:MOST_PODS]])
    if len(pods) > MOST_PODS:
        print_line(f"… and {len(pods) - MOST_PODS:,} more; -o json lists them.")
