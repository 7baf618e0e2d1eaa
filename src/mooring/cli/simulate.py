"""`mooring simulate`: a workload on a cluster, with one configuration or several, on virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mooring.cli.cluster import DEFAULT_NODES
from mooring.cli.cluster_source import ClusterSource, cluster_source_options
from mooring.cli.common import gates_option, load, plugins_option, registry_with, verbosity_option
from mooring.cli.goflags import VerbosityCommand
from mooring.cli.recording import recording_flags, recording_options, recording_to
from mooring.cli.run import attempt_timeout_option
from mooring.cli.simulation_outputs import SimulationOutputs, output_options
from mooring.cli.simulation_run import run_each
from mooring.cli.workload_options import WorkloadSource, workload_options

if TYPE_CHECKING:
    from mooring.framework.gates import FeatureGates

DEFAULT_CONFIGURATION = "default"
MOST_RECORDED_ITEMS = 1_000_000
"""That the writer may be behind: a simulation is faster than a cluster, and its pods are in memory anyway."""


@click.command(cls=VerbosityCommand)
@cluster_source_options
@workload_options
@click.option(
    "--config",
    "configurations",
    multiple=True,
    metavar="FILE",
    help="A KubeSchedulerConfiguration; several are compared.  [default: the default profile]",
)
@plugins_option
@gates_option
@attempt_timeout_option
@recording_options
@output_options
@verbosity_option
def simulate(
    source: ClusterSource,
    pods: WorkloadSource,
    configurations: tuple[str, ...],
    plugins: tuple[str, ...],
    gates: FeatureGates,
    attempt_timeout: float,
    output: str,
    pods_file: str | None,
    timeline_file: str | None,
    html_file: str | None,
    **flags: Any,
) -> None:
    """Simulate a workload on a cluster, without an API server and in a fraction of its time.

    The scheduler's own queue, plugins, preemption and retries run on virtual time; requests take none. Nothing is
    written to any cluster. Ctrl-C prints what was computed so far. Several configurations are compared: which pods go
    elsewhere, and which plugin moved them. Without --cluster, --kubeconfig or --context there are three plain nodes.

    \b
    Example:
      mooring simulate --nodes 10 --workload deployment.yaml
      mooring simulate --cluster prod.snapshot --workload trace.csv --config now.yaml --config next.yaml
      mooring simulate --kubeconfig prod.kubeconfig --workload trace.csv --html report.html --pods pods.parquet
    """
    outputs = SimulationOutputs(output, pods_file, timeline_file, html_file)
    if not pods.is_given:
        raise click.UsageError("Name the pods either by --workload FILE or by --generate-pods N.")
    recording = recording_flags(flags)
    if recording.file is not None and len(configurations) > 1:
        raise click.UsageError("--record is of one run: give one --config; `mooring replay` compares with others.")
    registry = registry_with(plugins)
    loaded = {path: load(path, registry, gates) for path in configurations} or {
        DEFAULT_CONFIGURATION: load(None, registry, gates)
    }
    cluster = source.read(list(loaded.values()), registry, default_nodes=DEFAULT_NODES)
    workload = pods.read(cluster)
    with recording_to(recording, "a simulation", most_items=MOST_RECORDED_ITEMS, is_simulation=True) as recorder:
        results = run_each(cluster, workload, loaded, registry, gates, attempt_timeout, recorder)
        # Before the recording ends: what was computed is seen, also where the disk is full.
        outputs.write(results, f"Simulation of {pods}")
