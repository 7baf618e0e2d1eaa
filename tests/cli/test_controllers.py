"""`mooring controllers` as processes of their own: one of two writes, the other takes over; health over HTTPS."""

from __future__ import annotations

import asyncio
import signal

from tests.cli.clusters import a_server
from tests.cli.programs import PATIENCE_SECONDS, Program, private_home
from tests.cli.test_leadership import EVENTS, LEASES, QUICK
from tests.cli.test_serving import fetch
from tests.ports import free_ports

from mooring.client import ApiClient
from mooring.framework.definitions import definition_of
from mooring.objects import Kind
from mooring.plugins.community.coscheduling.pod_groups import CoschedulingGroup

DEFINITION = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
GROUP = CoschedulingGroup.KIND


async def create_group(client: ApiClient, name: str) -> None:
    document = {
        "apiVersion": GROUP.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": 1},
    }
    await client.create(GROUP, document, "default")


async def phase(client: ApiClient, name: str) -> str:
    """Once it has one."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            status = (await client.get(GROUP, name, "default")).get("status") or {}
            if status.get("phase"):
                return str(status["phase"])
            await asyncio.sleep(0.05)  # the controller is another process: read again


async def test_one_of_two_writes_and_the_other_takes_over_when_it_is_killed():
    async with a_server() as (server, client, _):
        await client.create(DEFINITION, definition_of(CoschedulingGroup))
        with private_home() as home:
            server.write_kubeconfig(home / "k")
            with Program("controllers", "--kubeconfig=k", *QUICK, home=home) as one:
                await asyncio.to_thread(one.mentions, "Ready: controllers")
                lease = await client.get(LEASES, "mooring-controllers", "kube-system")
                leader = lease["spec"]["holderIdentity"]
                with Program("controllers", "--kubeconfig=k", *QUICK, home=home) as two:
                    assert f"{leader} leads" in await asyncio.to_thread(two.mentions, "Standing by")
                    await create_group(client, "first")
                    assert await phase(client, "first") == "Pending"
                    assert not any("Ready" in line for line in two.out)

                    one.process.send_signal(signal.SIGKILL)
                    await create_group(client, "second")
                    assert await phase(client, "second") == "Pending"
                    lease = await client.get(LEASES, "mooring-controllers", "kube-system")
                    assert lease["spec"]["holderIdentity"] not in ("", leader)
                    assert await asyncio.to_thread(two.end) == 0
                    lease = await client.get(LEASES, "mooring-controllers", "kube-system")
                    assert lease["spec"]["holderIdentity"] == ""
        events = await client.list(EVENTS, "kube-system")
        assert {event["reportingComponent"] for event in events if event["reason"] == "LeaderElection"} == {
            "mooring-controllers"
        }


async def test_health_is_served_to_all_and_nothing_else():
    (port,) = free_ports(1)
    async with a_server() as (server, _, _):
        with private_home() as home:
            server.write_kubeconfig(home / "k")
            flags = ("--kubeconfig=k", f"--secure-port={port}", "--leader-elect=false")
            with Program("controllers", *flags, home=home) as program:
                await asyncio.to_thread(program.mentions, "Ready: controllers")
                assert await asyncio.to_thread(fetch, port, "/livez") == (200, "ok")
                assert await asyncio.to_thread(fetch, port, "/readyz?verbose") == (
                    200,
                    "[+]shutdown ok\nreadyz check passed\n",
                )
                assert (await asyncio.to_thread(fetch, port, "/metrics"))[0] in (401, 403)
                assert await asyncio.to_thread(program.end) == 0
