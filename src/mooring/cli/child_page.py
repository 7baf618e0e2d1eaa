"""`mooring web` as a process of its own beside `mooring up`: the page takes none of the scheduler's time.

`mooring up` does not depend on it: where the page does not start, or ends, that is a warning.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from mooring.base.log import Log, settings
from mooring.cli.child_cluster import end, errors_passed_on
from mooring.cli.output import print_line

START_SECONDS = 120.0

_log = Log("mooring")


@contextlib.asynccontextmanager
async def child_page(kubeconfig: Path, options: Sequence[str]) -> AsyncIterator[None]:
    """While inside, a page of this cluster is served. Its link is printed once it is."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *["-m", "mooring", "web", "--until-stdin-closes", f"--logging-format={settings().format}"],
        *["--kubeconfig", str(kubeconfig), *options],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        # Ctrl-C goes to the whole group of the terminal; this process ends the page.
        start_new_session=True,
    )
    following = asyncio.create_task(_follow(process))
    try:
        yield
    finally:
        following.cancel()
        await asyncio.wait([following])
        await end(process)


async def _follow(process: asyncio.subprocess.Process) -> None:
    """Print the link; warn if the page ends."""
    errors = asyncio.create_task(errors_passed_on(process))
    assert process.stdout is not None
    try:
        with contextlib.suppress(TimeoutError, ValueError):
            async with asyncio.timeout(START_SECONDS):
                link = (await process.stdout.readline()).decode(errors="replace").strip()
                if link.startswith("http"):
                    print_line(f"See it in a browser:  {link}")
        code = await process.wait()
        _log.warning("The page has ended; the scheduler goes on", exitCode=code, err=await errors)
    finally:
        errors.cancel()
