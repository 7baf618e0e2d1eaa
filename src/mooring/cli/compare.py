"""`mooring compare`: what changes if one configuration is replaced by another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mooring.base.errors import OperatorMistake
from mooring.cli.cluster_source import ClusterSource, cluster_source_options
from mooring.cli.common import gates_option, load, plugins_option, registry_with, verbosity_option
from mooring.cli.goflags import VerbosityCommand
from mooring.cli.run import attempt_timeout_option
from mooring.cli.simulation_outputs import SimulationOutputs, output_options
from mooring.cli.simulation_run import run_each
from mooring.cli.workload_options import WorkloadSource, workload_options

if TYPE_CHECKING:
    from mooring.framework.gates import FeatureGates


@click.command(cls=VerbosityCommand)
@click.argument("configurations", nargs=-1, required=True, metavar="A.yaml B.yaml")
@cluster_source_options
@workload_options
@click.option(
    "--reschedule",
    is_flag=True,
    help="Also take the pods of the cluster off their nodes, but those of DaemonSets and static pods.",
)
@plugins_option
@gates_option
@attempt_timeout_option
@output_options
@verbosity_option
def compare(
    configurations: tuple[str, ...],
    source: ClusterSource,
    pods: WorkloadSource,
    reschedule: bool,
    plugins: tuple[str, ...],
    gates: FeatureGates,
    attempt_timeout: float,
    output: str,
    pods_file: str | None,
    timeline_file: str | None,
    html_file: str | None,
) -> None:
    """Show which pods go elsewhere with B.yaml than with A.yaml, and which plugin moves them.

    Both are simulated on the same cluster with the same pods. Each decision that differs is taken once more by A.yaml
    on the cluster as it is with B.yaml at that moment: so a move by a plugin is kept apart from one that follows from
    earlier placements. More configurations are compared with the first as well. "default" is the default profile.
    Without --workload, the pending pods of the cluster are scheduled. Nothing is written to it.

    \b
    Example:
      mooring compare now.yaml next.yaml --context production
      mooring compare now.yaml next.yaml --cluster prod.snapshot --workload trace.csv
      mooring compare default packing.yaml --cluster prod.snapshot --reschedule --html report.html
    """
    from mooring.simulator.rescheduling import unplaced

    if len(configurations) < 2:
        raise OperatorMistake(f"{configurations[0]} is compared with nothing: name two configurations or more.")
    if len(set(configurations)) < len(configurations):
        raise OperatorMistake("A configuration is named twice: name two that differ.")
    outputs = SimulationOutputs(output, pods_file, timeline_file, html_file)
    registry = registry_with(plugins)
    loaded = {path: load(None if path == "default" else path, registry, gates) for path in configurations}
    cluster = source.read(list(loaded.values()), registry)
    if reschedule:
        cluster = unplaced(cluster)
    if not pods.is_given and all(pod.spec.node_name for pod in cluster.pods):
        raise OperatorMistake(
            "There are no pods to schedule: the cluster has no pending ones. Add --workload FILE, or --reschedule to "
            "take its pods off their nodes."
        )
    outputs.write(
        run_each(cluster, pods.read(cluster), loaded, registry, gates, attempt_timeout),
        f"Comparison of {' and '.join(configurations)}",
    )
