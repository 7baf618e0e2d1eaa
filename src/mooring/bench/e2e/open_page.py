"""A page that is open while a scheduler is measured: `mooring web`, and a client that reads as a browser does."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

from aiohttp import ClientError, ClientSession, ClientTimeout

from mooring.base.errors import Fault
from mooring.bench.processes import end_process, last_lines, spawn

START_SECONDS = 180.0
REFETCH_SECONDS = 1.0
LOOK_SECONDS = 0.2


@contextlib.asynccontextmanager
async def open_page(kubeconfig: Path, recording: Path, folder: Path) -> AsyncIterator[None]:
    """While inside, a page follows the cluster, its stream is read, and its queue is fetched as it changes."""
    log = folder / "page.log"
    command = [sys.executable, "-m", "mooring", "web", f"--kubeconfig={kubeconfig}", f"--recording={recording}"]
    process = spawn(command, log, folder)
    reading = None
    try:
        deadline = time.monotonic() + START_SECONDS
        while (link := _link(log)) is None:
            if process.poll() is not None or time.monotonic() > deadline:
                raise Fault(f"the page did not start: {last_lines(log)}")
            await asyncio.sleep(LOOK_SECONDS)
        reading = asyncio.create_task(_read(link))
        yield
    finally:
        if reading is not None:
            reading.cancel()
            await asyncio.wait([reading])
        await end_process(process)


def _link(log: Path) -> str | None:
    return next((line for line in log.read_text(encoding="utf-8").splitlines() if "#token=" in line), None)


async def _read(link: str) -> None:
    address, _, token = link.partition("#token=")
    api = f"{address}api/v1"
    headers, unlimited = {"Authorization": f"Bearer {token}"}, ClientTimeout(total=None)
    async with ClientSession(headers=headers, timeout=unlimited) as session:
        for path in ("cluster", "nodes", "queue"):
            await _fetch(session, f"{api}/{path}")
        fetched_at = 0.0
        with contextlib.suppress(ClientError):
            async with session.get(f"{api}/stream") as stream:
                async for line in stream.content:
                    is_due = time.monotonic() >= fetched_at + REFETCH_SECONDS
                    if is_due and line.startswith((b"event: queue", b"event: resync")):
                        fetched_at = time.monotonic()
                        await _fetch(session, f"{api}/queue")


async def _fetch(session: ClientSession, url: str) -> None:
    async with session.get(url) as response:
        await response.read()
