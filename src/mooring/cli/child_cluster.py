"""An embedded cluster in a process of its own, so that it and the scheduler do not take each other's time."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from mooring.base.errors import Fault, OperatorMistake
from mooring.base.log import settings
from mooring.cli.output import print_lines

START_SECONDS = 600.0
"""A file of 128 MiB, the largest that is read, takes minutes. A cluster that ends is noticed at once."""
END_SECONDS = 5.0
LONGEST_LINE = 1 << 20


@contextlib.asynccontextmanager
async def child_cluster(kubeconfig: Path, options: Sequence[str]) -> AsyncIterator[asyncio.Task[None]]:
    """Runs `mooring cluster` with these options; inside the `with` it serves requests. Yields a task that ends if it
    dies."""
    logging = [f"--v={settings().verbosity}", f"--logging-format={settings().format}"]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *[
            "-m",
            "mooring",
            "cluster",
            "--until-stdin-closes",
            "--write-kubeconfig",
            str(kubeconfig),
            *logging,
            *options,
        ],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        # Ctrl-C goes to the whole group of the terminal; the cluster must outlive the scheduler that uses it.
        start_new_session=True,
    )
    errors = asyncio.create_task(errors_passed_on(process))
    died = asyncio.create_task(_died(process))
    try:
        if not await _is_ready(process):
            code = await process.wait()
            why = await errors or "the embedded cluster did not start."
            raise OperatorMistake(why) if code == 2 else Fault(why)
        yield died
    finally:
        died.cancel()
        await end(process)
        errors.cancel()


async def _is_ready(process: asyncio.subprocess.Process) -> bool:
    assert process.stdout is not None
    try:
        return (await asyncio.wait_for(process.stdout.readline(), START_SECONDS)).startswith(b"Ready")
    except ValueError:  # a line without an end
        return False
    except TimeoutError as error:
        raise Fault(f"the embedded cluster did not respond within {START_SECONDS:g} s.") from error


async def errors_passed_on(process: asyncio.subprocess.Process) -> str:
    """Print what the cluster logs; its final message ("Error: …") is returned instead."""
    assert process.stderr is not None
    last_words: list[str] = []
    async for line in _lines(process.stderr):
        text = line.decode(errors="backslashreplace")
        if last_words or text.startswith("Error: "):
            last_words.append(text)
        else:
            # The child has escaped untrusted text; nothing else gets through.
            print_lines(text, are_values_visible=True, err=True)
    return "\n".join(last_words).removeprefix("Error: ").strip()


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Line by line, however long: a line that is not read would block the child. A very long one is cut in pieces."""
    begun = b""
    while chunk := await stream.read(LONGEST_LINE):
        *lines, begun = (begun + chunk).split(b"\n")
        for line in lines:
            yield line
        if len(begun) > LONGEST_LINE:
            yield begun
            begun = b""
    if begun:
        yield begun


async def _died(process: asyncio.subprocess.Process) -> None:
    code = await process.wait()
    raise Fault(f"the embedded cluster ended unexpectedly (exit code {code}).")


async def end(process: asyncio.subprocess.Process) -> None:
    """By SIGTERM; by SIGKILL where that takes too long."""
    if process.returncode is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        await asyncio.wait_for(process.wait(), END_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
