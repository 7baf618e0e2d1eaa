"""Two thousand pages at once, without browsers: each requests the cluster and the nodes, and keeps a stream open."""

import asyncio
import contextlib
import re
import resource
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.real_browser.served import Served

CALLS = ("/cluster", "/nodes", "/stream")
RESPONSE_SECONDS = 60.0


@dataclass
class Load:
    """What the clients got, and what they cost the server."""

    statuses: Counter[str] = field(default_factory=Counter)
    """By call: "/nodes 200"; "closed" where the server ended the connection before a response."""
    texts: set[str] = field(default_factory=set)
    """Bodies of refusals."""
    memory_before: int = 0
    memory_peak: int = 0


def resident_bytes(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="utf-8"))
    assert found is not None
    return int(found[1]) * 1024


async def load(served: Served, clients: int, *, at_once: int) -> Load:
    """So many clients connect at once; streams stay open until every client has its responses."""
    # Both ends of the connections are on this machine; this is our end.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    pid = served.program.process.pid
    found = Load(memory_before=resident_bytes(pid))
    ready = 0
    everyone = asyncio.Event()
    turn = asyncio.Semaphore(at_once)

    async def client() -> None:
        nonlocal ready
        async with contextlib.AsyncExitStack() as open_streams:
            for call in CALLS:
                async with turn:
                    status = await _request(served, call, found, open_streams)
                found.statuses[f"{call} {status}"] += 1
            ready += 1
            if ready == clients:
                everyone.set()
            await everyone.wait()

    async def watch() -> None:
        while True:
            found.memory_peak = max(found.memory_peak, resident_bytes(pid))
            await asyncio.sleep(0.05)

    watching = asyncio.create_task(watch())
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(clients):
                group.create_task(client())
    finally:
        watching.cancel()
    return found


async def _request(served: Served, call: str, found: Load, open_streams: contextlib.AsyncExitStack) -> str:
    host = served.origin.removeprefix("http://")
    try:
        async with asyncio.timeout(RESPONSE_SECONDS):
            reader, writer = await asyncio.open_connection(*host.split(":"))
            open_streams.callback(writer.close)
            head = f"GET /api/v1{call} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {served.token}\r\n"
            writer.write(f"{head}Connection: close\r\n\r\n".encode())
            status = (await reader.readline()).decode().split(" ")[1:2]
            if call != "/stream" or status != ["200"]:
                body = await reader.read()
                writer.close()
                if status not in ([], ["200"]):
                    found.texts.add(body.partition(b"\r\n\r\n")[2].decode())
    except TimeoutError:
        return "timeout"
    except ConnectionError:
        return "closed"
    return status[0] if status else "closed"
