"""The process ends when its work is done, whatever a plugin has left running."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import asyncio, threading
from mooring.cli import ending
from mooring.cli.stopping import run_until_signalled

ending.PATIENCE_SECONDS = 0.1

async def deaf():
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass

async def ends_when_cancelled():
    try:
        await asyncio.Event().wait()
    finally:
        print("tidied up")

def wait_for_ever():
    threading.Event().wait()

async def main(stop):
    {leaves}
    await asyncio.sleep(0)
    print("done")

run_until_signalled(main)
ending.leave(3)
"""

CASES = {
    "nothing is left": ("pass", ["done"], ""),
    "what can be ended is ended": (
        "global kept; kept = asyncio.create_task(ends_when_cancelled())",
        ["done", "tidied up"],
        "",
    ),
    "a task does not let itself be cancelled": (
        "global kept; kept = asyncio.create_task(deaf(), name='bind web')",
        ["done"],
        '"Task ignores its cancellation; abandoning it" task="bind web"',
    ),
    "a worker of the loop does not come back": (
        "global kept; kept = asyncio.create_task(asyncio.to_thread(wait_for_ever))",
        ["done"],
        '"Thread does not end; abandoning it"',
    ),
    "a thread does not end": (
        "threading.Thread(target=wait_for_ever, name='poller').start()",
        ["done"],
        '"Thread does not end; abandoning it" thread="poller"',
    ),
}


@pytest.mark.parametrize(("leaves", "printed", "message"), CASES.values(), ids=CASES.keys())
def test_the_process_ends_with_its_code_where(leaves, printed, message):
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(leaves=leaves)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout.split("\n")[:-1]) == (3, printed), ended.stderr
    assert message in ended.stderr
    assert bool(message) == bool(ended.stderr)
    assert "Traceback" not in ended.stderr


IMPATIENT = """
import asyncio, os, signal
from mooring.cli.stopping import run_until_signalled

async def main(stop):
    os.kill(os.getpid(), signal.SIGTERM)
    await stop.wait()
    while True:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.05)

run_until_signalled(main)
"""


def test_a_second_signal_ends_it_at_once():
    ended = subprocess.run([sys.executable, "-c", IMPATIENT], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (1, "second signal: ending at once\n")


SIGNALLED_TWICE = """
import asyncio, os, signal
from mooring.cli import stopping

stopping.SAME_SIGNAL_SECONDS = 3600.0

async def main(stop):
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(os.getpid(), number)
        await stop.wait()
    received = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, received.set)
    os.kill(os.getpid(), signal.SIGUSR1)
    await received.wait()
    print("ended in order")

stopping.run_until_signalled(main)
"""


def test_a_signal_that_comes_twice_in_a_moment_is_one():
    ended = subprocess.run(
        [sys.executable, "-c", SIGNALLED_TWICE], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ended in order\n", "")
