"""The cluster that a command computes with: a file, plain nodes, or one that runs, which is only listed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from mooring.cli.output import print_line

if TYPE_CHECKING:
    from mooring.client import Connection
    from mooring.config import Configuration
    from mooring.framework.gates import FeatureGates
    from mooring.framework.registry import Registry
    from mooring.simulator import Cluster
    from mooring.simulator.outside_data import OutsideData

F = TypeVar("F", bound=Callable[..., Any])


def listed(
    connection: Connection,
    configurations: Iterable[Configuration],
    registry: Registry,
    user_agent: str = "mooring simulate",
) -> Cluster:
    """A cluster that runs, as its lists show it, with the custom kinds that plugins read."""
    from mooring.cli.plugin_definitions import saved_kinds
    from mooring.cli.snapshot import pages_shown
    from mooring.simulator.live_clusters import read_live_cluster

    kinds = {kind: found for each in configurations for kind, found in saved_kinds(each, registry).items()}
    return read_live_cluster(connection, custom_kinds=kinds, on_page=pages_shown(), user_agent=user_agent)


class ClusterSource(NamedTuple):
    """As given on the command line."""

    file: str | None = None
    nodes: int | None = None
    kubeconfig: str | None = None
    context: str | None = None

    def check(self) -> None:
        """At most one cluster is named."""
        given = [
            option
            for option, value in (
                ("--cluster", self.file),
                ("--nodes", self.nodes),
                ("--kubeconfig or --context", self.kubeconfig or self.context),
            )
            if value is not None
        ]
        if len(given) > 1:
            raise click.UsageError(f"{' and '.join(given)} exclude each other: each is a cluster.")

    def read(
        self, configurations: Sequence[Configuration], registry: Registry, *, default_nodes: int | None = None
    ) -> Cluster:
        """The cluster. None named: `default_nodes` plain nodes, or else the one that `kubectl` would use.

        Of a cluster that runs, the custom kinds that plugins read are listed, too.
        """
        from mooring.simulator import Cluster

        nodes = self.nodes
        if self == ClusterSource():
            nodes = default_nodes
        if self.file is not None:
            cluster = Cluster.read(self.file)
        elif nodes is not None:
            cluster = Cluster.of_nodes(nodes)
        else:
            cluster = self._read_live(configurations, registry)
        print_notes(cluster.notes)
        return cluster

    def outside_data(
        self, cluster: Cluster, configuration: Configuration, registry: Registry, gates: FeatureGates
    ) -> OutsideData:
        """What plugins read of other systems, fetched once; of a cluster in a file nothing is known."""
        from mooring.simulator.outside_data import OutsideData, fetch_outside_data, reads_outside_data

        if self.file is not None or self.nodes is not None or not reads_outside_data(configuration, registry):
            return OutsideData()
        connection = self._connection(configuration)
        return fetch_outside_data(connection, cluster, configuration, registry, gates, user_agent="mooring simulate")

    def _read_live(self, configurations: Sequence[Configuration], registry: Registry) -> Cluster:
        connection = self._connection(configurations[0])
        print_line(f"Listing {connection.address} …", err=True)
        return listed(connection, configurations, registry)

    def _connection(self, configuration: Configuration) -> Connection:
        from mooring.cli.kubeconfig_file import connection_here
        from mooring.client import find_connection

        own = configuration.client_connection.kubeconfig or None
        if self.context is None and own is None:
            return connection_here(self.kubeconfig)
        return find_connection(kubeconfig=self.kubeconfig, config_kubeconfig=own, context=self.context)


def cluster_source_options(command: F) -> F:
    """The command gets `source`, a ClusterSource that names at most one cluster."""

    @functools.wraps(command)
    def with_source(
        *arguments: Any,
        cluster_file: str | None,
        nodes: int | None,
        kubeconfig: str | None,
        context: str | None,
        **options: Any,
    ) -> Any:
        source = ClusterSource(cluster_file, nodes, kubeconfig, context)
        source.check()
        return command(*arguments, source=source, **options)

    wrapped: Any = with_source
    for option in (
        click.option("--context", metavar="NAME", help="Another context of the kubeconfig than the current one."),
        click.option(
            "--kubeconfig",
            metavar="FILE",
            help="A cluster that runs, of which only lists are requested.  [default: $KUBECONFIG, "
            "./mooring.kubeconfig, …]",
        ),
        click.option("--nodes", type=click.IntRange(1, 100_000), metavar="N", help="Plain nodes node-1 … node-N."),
        click.option("--cluster", "cluster_file", metavar="FILE", help="A cluster file or a snapshot."),
    ):
        wrapped = option(wrapped)
    result: F = wrapped
    return result


def print_notes(notes: Iterable[str]) -> None:
    """What a result does not account for, on standard error."""
    for note in notes:
        print_line(note, err=True)


def output_option(command: F) -> F:
    return click.option(
        "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to print."
    )(command)


def config_option(command: F) -> F:
    return click.option(
        "--config",
        "config_file",
        metavar="FILE",
        help="A KubeSchedulerConfiguration.  [default: the default profile]",
    )(command)
