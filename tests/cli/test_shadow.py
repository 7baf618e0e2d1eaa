"""`mooring run --shadow` as a user starts it: beside a scheduler at work, and with flags that do not go together."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import sys
import urllib.request
from pathlib import Path

import pytest
from tests.cli.clusters import a_server, create_node, create_pod
from tests.cli.conftest import NOWHERE, Mooring, write
from tests.cli.programs import PATIENCE_SECONDS, Program, private_home
from tests.ports import free_ports

LISTEN = "0A"
CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
NOT_FIRST = """
from mooring.framework import Plugin, Rejection


class NotFirst(Plugin):
    def filter(self, pod, node, cycle):
        return Rejection("node(s) first") if node.name == "first" else None
"""
WALLED = CONFIG + "profiles: [{plugins: {multiPoint: {enabled: [{name: NotFirst}]}}}]\n"


def served(port: int) -> str:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with urllib.request.urlopen(
        f"https://127.0.0.1:{port}/metrics", context=context, timeout=PATIENCE_SECONDS
    ) as response:
        text: str = response.read().decode()
        return text


async def test_two_shadows_beside_a_scheduler():
    """One with its rules, one with a filter of its own; the report and the metrics agree with the terminal."""
    async with a_server() as (server, client, placed):
        with private_home() as home:
            server.write_kubeconfig(home / "k")
            (home / "walled.yaml").write_text(WALLED, encoding="utf-8")
            (home / "not_first.py").write_text(NOT_FIRST, encoding="utf-8")
            (port,) = free_ports(1)
            serving = (
                f"--secure-port={port}",
                "--authorization-always-allow-paths=/metrics",
                "--bind-address=127.0.0.1",
            )
            await create_node(client, "first")  # before they list nodes: pods come by a watch of their own
            walled = ("--config=walled.yaml", "--plugins=not_first.py", "--shadow-report=walled.jsonl")
            with (
                Program("run", "--kubeconfig=k", home=home) as scheduler,
                Program("run", "--shadow", "--kubeconfig=k", *serving, home=home) as same,
                Program("run", "--shadow", "--kubeconfig=k", *walled, home=home) as other,
            ):
                for program in (scheduler, same, other):
                    await asyncio.to_thread(program.ready)
                await create_pod(client, "web")
                assert await placed.on("web") == "first"
                agrees = await asyncio.to_thread(same.mentions, "default/web")
                differs = await asyncio.to_thread(other.mentions, "default/web")
                metrics = await asyncio.to_thread(served, port)
                codes = [await asyncio.to_thread(program.end) for program in (same, other, scheduler)]
            report = [json.loads(line) for line in (home / "walled.jsonl").read_text(encoding="utf-8").splitlines()]
    assert codes == [0, 0, 0]
    assert agrees == "agree           default/web  on first: the only feasible node"
    assert differs == "differ          default/web  on first: NotFirst refuses first: node(s) first"
    counted = 'mooring_shadow_decisions_total{profile="default-scheduler",result="agree",subject="binding"} 1.0\n'
    assert counted in metrics
    assert [(each["result"], each["cause"], each["plugin"]) for each in report] == [("differ", "verdict", "NotFirst")]
    assert report[0]["theirs"] == {"node": "first"}
    assert (
        report[0]["ours"]["message"] == "0/1 nodes are available: 1 node(s) first." + report[0]["ours"]["message"][41:]
    )
    assert "Compared 1: 1 agree" in same.written()
    assert "differences by NotFirst (verdict): 1" in other.written()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--scheduler-name=theirs"], ["--scheduler-name", "names with --shadow the scheduler to compare with"]),
        (["--shadow-report=r.jsonl"], ["--shadow-report", "give --shadow too"]),
        (["--shadow", "--leader-elect"], ["--leader-elect", "a shadow binds nothing"]),
        (["--shadow", "--scheduler-name="], ["--scheduler-name", "needs a name"]),
        (["--shadow", "--shadow-report=no/such/r.jsonl"], ["--shadow-report", "no/such/r.jsonl cannot be written"]),
        (["--shadow=perhaps"], ["--shadow", 'must be true or false, got "perhaps"']),
    ],
)
def test_flags_that_do_not_go_together(mooring: Mooring, flags: list[str], message: list[str]):
    result = mooring("run", "--kubeconfig", write("lost.kubeconfig", NOWHERE), *flags)
    assert result.code == 2
    for words in message:
        assert words in result.err
    assert "Traceback" not in result.err


def test_it_leaves_kube_schedulers_port_alone():
    with private_home() as home:
        options = ("--nodes=0", "--write-kubeconfig=k")
        with Program("up", *options, home=home) as up:
            up.ready()
            as_typed = (sys.executable, "-m", "mooring", "run", "--shadow", "--kubeconfig=k")
            with Program(home=home, program=as_typed) as shadow:
                shadow.ready()
                assert not listening(shadow.process.pid)
                assert shadow.end() == 0


def listening(pid: int) -> set[str]:
    """The TCP sockets on which a process listens."""
    sockets = {os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir() if each.exists() or each.is_symlink()}
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return {f"socket:[{row[9]}]" for row in rows if row[3] == LISTEN} & sockets


def test_a_server_that_does_not_respond_is_named(mooring: Mooring):
    result = mooring("run", "--shadow", "--kubeconfig", write("lost.kubeconfig", NOWHERE))
    assert result.code == 1
    assert "cannot reach the API server 127.0.0.1:1" in result.err
