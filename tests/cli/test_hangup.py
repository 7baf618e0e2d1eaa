"""SIGHUP at any moment of a scheduler's life: it never ends it, and none that matters is missed."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.clusters import a_server, create_node
from tests.cli.programs import Program, clean_environment, private_home

CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

# As `python -m mooring` does it, with a SIGHUP whenever a module is imported: from the first line of ours on, as fast
# or slow as the machine may be.
ALWAYS = """
import os, signal, sys
import mooring.cli.hangup
sys.argv[0] = "{program}"
class EachImport:
    def find_spec(self, name, path=None, target=None):
        if name != "mooring.entry":
            os.kill(os.getpid(), signal.SIGHUP)
sys.meta_path.insert(0, EachImport())
from mooring.entry import main
main()
"""


def started(program: str, *arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ALWAYS.replace("{program}", program), *arguments],
        capture_output=True,
        text=True,
        env=clean_environment(home),
        cwd=home,
    )


@pytest.mark.parametrize(
    ("program", "arguments"),
    [("mooring", ["run"]), ("/usr/local/bin/kube-scheduler", [])],
)
def test_the_signal_is_held_before_anything_is_imported(program, arguments):
    """It ends because there is no cluster, and reports that."""
    with private_home() as home:
        done = started(program, *arguments, "--kubeconfig=absent", home=home)
        assert done.returncode == 2, done.stderr
        assert "absent" in done.stderr


@pytest.mark.parametrize("command", ["up", "nodes", "version"])
def test_other_commands_still_end_with_their_terminal(command):
    look = (
        "import signal, sys; from mooring.cli import hangup;"
        f"hangup.hold_for('mooring', [{command!r}]); print(signal.getsignal(signal.SIGHUP) == signal.SIG_DFL)"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


SIGNALS = {
    "before there is anything to reload": ("hold(); hangs_up(); listen(reload)", 1),
    "several before": ("hold(); hangs_up(); hangs_up(); listen(reload)", 1),
    "while it can reload": ("hold(); listen(reload); hangs_up(); hangs_up()", 2),
    "while it ends": ("hold(); listen(reload); unlisten(); hangs_up()", 0),
    "at the very end": ("hold(); listen(reload); unlisten(); ignore(); hangs_up()", 0),
    "and never before": ("hold(); listen(reload)", 0),
}


@pytest.mark.parametrize(("script", "reloads"), SIGNALS.values(), ids=SIGNALS.keys())
def test_it_reloads_for_signals(script, reloads):
    prepare = (
        "import os, signal; from mooring.cli.hangup import *;"
        "hangs_up = lambda: os.kill(os.getpid(), signal.SIGHUP); reload = lambda: print('reload')"
    )
    done = subprocess.run([sys.executable, "-c", f"{prepare}\n{script}"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["reload"] * reloads


async def test_signals_from_the_start_to_the_end_end_nothing_and_the_first_reload_is_not_missed():
    async with a_server() as (server, client, _):
        await create_node(client, "only")
        with private_home() as home:
            server.write_kubeconfig(home / "k")
            (home / "scheduler.yaml").write_text(CONFIG, encoding="utf-8")
            with Program("run", "--kubeconfig=k", "--config=scheduler.yaml", "--leader-elect=false", home=home) as one:
                ours = asyncio.get_running_loop().create_task(asyncio.to_thread(one.ready))
                await asyncio.to_thread(until_held, one.process.pid)
                one.process.send_signal(signal.SIGHUP)
                while not ours.done():
                    one.process.send_signal(signal.SIGHUP)
                    await asyncio.sleep(0.005)
                await ours
                await asyncio.to_thread(one.mentions, "Configuration reloaded; nothing in it has changed")
                one.process.send_signal(signal.SIGTERM)
                while one.process.poll() is None:
                    one.process.send_signal(signal.SIGHUP)
                    await asyncio.sleep(0.001)
                assert one.ended() == 0, one.written()
                assert "Traceback" not in one.written()


async def test_a_shadow_has_nothing_to_reload_and_goes_on():
    async with a_server() as (server, client, _):
        await create_node(client, "only")
        with private_home() as home:
            server.write_kubeconfig(home / "k")
            with Program("run", "--kubeconfig=k", "--shadow", home=home) as shadow:
                await asyncio.to_thread(shadow.ready)
                shadow.process.send_signal(signal.SIGHUP)
                await asyncio.to_thread(shadow.mentions, "SIGHUP changes nothing")
                assert await asyncio.to_thread(shadow.end) == 0


def until_held(pid: int) -> None:
    """Until the process has a handler for it: as Linux shows it for any process."""
    mask = 1 << (signal.SIGHUP - 1)
    while True:
        status = Path(f"/proc/{pid}/status").read_text()
        caught = next(line for line in status.splitlines() if line.startswith("SigCgt"))
        if int(caught.split()[1], 16) & mask:
            return
