"""`mooring run --attempt-timeout`: a plugin that computes too long about a pod is interrupted, in a shadow too."""

from __future__ import annotations

import asyncio

import pytest
from tests.cli.clusters import a_server, create_node, create_pod
from tests.cli.programs import Program, private_home

from mooring.objects import Pod

SLOW = """
import time
from mooring.framework import Plugin


class Slow(Plugin):
    def pre_filter(self, pod, cycle):
        end = time.process_time() + 60
        while time.process_time() < end:
            pass
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles: [{plugins: {multiPoint: {enabled: [{name: Slow}]}}}]
"""


@pytest.mark.parametrize("mode", [(), ("--shadow",)], ids=["run", "shadow"])
async def test_the_flag_bounds_an_attempt(mode):
    async with a_server() as (server, client, _):
        await create_node(client, "only")
        with private_home() as home:
            server.write_kubeconfig(home / "k")
            (home / "slow.py").write_text(SLOW, encoding="utf-8")
            (home / "scheduler.yaml").write_text(CONFIG, encoding="utf-8")
            files = ("--kubeconfig=k", "--config=scheduler.yaml", "--plugins=slow.py")
            with Program("run", *files, "--attempt-timeout=300ms", *mode, home=home) as program:
                await asyncio.to_thread(program.ready)
                await create_pod(client, "web")
                await asyncio.to_thread(program.mentions, "exceeded the time budget of 300ms")
                if mode:  # a shadow decides again when it learns where the other scheduler bound the pod
                    pod = await client.get(Pod.KIND, "web", "default")
                    await client.bind("default", "web", pod["metadata"]["uid"], "only")
                    await asyncio.to_thread(program.mentions, "on only: our attempt failed: running PreFilter plugin")
                assert await asyncio.to_thread(program.end) == 0
