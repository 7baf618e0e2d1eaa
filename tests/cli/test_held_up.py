"""Ctrl-C and SIGTERM end a scheduler in time, wherever a plugin holds it up; the log names plugin, method and line."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.cli.clusters import a_server, create_node
from tests.cli.programs import Program, private_home, until_gone
from tests.cli.test_live import linux_only

from mooring.apiserver import EmbeddedApiServer
from mooring.client import ApiClient
from mooring.objects import Kind, Pod

LEASES = Kind("coordination.k8s.io", "v1", "Lease", "leases")

PLUGIN = """
import asyncio, re, sys, threading, time
from mooring.base import log
from mooring.framework import Action, Background, Hint, Plugin, Rejection, Skip

def hold(how):
    print("holding up: " + how, file=sys.stderr, flush=True)
    match how:
        case "loops":
            while True:
                pass
        case "sleeps":
            time.sleep(3600)
        case "waits for a lock":
            threading.Event().wait()
        case "matches":
            re.match("(a+)+$", 100 * "a" + "b")
        case "keeps the log":
            log._lock.acquire()
            while True:
                pass

async def hold_async(how):
    if how == "awaits":
        print("holding up: " + how, file=sys.stderr, flush=True)
        await asyncio.Event().wait()
    elif how == "cannot be cancelled":
        print("holding up: " + how, file=sys.stderr, flush=True)
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass
    else:
        hold(how)

POINT, HOW = "<point>", "<how>"

class Holds(Plugin):
    def __init__(self, background: Background):
        if POINT == "background":
            async def run():
                await hold_async(HOW)
            background.run(run)

    def events(self):
        return [Hint("Node", Action.ADD, self.hint)]

    def hint(self, pod, old, new):
        if POINT == "hint":
            hold(HOW)
        return True

    def filter(self, pod, node, cycle):
        if POINT == "hint":
            return Rejection("not yet")
        if POINT == "filter":
            hold(HOW)

    def reserve(self, pod, node, cycle):
        if POINT == "reserve":
            hold(HOW)

    async def unreserve(self, pod, node, cycle):
        if POINT == "unreserve":
            await hold_async(HOW)

    def permit(self, pod, node, cycle):
        if POINT == "permit":
            hold(HOW)

    async def pre_bind(self, pod, node, cycle):
        if POINT == "pre_bind":
            await hold_async(HOW)
        if POINT == "unreserve":
            raise RuntimeError("to be undone")

    async def bind(self, pod, node, cycle):
        if POINT == "bind":
            await hold_async(HOW)
        return Skip()

    async def stop(self):
        if POINT == "stop":
            await hold_async(HOW)

class Sorts(Plugin):
    def sort_key(self, waiting):
        if POINT == "sort_key":
            hold(HOW)
        return (0,)
"""

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: Holds}]}
    bind: {enabled: [{name: Holds}, {name: DefaultBinder}], disabled: [{name: "*"}]}
    queueSort: {enabled: [{name: Sorts}], disabled: [{name: "*"}]}
"""
LINES = {
    "loops": ("while True:", "pass"),
    "sleeps": ("time.sleep(3600)",),
    "waits for a lock": ("threading.Event().wait()",),
    "matches": ('re.match("(a+)+$", 100 * "a" + "b")',),
    "awaits": ("await asyncio.Event().wait()",),
    "cannot be cancelled": ("await asyncio.Event().wait()",),
}
NAMED = re.compile(r'plugin="(\w+)" method="(\w+)" at="[^"]*holds.py:(\d+)"')
POINTS = {
    "reserve": ("loops", "sleeps", "waits for a lock", "matches"),
    "permit": ("sleeps",),
    "hint": ("loops",),
    "sort_key": ("sleeps",),
    "pre_bind": ("cannot be cancelled",),
    "bind": ("loops", "awaits"),
    "unreserve": ("awaits",),
    "background": ("sleeps", "cannot be cancelled"),
    "stop": ("awaits", "cannot be cancelled"),
}
CASES = [(point, how) for point, ways in POINTS.items() for how in ways]
ALONE = ("background", "stop")
"""They hold it up without any pod."""
NOT_RUNNING = ("awaits", "cannot be cancelled")
"""The loop goes on, so the end may come in order."""


class Cluster:
    def __init__(self, server: EmbeddedApiServer, client: ApiClient, home: Path) -> None:
        self.server, self.client, self.home = server, client, home

    def scheduler(self, point: str, how: str, *flags: str) -> Program:
        write_plugin(self.home, point, how)
        return Program(
            "run", "--kubeconfig=k", "--plugins=holds.py", "--config=config.yaml", "-v=2", *flags, home=self.home
        )

    async def pod(self) -> None:
        spec = {"containers": [{"name": "main", "image": "pause"}]}
        await self.client.create(Pod.KIND, {"metadata": {"name": "web"}, "spec": spec}, "default")

    async def held_up(self, program: Program, point: str, how: str) -> None:
        """Until the plugin holds it up."""
        if point != "background":
            await asyncio.to_thread(program.ready)
        if point == "stop":
            return
        if point not in ALONE:
            await self.pod()
        if point == "hint":
            await asyncio.to_thread(program.mentions, "Unable to schedule pod")
            await create_node(self.client, "another")
        await asyncio.to_thread(program.mentions, f"holding up: {how}")


def write_plugin(home: Path, point: str, how: str) -> None:
    (home / "holds.py").write_text(PLUGIN.replace("<point>", point).replace("<how>", how), encoding="utf-8")
    (home / "config.yaml").write_text(CONFIG, encoding="utf-8")


def sockets(home: Path) -> list[Path]:
    return list((home / "mooring").glob("*.sock"))


def check_named(program: Program, home: Path, point: str, how: str) -> None:
    """Plugin, method and line are in the log."""
    plugin = "Sorts" if point == "sort_key" else "Holds"
    method = "run" if point == "background" else point
    lines = (home / "holds.py").read_text(encoding="utf-8").splitlines()
    found = {(named[1], named[2], lines[int(named[3]) - 1].strip()) for named in NAMED.finditer(program.written())}
    assert found & {(plugin, method, line) for line in LINES[how]}, program.written()


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with a_server() as (server, client, _):
        with private_home() as home:
            server.write_kubeconfig(home / "k")
            await create_node(client, "only")
            yield Cluster(server, client, home)


@pytest.mark.parametrize(("point", "how"), CASES, ids=[f"{point} {how}" for point, how in CASES])
async def test_a_signal_ends_a_scheduler_while_its_plugin_in(point: str, how: str, cluster: Cluster):
    """Isolation: a plugin that does not end does not keep the process from ending."""
    with cluster.scheduler(point, how, "--leader-elect=false", "--shutdown-timeout=1500ms") as program:
        await cluster.held_up(program, point, how)
        code = await asyncio.to_thread(program.end, signal.SIGTERM)
        check_named(program, cluster.home, point, how)
        assert code in ((0, 143) if how in NOT_RUNNING else (143,)), program.written()
        assert sockets(cluster.home) == []
        assert "Traceback" not in program.written()


async def test_an_attempt_that_a_plugin_holds_up_is_interrupted_and_the_end_is_in_order(cluster: Cluster):
    flags = ("--leader-elect=false", "--attempt-timeout=1h", "--shutdown-timeout=9s")
    with cluster.scheduler("filter", "loops", *flags) as program:
        await cluster.held_up(program, "filter", "loops")
        assert await asyncio.to_thread(program.end, signal.SIGINT) == 0
        program.mentions('running \\"Holds\\" filter plugin: was interrupted: the scheduler is stopping" at="')


async def test_a_plugin_that_keeps_the_log_for_itself_ends_with_the_process_too(cluster: Cluster):
    with cluster.scheduler("reserve", "keeps the log", "--leader-elect=false", "--shutdown-timeout=1s") as program:
        await cluster.held_up(program, "reserve", "keeps the log")
        assert await asyncio.to_thread(program.end) == 1
        program.mentions("holds.py")


async def test_without_a_limit_a_plugin_may_hold_up_the_end(cluster: Cluster):
    with cluster.scheduler("stop", "awaits", "--leader-elect=false", "--shutdown-timeout=0") as program:
        await cluster.held_up(program, "stop", "awaits")
        assert await asyncio.to_thread(program.end) == 0
        assert "Ending without" not in program.written()


async def test_a_second_signal_ends_it_at_once_while_a_plugin_holds_it_up(cluster: Cluster):
    with cluster.scheduler("reserve", "sleeps", "--leader-elect=false", "--shutdown-timeout=1h") as program:
        await cluster.held_up(program, "reserve", "sleeps")
        program.process.send_signal(signal.SIGINT)
        while program.process.poll() is None:  # those that come within a moment count as one
            program.process.send_signal(signal.SIGINT)
            await asyncio.sleep(0.05)
        assert await asyncio.to_thread(program.ended) == 1
        assert "second signal: ending at once" in program.err
        assert sockets(cluster.home) == []


async def test_a_shadow_ends_too(cluster: Cluster):
    with cluster.scheduler("filter", "sleeps", "--shadow", "--attempt-timeout=0", "--shutdown-timeout=1s") as program:
        await cluster.held_up(program, "filter", "sleeps")
        assert await asyncio.to_thread(program.end, signal.SIGINT) == 130
        check_named(program, cluster.home, "filter", "sleeps")


async def test_the_lease_is_released_where_nothing_is_in_flight(cluster: Cluster):
    with cluster.scheduler("reserve", "loops", "--leader-elect=true", "--shutdown-timeout=12s") as program:
        await cluster.held_up(program, "reserve", "loops")
        lease = await cluster.client.get(LEASES, "kube-scheduler", "kube-system")
        assert lease["spec"]["holderIdentity"]
        assert await asyncio.to_thread(program.end) == 143
        program.mentions("Released the lease")
        lease = await cluster.client.get(LEASES, "kube-scheduler", "kube-system")
        assert lease["spec"]["holderIdentity"] == ""


@linux_only
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_up_ends_with_its_cluster_and_leaves_no_file(number: signal.Signals, code: int, home: Path):
    write_plugin(home, "reserve", "loops")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"}}
    pod["spec"] = {"containers": [{"name": "main", "image": "pause"}]}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"capacity": {"cpu": "1", "pods": "9"}},
    }
    (home / "c.yaml").write_text("\n---\n".join(map(json.dumps, (node, pod))), encoding="utf-8")
    flags = ["--cluster=c.yaml", "--plugins=holds.py", "--config=config.yaml"]
    with Program("up", *flags, home=home) as program:
        program.mentions("holding up: loops")
        (child,) = program.children()
        assert program.end(number) == code
        check_named(program, home, "reserve", "loops")
        until_gone(child)
        assert not (home / "mooring.kubeconfig").exists()
        assert sockets(home) == []
