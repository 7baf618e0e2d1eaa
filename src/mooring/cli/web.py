"""`mooring web`: the cluster as a page in a browser."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import click

from mooring.cli.cluster import end_with_stdin
from mooring.cli.common import verbosity_option
from mooring.cli.explained_cluster import ExplainedSource, cluster_and_configuration_options
from mooring.cli.goflags import VerbosityCommand
from mooring.cli.output import print_line
from mooring.cli.stopping import Stop, run_until_signalled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mooring.web.mirror import Mirror

SHUTDOWN_SECONDS = 5.0


@click.command(cls=VerbosityCommand)
@cluster_and_configuration_options
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="PORT", help="0: any that is free.")
@click.option("--until-stdin-closes", is_flag=True, hidden=True, help="End with the process that started this one.")
@verbosity_option
def web(source: ExplainedSource, port: int, until_stdin_closes: bool) -> None:
    """Serve a page that shows a cluster, its queue, and why pods are where they are, until Ctrl-C.

    The link that is printed holds a secret: its bearer sees what your kubeconfig may read. Nothing is written to the
    cluster. A cluster that runs is listed and watched; a file is read once.

    \b
    Example:
      mooring web
      mooring web --cluster prod.snapshot
    """
    if source.file is not None:
        _serve_file(source, port, until_stdin_closes)
    else:
        run_until_signalled(
            lambda stop: _serve(_live(source), stop, port=port, until_stdin_closes=until_stdin_closes), SHUTDOWN_SECONDS
        )


def _serve_file(source: ExplainedSource, port: int, until_stdin_closes: bool) -> None:
    from mooring.snapshots import is_snapshot
    from mooring.web.mirror import file_mirror

    cluster = source.read_file()
    # Outside the server's event loop: the recomputation has one of its own.
    with source.recomputation(cluster) as recomputation:
        assert source.file is not None
        kind: Any = "snapshot" if is_snapshot(source.file) else "file"
        mirror = file_mirror(source.file, kind, recomputation, source.registry())

        async def main(stop: Stop) -> None:
            await _serve(contextlib.nullcontext(mirror), stop, port=port, until_stdin_closes=until_stdin_closes)

        run_until_signalled(main, SHUTDOWN_SECONDS)


@contextlib.asynccontextmanager
async def _live(source: ExplainedSource) -> AsyncIterator[Mirror]:
    from mooring.scheduler.introspection.explain_client import query
    from mooring.web.mirror import live_mirror

    connection = source.connection()
    configuration = None
    if source.config_file is None:
        # As the scheduler here decides, if there is one.
        responses = query(connection.server, {"explain": "", "configuration": True}).responses
        configuration = next((each["configuration"] for each in responses if each.get("configuration")), None)
    registry = source.registry()
    async with live_mirror(connection, source.loaded(configuration, registry), registry, source.gates) as mirror:
        yield mirror


async def _serve(
    source: contextlib.AbstractAsyncContextManager[Mirror], stop: Stop, *, port: int, until_stdin_closes: bool
) -> None:
    from mooring.web.access import OperatorAccess
    from mooring.web.api import Api
    from mooring.web.server import WebOptions, WebServer

    if until_stdin_closes:
        end_with_stdin(stop)
    async with source as mirror:
        access = OperatorAccess()
        server = WebServer(Api(mirror), access, WebOptions(port=port))
        async with server.serving():
            print_line(f"{server.url}#token={access.token}")
            await stop.wait()
