"""`mooring nodes`: simulated nodes for an API server that has none, or too few: a real one, without machines."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from mooring.base.clock import SystemClock
from mooring.base.errors import OperatorMistake
from mooring.cli.cluster import initial_objects, mistakes_in
from mooring.cli.common import gates_option, verbosity_option
from mooring.cli.goflags import VerbosityCommand
from mooring.cli.output import print_line
from mooring.cli.stopping import run_until_signalled

if TYPE_CHECKING:
    from mooring.framework.gates import FeatureGates


@click.command(cls=VerbosityCommand)
@click.option(
    "--kubeconfig",
    metavar="FILE",
    help="How to reach the API server; wins over $KUBECONFIG, in-cluster and ~/.kube/config.",
)
@click.option("--nodes", type=click.IntRange(0, 20_000), metavar="N", help="Nodes node-1 … node-N.  [default: 3]")
@click.option("--cluster", "cluster_file", metavar="FILE", help="A file of nodes and other objects to create.")
@click.option(
    "--controllers",
    is_flag=True,
    help="Also act for workloads (Deployments, StatefulSets, DaemonSets, Jobs, CronJobs), volume and device claims, "
    "where no controller manager runs.",
)
@gates_option
@verbosity_option
def nodes(
    kubeconfig: str | None, nodes: int | None, cluster_file: str | None, controllers: bool, gates: FeatureGates
) -> None:
    """Create simulated nodes on any API server and act as their kubelets, until Ctrl-C.

    Nodes that exist already stay as they are; only those with the annotation mooring.dev/simulated are
    simulated. At the end the nodes stay: kubectl delete node removes them. Feature gates are those of the controllers.

    \b
    Example:
      mooring nodes --kubeconfig dev.kubeconfig --nodes 5
    """
    initial = initial_objects(nodes, cluster_file)
    if initial.restored:
        raise OperatorMistake(
            f"{cluster_file} holds objects with a uid or a resource version, as an API server wrote them: only an "
            "embedded cluster can restore them. Use mooring up or mooring cluster, or remove those fields."
        )

    async def main(stop: asyncio.Event) -> None:
        from mooring.client import ApiClient, find_connection
        from mooring.simulated.cluster import SimulatedCluster

        connection = find_connection(kubeconfig=kubeconfig)
        async with ApiClient(connection) as client:
            simulated = SimulatedCluster(
                client,
                clock=SystemClock(),
                all_nodes_are_simulated=False,
                controllers=controllers,
                features=gates.enabled(),
            )
            with mistakes_in(cluster_file):
                await simulated.start(initial)
            print_line(f"Ready: {len(initial.nodes)} simulated nodes on {connection.address}")
            await stop.wait()
            await simulated.stop()

    run_until_signalled(main)
