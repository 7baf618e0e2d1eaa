"""`mooring cluster`: the embedded API server and simulated nodes alone, in this process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mooring.base.clock import SystemClock
from mooring.base.errors import Fault, OperatorMistake, Unreachable
from mooring.cli.common import gates_option, verbosity_option
from mooring.cli.goflags import VerbosityCommand
from mooring.cli.kubeconfig_file import DEFAULT, check_writable, remove_ours, write
from mooring.cli.output import print_line, print_lines
from mooring.cli.stopping import run_until_signalled

if TYPE_CHECKING:
    from mooring.apiserver import EmbeddedApiServer
    from mooring.framework.gates import FeatureGates
    from mooring.simulated.cluster_file import InitialObjects

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_NODES = 3


def cluster_options(command: F) -> F:
    """The options of the embedded cluster that `up` and `cluster` share."""
    for option in (
        click.option(
            "--write-kubeconfig",
            "kubeconfig",
            default=f"./{DEFAULT}",
            show_default=True,
            type=click.Path(path_type=Path),
            help="Where to write a kubeconfig for kubectl (mode 0600).",
        ),
        click.option(
            "--port",
            default=0,
            metavar="PORT",
            type=click.IntRange(0, 65535),
            help="Port of the API server.  [default: any free one]",
        ),
        click.option(
            "--cluster", "cluster_file", metavar="FILE", help="A file of nodes and other objects to start with."
        ),
        click.option(
            "--nodes",
            type=click.IntRange(0, 20_000),
            metavar="N",
            help=f"Simulated nodes node-1 … node-N.  [default: {DEFAULT_NODES}]",
        ),
    ):
        command = option(command)
    return command


def check_one_source(nodes: int | None, cluster_file: str | None) -> None:
    if nodes is not None and cluster_file is not None:
        raise click.UsageError("--nodes and --cluster exclude each other: the file defines the nodes.")


def initial_objects(nodes: int | None, cluster_file: str | None) -> InitialObjects:
    """What a cluster starts with; a mistake in the file is reported before anything runs."""
    from mooring.simulated.cluster_file import load_cluster_file, plain_nodes

    check_one_source(nodes, cluster_file)
    if cluster_file is not None:
        return load_cluster_file(cluster_file, now=SystemClock().now())
    return plain_nodes(DEFAULT_NODES if nodes is None else nodes, now=SystemClock().now())


@click.command(cls=VerbosityCommand)
@cluster_options
@gates_option
@click.option("--until-stdin-closes", is_flag=True, hidden=True, help="End with the process that started this one.")
@verbosity_option
def cluster(
    nodes: int | None,
    cluster_file: str | None,
    port: int,
    kubeconfig: Path,
    gates: FeatureGates,
    until_stdin_closes: bool,
) -> None:
    """Start the embedded API server and simulated nodes, without a scheduler, until Ctrl-C.

    \b
    Example:
      mooring cluster --nodes 5 --write-kubeconfig dev.kubeconfig
      mooring run --kubeconfig dev.kubeconfig
    """
    check_one_source(nodes, cluster_file)
    check_writable(kubeconfig)

    async def main(stop: asyncio.Event) -> None:
        from mooring.apiserver import EmbeddedApiServer
        from mooring.base.memory import keep_collector_calm
        from mooring.client import ApiClient, Connection
        from mooring.controllers import Controllers
        from mooring.simulated.cluster import SimulatedCluster
        from mooring.simulated.loading import with_default_storage

        keep_collector_calm()
        server = EmbeddedApiServer(port=port, features=gates.enabled())
        if cluster_file is not None:
            load_file(server, cluster_file)
        else:
            server.load(with_default_storage(initial_objects(nodes, None)).in_order())
        _define_topologies(server)
        await server.start()
        held = None
        try:
            # `mooring up` is the process to stop where it has started this one.
            held = write(kubeconfig, server, os.getppid() if until_stdin_closes else os.getpid())
            # Not by way of the file: in a shared folder it may be another user's by now.
            connection = Connection(
                server=server.url, source="mooring cluster", ca_data=server.ca_pem.encode(), token=server.token
            )
            async with ApiClient(connection) as client:
                simulated = SimulatedCluster(client, clock=SystemClock(), features=gates.enabled())
                server.serve_metrics(simulated.kubelets.usage)
                await simulated.start()
                controllers = Controllers(client, clock=SystemClock())
                controllers.start()
                if until_stdin_closes:
                    end_with_stdin(stop)
                else:
                    print_lines(how_to_point_kubectl(kubeconfig))
                print_line(f"Ready: {len(server.store.list('nodes'))} simulated nodes on {server.url}")
                await stop.wait()
                await controllers.stop()
                await simulated.stop()
        finally:
            await server.stop()
            remove_ours(kubeconfig, server.token)
            if held is not None:
                held.close()

    run_until_signalled(main)


def load_file(server: EmbeddedApiServer, path: str) -> None:
    """Fill a server that has not started with the objects of a file; what the operator should know is printed."""
    from mooring.simulated.loading import fill

    for note in fill(server, path, now=SystemClock().now()):
        print_line(note, err=True)


def _define_topologies(server: EmbeddedApiServer) -> None:
    """Simulated nodes with NUMA nodes publish an object of a custom kind, whether a scheduler reads it or not."""
    from mooring.framework.definitions import definition_of
    from mooring.plugins.community.node_resource_topology.topologies import NodeResourceTopology
    from mooring.simulated.kubelet.numa import NUMA

    if any(NUMA in (node["metadata"].get("annotations") or {}) for node in server.store.list("nodes")):
        server.load([definition_of(NodeResourceTopology)])  # one that the file brought is kept


@contextlib.contextmanager
def mistakes_in(cluster_file: str | None) -> Iterator[None]:
    """What the server refuses of the operator's file is the operator's mistake."""
    try:
        yield
    except Fault as fault:
        if cluster_file is None or isinstance(fault, Unreachable):
            raise
        raise OperatorMistake(f"{cluster_file} cannot be loaded: {fault}") from fault


def how_to_point_kubectl(kubeconfig: Path) -> str:
    return f"Point kubectl at it:  export KUBECONFIG={shlex.quote(str(kubeconfig.resolve()))}"


def end_with_stdin(stop: asyncio.Event) -> None:
    """The process that started us holds the other end; when it dies, even by SIGKILL, we end too."""
    loop = asyncio.get_running_loop()
    descriptor = sys.stdin.fileno()

    def readable() -> None:
        if not os.read(descriptor, 4096):
            loop.remove_reader(descriptor)
            stop.set()

    loop.add_reader(descriptor, readable)
