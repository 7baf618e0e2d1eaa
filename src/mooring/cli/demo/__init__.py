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
@verbosity_option
def demo() -> None:
    """Watch Mooring schedule a few pods on simulated nodes: no cluster needed, nothing left behind.

    \b
    Example:
      mooring demo -v 3
    """

    async def main(stop: asyncio.Event) -> None:
        from mooring.cli.demo.scenario import play

        await play(stop)

    run_until_signalled(main)
