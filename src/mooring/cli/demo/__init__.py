"""`mooring demo`: scheduling in under a minute, on an embedded cluster.

`scenario` holds what happens, `show` what the terminal shows; the YAML files beside them are what a user would write.
"""

from __future__ import annotations

import asyncio

import click

from mooring.cli.common import verbosity_option
from mooring.cli.goflags import VerbosityCommand
from mooring.cli.stopping import run_until_signalled


@click.command(cls=VerbosityCommand)
@click.option(
    "--prometheus", is_flag=True, help="Start the `prometheus` on the PATH for network traffic, instead of a stand-in."
)
@verbosity_option
def demo(prometheus: bool) -> None:
    """Watch Mooring schedule a few pods on simulated nodes: no cluster needed, nothing left behind.

    \b
    Example:
      mooring demo -v 3
    """

    async def main(stop: asyncio.Event) -> None:
        from mooring.cli.demo.scenario import play

        await play(stop, with_prometheus=prometheus)

    run_until_signalled(main)
