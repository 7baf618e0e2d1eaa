"""`mooring run` goes on when the API server comes back: a link in between is cut and mended."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import yaml
from tests.cli.clusters import a_server, create_node, create_pod
from tests.cli.programs import Program, private_home

from mooring.apiserver import EmbeddedApiServer
from mooring.objects import Kind

LEASES = Kind("coordination.k8s.io", "v1", "Lease", "leases")
QUICK = (
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms",
)


class Link:
    """A TCP connection to the server that can be cut: connections break, and new ones are refused."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._writers: set[asyncio.StreamWriter] = set()
        self._listener: asyncio.Server | None = None
        self.port = 0

    async def mend(self) -> None:
        self._listener = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        assert self._listener is not None
        self._listener.close()
        for writer in list(self._writers):
            writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        async with asyncio.TaskGroup() as pumps:
            pumps.create_task(self._pump(reader, back))
            pumps.create_task(self._pump(there, writer))

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        self._writers.add(sink)
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
        self._writers.discard(sink)
        sink.close()


def write_kubeconfig(path: Path, server: EmbeddedApiServer, link: Link) -> None:
    kubeconfig = server.kubeconfig()
    kubeconfig["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{link.port}"
    path.write_text(yaml.safe_dump(kubeconfig), encoding="utf-8")


def holds_writes_back(program: Program, times: int) -> None:
    """Wait until it does so for the so-manieth time."""
    words = "Failed to renew the lease in time; nothing is written"
    program.until_line(lambda _: sum(words in line for line in program.err) == times, what=words)


async def test_pods_that_came_while_the_server_was_lost_are_scheduled_when_it_is_back():
    async with a_server() as (server, client, placed):
        await create_node(client, "only")
        link = Link(server.port)
        await link.mend()
        with private_home() as home:
            write_kubeconfig(home / "k", server, link)
            with Program("run", "--kubeconfig=k", "--leader-elect=false", "-v=4", home=home) as program:
                await asyncio.to_thread(program.ready)
                await create_pod(client, "before")
                assert await placed.on("before") == "only"

                await link.cut()
                await create_pod(client, "meanwhile")
                await asyncio.to_thread(program.mentions, f"127.0.0.1:{link.port}")
                assert program.process.poll() is None
                assert not placed.nodes.get("meanwhile")

                await link.mend()
                assert await placed.on("meanwhile") == "only"
                assert await asyncio.to_thread(program.end) == 0
        await link.cut()


async def test_a_leader_that_lost_the_server_for_longer_than_its_lease_goes_on_when_it_is_back():
    async with a_server() as (server, client, placed):
        await create_node(client, "only")
        link = Link(server.port)
        await link.mend()
        with private_home() as home:
            write_kubeconfig(home / "k", server, link)
            with Program("run", "--kubeconfig=k", *QUICK, "-v=2", home=home) as program:
                await asyncio.to_thread(program.ready)
                before = await client.get(LEASES, "kube-scheduler", "kube-system")
                await link.cut()
                await create_pod(client, "meanwhile")
                await asyncio.to_thread(holds_writes_back, program, 1)
                assert program.process.poll() is None

                await link.mend()
                assert await placed.on("meanwhile") == "only"
                await asyncio.to_thread(program.mentions, "Renewed the lease; no other replica had taken it")
                after = await client.get(LEASES, "kube-scheduler", "kube-system")
                for field in ("holderIdentity", "leaseTransitions"):
                    assert after["spec"][field] == before["spec"][field]

                await link.cut()
                await asyncio.to_thread(holds_writes_back, program, 2)
                usurped = {"spec": {"holderIdentity": "usurper"}}
                await client.patch(LEASES, "kube-scheduler", "kube-system", usurped, form="merge")
                await create_pod(client, "late")
                await link.mend()
                assert await asyncio.to_thread(program.ended) == 1
                assert "is held by usurper now" in program.written()
                assert not placed.nodes.get("late")
        await link.cut()
