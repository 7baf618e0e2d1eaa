"""The server as a process of its own: `python -m mooring.apiserver --port 6443 --kubeconfig FILE`.

Prints one line with its URL when it answers. Ends on SIGTERM or SIGINT, and when its standard input closes: the
parent that started it has died.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from pathlib import Path

import click

from mooring.apiserver.server import EmbeddedApiServer
from mooring.base.errors import OperatorMistake


async def serve_until_told(server: EmbeddedApiServer, kubeconfig: Path | None, *, watch_stdin: bool) -> None:
    """Serve until a signal or the end of standard input."""
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, over.set)
    await server.start()
    try:
        if kubeconfig is not None:
            server.write_kubeconfig(kubeconfig)
        print(f"Ready {server.url}", flush=True)
        if watch_stdin:
            _end_with_stdin(loop, over)
        await over.wait()
    finally:
        await server.stop()


def _end_with_stdin(loop: asyncio.AbstractEventLoop, over: asyncio.Event) -> None:
    descriptor = sys.stdin.fileno()

    def readable() -> None:
        if not os.read(descriptor, 4096):
            loop.remove_reader(descriptor)
            over.set()

    try:
        loop.add_reader(descriptor, readable)
    except (OSError, ValueError):
        # A regular file or /dev/null: there is no parent to outlive.
        return


def serve_forever(
    host: str = "127.0.0.1",
    port: int = 0,
    kubeconfig: Path | None = None,
    token: str | None = None,
    *,
    watch_stdin: bool = True,
) -> None:
    """Run a server in this process until it is told to stop."""
    # Stored documents live long and form no cycles: looking through all of them often finds nothing.
    gc.set_threshold(50_000, 50, 100)
    server = EmbeddedApiServer(host, port, token=token)
    serving = serve_until_told(server, kubeconfig, watch_stdin=watch_stdin)
    try:
        import uvloop
    except ImportError:
        asyncio.run(serving)
    else:
        uvloop.run(serving)


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=0, show_default=True, help="Port to listen on; 0 takes a free one.")
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Write a kubeconfig for this server here.")
@click.option("--token-file", type=click.Path(path_type=Path), help="Read the bearer token from this file.")
@click.option("--keep-running", is_flag=True, help="Go on when standard input closes.")
def main(host: str, port: int, kubeconfig: Path | None, token_file: Path | None, keep_running: bool) -> None:
    """Run Mooring's embedded Kubernetes API server.

    Example:
      python -m mooring.apiserver --port 6443 --kubeconfig ./mooring.kubeconfig --keep-running
    """
    token = token_file.read_text(encoding="utf-8").strip() if token_file else None
    try:
        serve_forever(host, port, kubeconfig, token, watch_stdin=not keep_running)
    except OperatorMistake as mistake:
        click.echo(f"Error: {mistake}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
