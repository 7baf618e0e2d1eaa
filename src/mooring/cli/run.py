"""`mooring run`: the scheduler alone, against any API server, with kube-scheduler's command line."""

from __future__ import annotations

import asyncio
import contextlib
import math
import signal
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from mooring.base.durations import go_duration
from mooring.base.memory import collect_rarely, keep_collector_calm
from mooring.cli.common import (
    gates_option,
    load,
    plugins_option,
    registry_with,
    verbosity_option,
)
from mooring.cli.configuration_flags import write_configuration
from mooring.cli.election import fence_of, leadership, leads
from mooring.cli.goflags import KubeSchedulerCommand
from mooring.cli.gotypes import Flag, GoDuration
from mooring.cli.kube_flags import KubeFlags, kube_scheduler_options
from mooring.cli.output import print_line
from mooring.cli.output_files import refuse_lost_files
from mooring.cli.recording import NO_RECORDING, RecordingFlags, recording_flags, recording_options, recording_to
from mooring.cli.reload import ReloadSource, reload_flags, reload_options, reloading
from mooring.cli.serving import ServingFlags, secure_server
from mooring.cli.shadow import Role, decided_with, shadow_flags, shadow_options, shadowing
from mooring.cli.stopping import WARN_SHARE, Stop, run_until_signalled
from mooring.cli.tracing import tracer_of, tracing_option, tracing_options

if TYPE_CHECKING:
    from mooring.client import Connection
    from mooring.config import Configuration
    from mooring.config.model import LeaderElection
    from mooring.framework.gates import FeatureGates
    from mooring.framework.registry import Registry
    from mooring.scheduler.election.leadership import Leadership
    from mooring.scheduler.metrics.tracing import TracingOptions

NOT_SERVING = ServingFlags()


def _not_negative(ctx: click.Context, parameter: click.Parameter, seconds: float) -> float:
    if seconds < 0:
        raise click.BadParameter(f"must not be negative, got {go_duration(seconds)}", ctx, parameter)
    return seconds


attempt_timeout_option = click.option(
    "--attempt-timeout",
    cls=Flag,
    type=GoDuration(),
    default="5s",
    show_default=True,
    metavar="DURATION",
    callback=_not_negative,
    help="How long plugins may compute about one pod before it is set aside; 0 is no limit.",
)


verify_every_option = click.option(
    "--verify-every",
    cls=Flag,
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Take every Nth decision again without cached results and compare; 0 is never. Differences are logged.",
)


def _no_limit_if_zero(ctx: click.Context, parameter: click.Parameter, seconds: float) -> float:
    return _not_negative(ctx, parameter, seconds) or math.inf


shutdown_timeout_option = click.option(
    "--shutdown-timeout",
    cls=Flag,
    type=GoDuration(),
    default="3s",
    show_default=True,
    metavar="DURATION",
    callback=_no_limit_if_zero,
    help="After Ctrl-C or SIGTERM: how long plugins may hold up the end before it comes without them; 0 is no limit.",
)


@click.command(cls=KubeSchedulerCommand)
@click.option(
    "--config", "config_file", cls=Flag, metavar="FILE", help="A KubeSchedulerConfiguration; without it, the defaults."
)
@plugins_option
@gates_option
@click.option(
    "--kubeconfig",
    cls=Flag,
    metavar="FILE",
    help="How to reach the API server; wins over the configuration file, $KUBECONFIG, in-cluster and ~/.kube/config.",
)
@click.option(
    "--pod-max-in-unschedulable-pods-duration",
    "max_unschedulable",
    cls=Flag,
    type=GoDuration(),
    default="5m",
    show_default=True,
    metavar="DURATION",
    help="After this long an unschedulable pod is tried again in any case.",
)
@attempt_timeout_option
@verify_every_option
@shutdown_timeout_option
@reload_options(by_signal=True)
@shadow_options
@recording_options
@tracing_option
@kube_scheduler_options
@verbosity_option
def run(
    config_file: str | None,
    plugins: tuple[str, ...],
    gates: FeatureGates,
    kubeconfig: str | None,
    max_unschedulable: float,
    attempt_timeout: float,
    verify_every: int,
    shutdown_timeout: float,
    tracing_endpoint: str,
    **flags: Any,
) -> None:
    """Run the scheduler against an API server, until Ctrl-C or SIGTERM.

    \b
    Example:
      mooring run --config scheduler.yaml --plugins my_plugin.py -v=2
    """
    collect_rarely()
    shadow = shadow_flags(flags)
    tracing = tracing_options(tracing_endpoint)
    recording = recording_flags(flags)
    files = reload_flags(flags, config_file, plugins)
    registry = registry_with(plugins)
    kube = KubeFlags.taken_from(flags, gates)

    def configured(registry: Registry) -> Configuration:
        loaded = decided_with(load(config_file, registry, gates), shadow)
        return kube.applied_to(loaded, config_file, kubeconfig)

    configuration = configured(registry)
    if kube.configuration.write_config_to:
        refuse_lost_files(click.get_current_context())
        write_configuration(configuration, kube.configuration.write_config_to)
        return

    async def main(stop: Stop) -> None:
        connection = kube.connection(configuration)
        async with shadowing(shadow) as role:
            await schedule(
                connection,
                configuration,
                registry,
                stop,
                gates=gates,
                max_unschedulable_seconds=max_unschedulable,
                attempt_timeout_seconds=attempt_timeout,
                verify_every=verify_every,
                serving=kube.serving,
                election=configuration.leader_election if shadow is None else None,
                role=role,
                source=ReloadSource(files, registry, configured) if shadow is None else None,
                tracing=tracing,
                recording=recording,
            )

    run_until_signalled(main, shutdown_timeout)


async def schedule(
    connection: Connection,
    configuration: Configuration,
    registry: Registry,
    stop: Stop,
    *,
    gates: FeatureGates | None = None,
    max_unschedulable_seconds: float = 300.0,
    attempt_timeout_seconds: float = 5.0,
    verify_every: int = 0,
    serving: ServingFlags = NOT_SERVING,
    election: LeaderElection | None = None,
    died: asyncio.Task[None] | None = None,
    role: Role | None = None,
    source: ReloadSource | None = None,
    tracing: TracingOptions | None = None,
    recording: RecordingFlags = NO_RECORDING,
) -> None:
    """Run a scheduler there until `stop` is set (or `died` fails), and report when it is ready.

    `source` is where another configuration may come from while it runs.
    """
    from mooring.base.clock import SystemClock
    from mooring.engine import time_budget
    from mooring.framework.gates import FeatureGates
    from mooring.scheduler.cycle.background_tasks import BackgroundTasks
    from mooring.scheduler.election.side_thread import in_thread
    from mooring.scheduler.metrics import SchedulerMetrics

    role = role or Role.ordinary()
    limits = configuration.client_connection
    fence = fence_of(election)
    gates = gates or FeatureGates()
    async with contextlib.AsyncExitStack() as stack:
        tracer = stack.enter_context(tracer_of(tracing))
        metrics = SchedulerMetrics(gates, SystemClock(), tracer)
        if tracer is not None:
            metrics.registry.register(tracer.dropped)
        client = await stack.enter_async_context(
            role.client(connection, qps=limits.qps, burst=limits.burst, fence=fence, observer=metrics.requests)
        )
        recorder = stack.enter_context(recording_to(recording, connection.address))
        leader: Leadership | None = None

        async def may_schedule() -> None:
            if leader is not None:
                await leader.wait()

        scheduler = role.scheduler(
            client,
            configuration,
            registry,
            gates=gates,
            metrics=metrics,
            max_unschedulable_seconds=max_unschedulable_seconds,
            attempt_timeout_seconds=attempt_timeout_seconds,
            verify_every=verify_every,
            shutdown_seconds=stop.seconds,
            may_schedule=may_schedule,
            recorder=recorder,
        )
        stop.at_signal(partial(time_budget.interrupt_after, stop.seconds * WARN_SHARE))
        stack.enter_context(stop.last_step(scheduler.abandon))
        if election is not None and fence is not None:
            leader = leadership(election, connection, fence, scheduler.metrics)
        server = secure_server(serving, scheduler, leader, connection if serving.is_own_cluster else None)
        if server is not None:
            await asyncio.to_thread(server.start)
            stack.push_async_callback(in_thread, server.stop)
        if leader is not None:
            # After the last binding, not before: a leader must have stopped when it releases the lease.
            stack.push_async_callback(in_thread, leader.stop)
            stack.enter_context(stop.last_step(leader.abandon))
        inspections = BackgroundTasks()

        def inspect() -> None:
            inspections.start(scheduler.inspect(), "inspect")

        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, inspect)
        running = asyncio.create_task(scheduler.run())
        ended = asyncio.create_task(stop.wait())
        ends = [running, ended] + ([died] if died is not None else [])
        names = ", ".join(profile.scheduler_name for profile in configuration.profiles)
        async with reloading(scheduler, source):
            is_ready = await _came(scheduler.ready, ends)
            keep_collector_calm()
            if is_ready and await leads(leader, ends, f"schedule for {names} on {connection.address}"):
                print_line(f"Ready: {role.doing} {names} on {connection.address}")
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        scheduler.stop()
        if died is not None and died.done():
            running.cancel()
            await asyncio.wait([running])
            await died
        await running


async def _came(event: asyncio.Event, ends: list[asyncio.Task[Any]]) -> bool:
    """Wait for an event; False if the end came first."""
    coming = asyncio.create_task(event.wait())
    await asyncio.wait([coming, *ends], return_when=asyncio.FIRST_COMPLETED)
    coming.cancel()
    return event.is_set()
