"""`mooring up`: an embedded cluster and a scheduler in the foreground."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mooring.base.log import Log
from mooring.cli.cluster import check_one_source, cluster_options, how_to_point_kubectl
from mooring.cli.common import (
    gates_option,
    load,
    plugins_option,
    registry_with,
    verbosity_option,
)
from mooring.cli.goflags import VerbosityCommand
from mooring.cli.kubeconfig_file import check_writable, remove_ours
from mooring.cli.output import print_lines
from mooring.cli.recording import recording_flags, recording_options
from mooring.cli.reload import ReloadSource, reload_flags, reload_options
from mooring.cli.run import attempt_timeout_option, schedule, shutdown_timeout_option, verify_every_option
from mooring.cli.serving import ServingFlags, port_option
from mooring.cli.stopping import Stop, run_until_signalled
from mooring.cli.tracing import tracing_option, tracing_options
from mooring.framework.gate_table import POD_GROUP_DEPENDENCIES

if TYPE_CHECKING:
    from mooring.config import Configuration
    from mooring.framework.gates import FeatureGates
    from mooring.framework.registry import Registry

_log = Log("mooring")


@click.command(cls=VerbosityCommand)
@cluster_options
@click.option("--config", "config_file", metavar="FILE", help="A KubeSchedulerConfiguration; without it, the defaults.")
@plugins_option
@gates_option
@attempt_timeout_option
@verify_every_option
@shutdown_timeout_option
@reload_options(by_signal=False)
@recording_options
@tracing_option
@port_option(0)
@click.option(
    "--web/--no-web", default=True, show_default=True, help="Serve a page of the cluster, and print its link."
)
@verbosity_option
def up(
    nodes: int | None,
    cluster_file: str | None,
    port: int,
    kubeconfig: Path,
    config_file: str | None,
    plugins: tuple[str, ...],
    gates: FeatureGates,
    attempt_timeout: float,
    verify_every: int,
    shutdown_timeout: float,
    secure_port: int,
    tracing_endpoint: str,
    web: bool,
    **flags: Any,
) -> None:
    """Start an embedded cluster with simulated nodes and run the scheduler on it, until Ctrl-C.

    \b
    Example:
      mooring up --nodes 3 --plugins my_plugin.py --config scheduler.yaml -v 2
      mooring up --plugins my_plugin.py --config scheduler.yaml --watch-config --reload-plugins
    """
    tracing = tracing_options(tracing_endpoint)
    recording = recording_flags(flags)
    # No signal: SIGHUP means that the terminal is gone, and a cluster without a terminal should end with it.
    files = reload_flags(flags, config_file, plugins, by_signal=False)
    registry = registry_with(plugins)

    def configured(registry: Registry) -> Configuration:
        return load(config_file, registry, gates)

    configuration = configured(registry)
    # No other scheduler runs on a cluster that this command creates, unless the file configures one.
    election = configuration.leader_election if configuration.leader_election.explicit else None
    if configuration.client_connection.kubeconfig:
        _log.warning(
            "clientConnection.kubeconfig is not used here: the scheduler runs on the embedded cluster",
            kubeconfig=configuration.client_connection.kubeconfig,
        )
    check_one_source(nodes, cluster_file)
    check_writable(kubeconfig)
    options = [f"--port={port}"]
    options += [f"--nodes={nodes}"] if nodes is not None else []
    options += [f"--cluster={cluster_file}"] if cluster_file is not None else []
    options += [
        f"--feature-gates={name}={on}" for name, on in gates.changed().items() if name in POD_GROUP_DEPENDENCIES
    ]

    # The scheduler's own takes over as soon as it responds: it may reload the file, or keep what the file had.
    of_page = [f"--config={config_file}", "--follow-scheduler"] if config_file is not None else []
    of_page += [f"--recording={recording.file}"] if recording.file is not None else []
    of_page += [f"--plugins={path}" for path in plugins]
    of_page += [f"--feature-gates={name}={str(on).lower()}" for name, on in gates.changed().items()]

    async def main(stop: Stop) -> None:
        from mooring.cli.child_cluster import child_cluster
        from mooring.cli.child_page import child_page

        # Our own code loads while the cluster starts in its process: that takes about as long.
        loading = asyncio.create_task(asyncio.to_thread(importlib.import_module, "mooring.scheduler"))
        async with contextlib.AsyncExitStack() as stack:
            died = await stack.enter_async_context(child_cluster(kubeconfig, options))
            await loading
            from mooring.cli.plugin_definitions import PluginDefinitions
            from mooring.client import load_own_kubeconfig

            connection = load_own_kubeconfig(kubeconfig)
            print_lines(how_to_point_kubectl(kubeconfig))
            definitions = PluginDefinitions(connection)

            def remove_kubeconfig(_seconds: float = 0.0) -> None:
                # The cluster removes its files itself, unless it was killed.
                remove_ours(kubeconfig, connection.token or "")

            with stop.last_step(remove_kubeconfig):
                try:
                    await definitions.install(configuration, registry)
                    serving = ServingFlags(secure_port=secure_port, bind_address="127.0.0.1", is_own_cluster=True)
                    if web:
                        await stack.enter_async_context(child_page(kubeconfig, of_page))
                    await schedule(
                        connection,
                        configuration,
                        registry,
                        stop,
                        gates=gates,
                        attempt_timeout_seconds=attempt_timeout,
                        verify_every=verify_every,
                        serving=serving,
                        election=election,
                        died=died,
                        source=ReloadSource(files, registry, configured, definitions.install)
                        if files.watches
                        else None,
                        tracing=tracing,
                        recording=recording,
                    )
                finally:
                    remove_kubeconfig()

    run_until_signalled(main, shutdown_timeout)
