"""`mooring nodes`: kubelets for nodes that are simulated, and never a word about others."""

from __future__ import annotations

import asyncio

from tests.cli.clusters import a_server, create_node
from tests.cli.conftest import Mooring, write
from tests.cli.programs import PATIENCE_SECONDS, Program, private_home

from mooring.client import ApiClient, Reflector
from mooring.objects import Node, Pod
from mooring.objects.object_store import Present


class Started:
    """Sees pods start; wakes the waiters for one."""

    def __init__(self) -> None:
        self._pods: dict[str, asyncio.Event] = {}

    def __getitem__(self, name: str) -> asyncio.Event:
        return self._pods.setdefault(name, asyncio.Event())

    def found(self, pod: Pod) -> None:
        self.changed(pod)

    def listed(self, present: Present) -> None: ...

    def changed(self, pod: Pod) -> None:
        if pod.status.phase == "Running":
            self[pod.name].set()

    def deleted(self, pod: Pod) -> None:
        pass


async def create_bound_pod(client: ApiClient, name: str, node: str) -> None:
    spec = {"nodeName": node, "containers": [{"name": "main", "image": "pause"}]}
    await client.create(Pod.KIND, {"metadata": {"name": name}, "spec": spec}, "default")


async def test_pods_on_simulated_nodes_run_and_others_are_not_touched():
    async with a_server() as (server, client, _):
        await create_node(client, "real")
        await create_bound_pod(client, "elsewhere", "real")
        with private_home() as home:
            server.write_kubeconfig(home / "k")
            with Program("nodes", "--kubeconfig=k", "--nodes=2", home=home) as program:
                line = await asyncio.to_thread(program.ready)
                assert line == f"Ready: 2 simulated nodes on {server.url}"
                await create_bound_pod(client, "here", "node-2")
                started = Started()
                watching = asyncio.create_task(Reflector(client, Pod, started).run())
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await started["here"].wait()
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
                assert await asyncio.to_thread(program.end) == 0, program.written()
        assert {node["metadata"]["name"] for node in await client.list(Node.KIND)} == {"node-1", "node-2", "real"}
        assert "addresses" not in (await client.get(Node.KIND, "real"))["status"]
        assert (await client.get(Pod.KIND, "elsewhere", "default"))["status"].get("phase", "Pending") == "Pending"


def test_a_file_defines_the_nodes_or_the_number_does(mooring: Mooring):
    write("nodes.yaml", "apiVersion: v1\nkind: Node\nmetadata: {name: one}\n")
    result = mooring("nodes", "--nodes=1", "--cluster=nodes.yaml")
    assert result.code == 2
    assert "--nodes and --cluster exclude each other" in result.err
