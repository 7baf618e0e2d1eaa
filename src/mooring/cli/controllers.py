"""`mooring controllers`: keeps the status of PodGroups and ElasticQuotas, and reports objects that cannot work."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import click

from mooring.base.clock import SystemClock
from mooring.cli.common import verbosity_option
from mooring.cli.election import election_of, election_options, fence_of, leadership, leads
from mooring.cli.goflags import VerbosityCommand
from mooring.cli.gotypes import Flag
from mooring.cli.output import print_line
from mooring.cli.serving import health_server, port_option
from mooring.cli.stopping import Stop, run_until_signalled

if TYPE_CHECKING:
    from mooring.scheduler.election.leadership import Leadership
    from mooring.scheduler.serving.health import Check

LEASE = COMPONENT = "mooring-controllers"


@click.command(cls=VerbosityCommand)
@click.option(
    "--kubeconfig",
    cls=Flag,
    metavar="FILE",
    help="How to reach the API server; wins over $KUBECONFIG, in-cluster and ~/.kube/config.",
)
@click.option("--context", cls=Flag, metavar="NAME", help="Another context of the kubeconfig than the current one.")
@port_option(0, "health checks (/livez, /readyz)")
@election_options
@verbosity_option
def controllers(kubeconfig: str | None, context: str | None, secure_port: int, **flags: Any) -> None:
    """Keep the status of PodGroups and ElasticQuotas, and report what cannot work, until Ctrl-C.

    Schedulers do not need it; people and workload controllers read it. A controller begins once its kind is
    installed. Of several replicas one writes: that which holds the lease mooring-controllers. `mooring up` and
    `mooring cluster` run them already; elsewhere, `mooring manifests --controllers` writes what is needed.

    \b
    Example:
      mooring controllers --kubeconfig dev.kubeconfig
    """
    from mooring.config.model import LeaderElection

    election = election_of(LeaderElection(resource_name=LEASE), flags)

    async def main(stop: Stop) -> None:
        from mooring.client import ApiClient, find_connection
        from mooring.controllers import Controllers
        from mooring.scheduler.election.side_thread import in_thread

        connection = find_connection(kubeconfig=kubeconfig, context=context)
        fence = fence_of(election)
        async with contextlib.AsyncExitStack() as stack:
            client = await stack.enter_async_context(ApiClient(connection, fence=fence))
            leader = None if fence is None else leadership(election, connection, fence, component=COMPONENT)
            if (server := health_server(secure_port, _checks(leader, stop))) is not None:
                await asyncio.to_thread(server.start)
                stack.push_async_callback(in_thread, server.stop)
            if leader is not None:
                # After the last write: a leader must have stopped when it releases the lease.
                stack.push_async_callback(in_thread, leader.stop)
            ended = asyncio.create_task(stop.wait())
            stack.callback(ended.cancel)
            if not await leads(leader, [ended], f"control PodGroups and ElasticQuotas on {connection.address}"):
                return
            running = Controllers(client, clock=SystemClock())
            stack.push_async_callback(running.stop)
            running.start()
            print_line(f"Ready: controllers of PodGroups and ElasticQuotas on {connection.address}")
            await ended

    run_until_signalled(main)


def _checks(leader: Leadership | None, stop: Stop) -> dict[str, dict[str, Check]]:
    """By endpoint. Read on another thread."""

    def shutdown() -> str | None:
        return "the controllers are stopping" if stop.is_set() else None

    election: dict[str, Check] = {} if leader is None else {"leaderElection": leader.problem}
    return {"healthz": election, "livez": {}, "readyz": {**election, "shutdown": shutdown}}
