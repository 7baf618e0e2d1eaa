"""An embedded API server inside a bounded child, and a raw client for what no HTTP library would send."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.hostile.random_requests import Request

from mooring.apiserver import EmbeddedApiServer


@dataclass
class Response:
    code: int
    body: bytes
    cpu_seconds: float = 0.0


class RawClient:
    """One kept connection; opens another when the server has closed it."""

    def __init__(self, server: EmbeddedApiServer) -> None:
        self._server = server
        self._context = ssl.create_default_context(cadata=server.ca_pem)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self._server.host, self._server.port, ssl=self._context, limit=2**26)

    def head(self, request: Request, *, token: bool = True) -> bytes:
        lines = [f"{request.method} {request.target} HTTP/1.1", "Host: x"]
        lines += [f"{name}: {value}" for name, value in request.headers.items()]
        if token:
            lines.append(f"Authorization: Bearer {self._server.token}")
        if request.body or request.method not in ("GET", "HEAD", "OPTIONS"):
            lines.append(f"Content-Length: {len(request.body)}")
        return "\r\n".join(lines).encode() + b"\r\n\r\n"

    async def send(self, request: Request) -> Response:
        """The response and what CPU time the whole process used until it came."""
        if self._streams is None:
            self._streams = await self.connect()
        reader, writer = self._streams
        began = time.process_time()
        writer.write(self.head(request) + request.body)
        try:
            code, body, is_kept = await _read_response(reader, request.method)
        except (asyncio.IncompleteReadError, ConnectionError):
            code, body, is_kept = 0, b"", False
        if not is_kept:
            writer.close()
            self._streams = None
        return Response(code, body, time.process_time() - began)


async def _read_response(reader: asyncio.StreamReader, method: str) -> tuple[int, bytes, bool]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status, *lines = head.split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    body = b""
    if method == "HEAD":
        pass
    elif headers.get("transfer-encoding") == "chunked":
        while length := int(await reader.readline(), 16):
            body += await reader.readexactly(length)
            await reader.readline()
        await reader.readline()
    else:
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    is_kept = status.startswith("HTTP/1.1") and headers.get("connection") != "close"
    return int(status.split()[1]), body, is_kept


@asynccontextmanager
async def a_server() -> AsyncIterator[tuple[EmbeddedApiServer, RawClient]]:
    server = EmbeddedApiServer()
    await server.start()
    try:
        yield server, RawClient(server)
    finally:
        await server.stop()
