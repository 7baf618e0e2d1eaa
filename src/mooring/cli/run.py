"""`mooring run`: the scheduler alone, against any API server, with kube-scheduler's command line."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from mooring.base.errors import OperatorMistake, Problem
from mooring.base.log import Log
from mooring.cli.common import load, plugins_option, registry_with, run_until_signalled, verbosity_option
from mooring.cli.goflags import GoBool, GoDuration, KubeSchedulerCommand

if TYPE_CHECKING:
    from mooring.client import Connection
    from mooring.config import Configuration
    from mooring.framework.registry import Registry

_log = Log("mooring")


@click.command(cls=KubeSchedulerCommand)
@click.option("--config", "config_file", metavar="FILE", help="A KubeSchedulerConfiguration; without it, the defaults.")
@plugins_option
@click.option(
    "--kubeconfig",
    metavar="FILE",
    help="How to reach the API server; wins over the configuration file, $KUBECONFIG, in-cluster and ~/.kube/config.",
)
@click.option("--leader-elect", type=GoBool(), default=None, metavar="BOOL", help="Only false, so far.")
@click.option(
    "--pod-max-in-unschedulable-pods-duration",
    "max_unschedulable",
    type=GoDuration(),
    default="5m",
    show_default=True,
    metavar="DURATION",
    help="After this long an unschedulable pod is tried again in any case.",
)
@verbosity_option
def run(
    config_file: str | None,
    plugins: tuple[str, ...],
    kubeconfig: str | None,
    leader_elect: bool | None,
    max_unschedulable: float,
) -> None:
    """Run the scheduler against an API server, until Ctrl-C or SIGTERM.

    \b
    Example:
      mooring run --config scheduler.yaml --plugins my_plugin.py -v=2
    """
    registry = registry_with(plugins)
    configuration = load(config_file, registry)
    check_leader_election(configuration, leader_elect)
    check_extenders(configuration)

    async def main(stop: asyncio.Event) -> None:
        from mooring.client import find_connection

        connection = find_connection(
            kubeconfig=kubeconfig, config_kubeconfig=configuration.client_connection.kubeconfig or None
        )
        await schedule(connection, configuration, registry, stop, max_unschedulable_seconds=max_unschedulable)

    run_until_signalled(main)


async def schedule(
    connection: Connection,
    configuration: Configuration,
    registry: Registry,
    stop: asyncio.Event,
    *,
    max_unschedulable_seconds: float = 300.0,
    died: asyncio.Task[None] | None = None,
) -> None:
    """Run a scheduler there until `stop` is set (or `died` fails), saying when it is ready."""
    from mooring.client import ApiClient
    from mooring.scheduler import Scheduler

    limits = configuration.client_connection
    async with ApiClient(connection, qps=limits.qps, burst=limits.burst) as client:
        scheduler = Scheduler(client, configuration, registry, max_unschedulable_seconds=max_unschedulable_seconds)
        running = asyncio.create_task(scheduler.run())
        ready = asyncio.create_task(scheduler.ready.wait())
        ended = asyncio.create_task(stop.wait())
        ends = [running, ended] + ([died] if died is not None else [])
        await asyncio.wait([ready, *ends], return_when=asyncio.FIRST_COMPLETED)
        if ready.done():
            names = ", ".join(profile.scheduler_name for profile in configuration.profiles)
            click.echo(f"Ready: scheduling for {names} on {connection.server}")
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        ended.cancel()
        scheduler.stop()
        if died is not None and died.done():
            running.cancel()
            await asyncio.wait([running])
            await died
        await running


def check_leader_election(configuration: Configuration, flag: bool | None) -> None:
    """One instance only, so far: asked for, it is refused; defaulted, it warns."""
    election = configuration.leader_election
    if flag or (flag is None and election.leader_elect and election.explicit):
        where = "--leader-elect" if flag else "leaderElection.leaderElect"
        raise OperatorMistake(
            "leader election is not there yet.",
            [Problem(where, "set it to false and run one instance; two would both bind pods")],
        )
    if flag is None and election.leader_elect:
        _log.warning(
            "leaderElection.leaderElect defaults to true, but there is no leader election yet: run one instance only, "
            "and say so with leaderElect: false"
        )


def check_extenders(configuration: Configuration) -> None:
    """A configured extender that nobody asks would change decisions silently."""
    if configuration.extenders:
        raise OperatorMistake(
            "extenders are not there yet.",
            [Problem("extenders", "remove them, or write what they do as a plugin (see docs/writing-plugins.md)")],
        )
