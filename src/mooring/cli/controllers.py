"""`mooring controllers`: keeps the status of PodGroups and ElasticQuotas, on any API server."""

from __future__ import annotations

import asyncio

import click

from mooring.base.clock import SystemClock
from mooring.cli.common import verbosity_option
from mooring.cli.goflags import VerbosityCommand
from mooring.cli.output import print_line
from mooring.cli.stopping import run_until_signalled


@click.command(cls=VerbosityCommand)
@click.option(
    "--kubeconfig",
    metavar="FILE",
    help="How to reach the API server; wins over $KUBECONFIG, in-cluster and ~/.kube/config.",
)
@click.option("--context", metavar="NAME", help="Another context of the kubeconfig than the current one.")
@verbosity_option
def controllers(kubeconfig: str | None, context: str | None) -> None:
    """Keep the status of PodGroups and ElasticQuotas (scheduling.x-k8s.io), until Ctrl-C.

    Schedulers do not need it; people and workload controllers read it. A controller begins once its kind is
    installed. `mooring up` runs them already; in a cluster run one: `mooring manifests --controllers` writes what is
    needed.

    \b
    Example:
      mooring controllers --kubeconfig dev.kubeconfig
    """

    async def main(stop: asyncio.Event) -> None:
        from mooring.client import ApiClient, find_connection
        from mooring.controllers import Controllers

        connection = find_connection(kubeconfig=kubeconfig, context=context)
        async with ApiClient(connection) as client:
            running = Controllers(client, clock=SystemClock())
            running.start()
            print_line(f"Ready: controllers of PodGroups and ElasticQuotas on {connection.address}")
            await stop.wait()
            await running.stop()

    run_until_signalled(main)
