"""A measurement that Ctrl-C ends in order: programs that it started are ended, and what it measured is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from mooring.cli.output import print_line
from mooring.cli.stopping import Stop, run_until_signalled

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended."""


def finishes(work: Coroutine[Any, Any, None]) -> bool:
    """Run it until it ends, or until a signal cancels it. Returns whether it ended by itself."""
    is_whole = False

    async def main(stop: Stop) -> None:
        nonlocal is_whole
        working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                print_line("Interrupted: the programs are ended …", err=True)
                working.cancel()
                await asyncio.wait({working})
            else:
                is_whole = True
                working.result()
        finally:
            stopping.cancel()

    run_until_signalled(main)
    return is_whole
