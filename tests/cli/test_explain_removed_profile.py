"""`mooring explain` of pods that no scheduler serves: never served, or of a profile that a reload removed."""

from __future__ import annotations

import asyncio
import json

from tests.cli.clusters import a_server, create_node, create_pod
from tests.cli.programs import Program, private_home

from mooring.client import ApiClient
from mooring.objects import Pod

PLUGIN = """
from mooring.framework import Plugin, Rejection

class Tiers(Plugin):
    def filter(self, pod, node, cycle):
        return Rejection("node(s) are of another tier")
"""
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
DEFAULT = "- {schedulerName: default-scheduler}\n"
TIERS = "- {schedulerName: tiers, plugins: {multiPoint: {enabled: [{name: Tiers}]}}}\n"


async def create(client: ApiClient, name: str, scheduler: str) -> None:
    spec = {"containers": [{"name": "main", "image": "pause"}], "schedulerName": scheduler}
    await client.create(Pod.KIND, {"metadata": {"name": name}, "spec": spec}, "default")


async def test_a_pod_that_no_scheduler_serves_has_that_as_its_reason():
    async with a_server() as (server, client, placed):
        with private_home() as home:
            server.write_kubeconfig(home / "k")
            (home / "tiers.py").write_text(PLUGIN, encoding="utf-8")
            (home / "c.yaml").write_text(HEAD + DEFAULT + TIERS, encoding="utf-8")

            async def explained(*arguments: str) -> str:
                with Program("explain", "--kubeconfig=k", *arguments, home=home) as program:
                    assert await asyncio.to_thread(program.ended) == 0, program.err
                return "\n".join(program.out)

            await create_node(client, "one")
            flags = ["--kubeconfig=k", "--plugins=tiers.py", "--config=c.yaml", "--watch-config"]
            with Program("run", *flags, "--leader-elect=false", "-v=2", home=home) as scheduler:
                await asyncio.to_thread(scheduler.ready)
                await create(client, "t9", "tiers")
                await placed.refused({"t9"})
                (home / "c.yaml").write_text(HEAD + DEFAULT, encoding="utf-8")
                await asyncio.to_thread(scheduler.mentions, 'profilesRemoved="tiers"')
                await create(client, "web", "absent")

                removed, never = await explained("t9"), await explained("web")
                assert removed.startswith(
                    'Pod default/t9 waits for a node (profile tiers, Pending): no scheduler here serves "tiers".'
                )
                assert "In the queue" not in removed
                assert "Last decision: attempt 1" in removed
                assert never.startswith(
                    'Pod default/web waits for a node (profile absent, Pending): no scheduler here serves "absent".'
                )
                assert "- create the pod again with schedulerName default-scheduler; then it goes to one:" in never

                found = json.loads(await explained("-A", "-o", "json"))
                assert [(group["reason"], group["total"]) for group in found["groups"]] == [
                    ('no scheduler here serves "absent"', 1),
                    ('no scheduler here serves "tiers"', 1),
                ]
                await create_pod(client, "other")
                assert await placed.on("other") == "one"
