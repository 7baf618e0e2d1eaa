"""Where the demo's network traffic is measured: a stand-in, or the real Prometheus on the PATH if that is wanted.

The simulated nodes have no network. What they "received" comes from an exporter here, which the real Prometheus
scrapes; the stand-in responds to the plugin's query with the same figures.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import ClientError, ClientSession, web

from mooring.base.errors import Fault, OperatorMistake

RECEIVED = {"node-1": 1_000_000, "node-2": 1_400_000, "node-3": 1_200_000}
METRIC = "node_network_receive_bytes_total"
PATIENCE_SECONDS = 20.0

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
LOOK_AGAIN_SECONDS = 0.1


@dataclass(frozen=True)
class Measured:
    address: str
    by: str
    """A description of the program at the address."""
    is_known: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the plugin has received a response, as far as that can be seen from here."""


@contextlib.asynccontextmanager
async def measured_traffic(*, with_prometheus: bool) -> AsyncIterator[Measured]:
    """A server for the Prometheus query about the simulated nodes, while inside."""
    if not with_prometheus:
        stand_in = StandIn()
        async with _serving(stand_in.serve) as address:
            by = "a stand-in for Prometheus (--prometheus starts the real one)"
            yield Measured(address, by, stand_in.was_received)
        return
    program = shutil.which("prometheus")
    if program is None:
        raise OperatorMistake("There is no `prometheus` on the PATH; leave out --prometheus.")
    async with _serving(_expose) as exporter, _prometheus(program, exporter) as address:
        measured = Measured(address, f"the real {program}, which scrapes an exporter of the demo")
        measured.is_known.set()
        yield measured


class StandIn:
    """Serves the plugin's query, and no other."""

    def __init__(self) -> None:
        self.was_received = asyncio.Event()
        self._queries = 0

    async def serve(self, _: web.BaseRequest) -> web.StreamResponse:
        self._queries += 1
        if self._queries > 1:
            # A second query shows that the first response was received.
            self.was_received.set()
        result = [{"metric": {"kubernetes_node": node}, "value": [0, str(sent)]} for node, sent in RECEIVED.items()]
        return web.json_response({"status": "success", "data": {"resultType": "vector", "result": result}})


@contextlib.asynccontextmanager
async def _serving(handler: Handler) -> AsyncIterator[str]:
    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def _expose(_: web.BaseRequest) -> web.StreamResponse:
    lines = [f'{METRIC}{{device="ens192",kubernetes_node="{node}"}} {sent}\n' for node, sent in RECEIVED.items()]
    return web.Response(text=f"# TYPE {METRIC} counter\n" + "".join(lines))


@contextlib.asynccontextmanager
async def _prometheus(program: str, exporter: str) -> AsyncIterator[str]:
    with tempfile.TemporaryDirectory(prefix="mooring-demo-") as folder:
        scrape = {"job_name": "nodes", "static_configs": [{"targets": [exporter.removeprefix("http://")]}]}
        config = {"global": {"scrape_interval": "1s"}, "scrape_configs": [scrape]}
        file = Path(folder) / "prometheus.yaml"
        file.write_text(json.dumps(config), encoding="utf-8")
        port = _free_port()
        process = await asyncio.create_subprocess_exec(
            program,
            *[f"--config.file={file}", f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{port}"],
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            address = f"http://127.0.0.1:{port}"
            await _until_it_has_samples(address, process)
            yield address
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def _until_it_has_samples(address: str, process: asyncio.subprocess.Process) -> None:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS), ClientSession() as http:
            while process.returncode is None:
                with contextlib.suppress(ClientError, ValueError, KeyError):
                    async with http.get(f"{address}/api/v1/query", params={"query": METRIC}) as response:
                        if len((await response.json())["data"]["result"]) == len(RECEIVED):
                            return
                await asyncio.sleep(LOOK_AGAIN_SECONDS)
    except TimeoutError as error:
        raise Fault(f"Prometheus at {address} scraped nothing within {PATIENCE_SECONDS:g} s.") from error
    raise Fault(
        f"Prometheus exited with {process.returncode} before it served requests; `prometheus --version` should work."
    )
