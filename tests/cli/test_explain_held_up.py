"""`mooring explain` while plugins hold up the scheduler, or a pod."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.cli.clusters import a_server, create_node, create_pod
from tests.cli.programs import Program, private_home

from mooring.client import ApiClient

PLUGINS = """
import sys, time
from mooring.framework import Allow, Plugin, Wait

class OfficeHours(Plugin):
    def permit(self, pod, node, cycle):
        return Wait(600)

class Sleeps(Plugin):
    def reserve(self, pod, node, cycle):
        if pod.name == "sleeper":
            print("asleep", file=sys.stderr, flush=True)
            time.sleep(3600)
"""
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: default-scheduler, plugins: {multiPoint: {enabled: [{name: OfficeHours}, {name: Sleeps}]}}}]
"""


class Cluster:
    def __init__(self, client: ApiClient, home: Path) -> None:
        self.client, self.home = client, home

    def scheduler(self) -> Program:
        flags = ["--kubeconfig=k", "--plugins=mine.py", "--config=config.yaml", "--leader-elect=false"]
        return Program("run", *flags, "--shutdown-timeout=1s", "-v=2", home=self.home)

    async def explained(self, *arguments: str) -> tuple[int, str, str]:
        """As another process: exit code, what it prints and what it logs."""
        program = Program("explain", "--kubeconfig=k", *arguments, home=self.home)
        with program:
            code = await asyncio.to_thread(program.ended)
        return code, "\n".join(program.out), "\n".join(program.err)


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with a_server() as (server, client, _):
        with private_home() as home:
            server.write_kubeconfig(home / "k")
            (home / "mine.py").write_text(PLUGINS, encoding="utf-8")
            (home / "config.yaml").write_text(CONFIG, encoding="utf-8")
            await create_node(client, "only")
            yield Cluster(client, home)


async def test_explain_names_the_plugin_that_holds_up_the_scheduler(cluster: Cluster):
    with cluster.scheduler() as program:
        await asyncio.to_thread(program.ready)
        await create_pod(cluster.client, "sleeper")
        await asyncio.to_thread(program.mentions, "asleep")
        code, out, err = await cluster.explained("sleeper")
        assert code == 1
        assert out.startswith("Pod default/sleeper waits for a node")
        line = 1 + PLUGINS.splitlines().index("            time.sleep(3600)")
        where = f"in reserve at {cluster.home}/mine.py:{line}, for "
        assert err.startswith(f"Error: the scheduler does not respond: plugin Sleeps blocks it {where}")
        assert "Traceback" not in err
        code, out, _ = await cluster.explained("sleeper", "-o", "json")
        assert (code, "plugin Sleeps blocks it" in json.loads(out)["problem"]) == (1, True)


async def test_explain_shows_which_plugin_a_pod_waits_for_on_permit_and_how_long(cluster: Cluster):
    with cluster.scheduler() as program:
        await asyncio.to_thread(program.ready)
        await create_pod(cluster.client, "held")
        for _ in range(sys.maxsize):
            code, out, _ = await cluster.explained("held", "-o", "json")
            found = json.loads(out)
            if found.get("queue") == "waiting on permit":
                break
        (wait,) = found["decision"]["waitsFor"]
        assert (code, wait["plugin"], wait["resource"], wait["node"]) == (0, "OfficeHours", "Permit", "only")
        assert 0 < wait["secondsLeft"] <= 600
        assert wait["deadline"] > found["decision"]["time"]
        code, out, _ = await cluster.explained("pod/held")
        first, *others = out.splitlines()
        assert first.startswith("Pod default/held waits on permit of OfficeHours on only, ")
        assert first.endswith("s left (profile default-scheduler, Pending).")
        assert others[-1].startswith("It is bound when these plugins allow it, and refused when the time of one ends: ")
