"""An HTTP proxy in front of the API server that makes writes fail: it drops their responses, or returns 504."""

from __future__ import annotations

import asyncio
import ssl
import threading
from enum import Enum
from typing import Any

import aiohttp
from aiohttp import web
from tests.real_apiserver.control_plane import ControlPlane

READS = ("GET", "HEAD")
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "host", "content-length"}


class Spoiled(Enum):
    """How a write ends."""

    NOTHING = "it succeeds"
    RESPONSE_LOST = "it is executed, and the connection is cut before the response"
    NOT_DONE_504 = "it is not executed, and returns 504"
    DONE_504 = "it is executed, and returns 504"


class FailingWrites:
    """Serves on a port of its own; `with` opens and closes it. `writes` may be set at any time, from any thread."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self._server = control_plane.url
        self._trusted = ssl.create_default_context(cadata=control_plane.ca_pem)
        self._shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._shown.load_cert_chain(control_plane.folder / "certificate.pem", control_plane.folder / "key.pem")
        self.writes = Spoiled.NOTHING
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._is_open, self._over = threading.Event(), asyncio.Event()

    def __enter__(self) -> FailingWrites:
        self._thread.start()
        self._is_open.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        connector = aiohttp.TCPConnector(ssl=self._trusted, limit=0)
        # No decompression, and no timeout for a watch without events: bytes are forwarded as they arrive.
        async with aiohttp.ClientSession(
            connector=connector, auto_decompress=False, timeout=aiohttp.ClientTimeout()
        ) as self._session:
            runner = web.ServerRunner(
                web.Server(self._handle, handler_cancellation=True, access_log=None), shutdown_timeout=0.1
            )
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=self._shown).start()
            self.port = runner.addresses[0][1]
            self._is_open.set()
            await self._over.wait()
            await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        spoiled = self.writes if request.method not in READS else Spoiled.NOTHING
        body = await request.read()
        if spoiled is Spoiled.NOT_DONE_504:
            return _gateway_timeout()
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP}
        try:
            async with self._session.request(
                request.method, self._server + request.raw_path, headers=headers, data=body or None
            ) as received:
                if spoiled is not Spoiled.NOTHING:
                    await received.read()
                    return _gateway_timeout() if spoiled is Spoiled.DONE_504 else cut(request)
                return await passed_on(request, received)
        except (aiohttp.ClientError, OSError):
            return cut(request)


async def passed_on(request: web.BaseRequest, received: aiohttp.ClientResponse) -> web.StreamResponse:
    headers: Any = {name: value for name, value in received.headers.items() if name.lower() not in HOP_BY_HOP}
    response = web.StreamResponse(status=received.status, headers=headers)
    await response.prepare(request)
    async for chunk in received.content.iter_any():
        await response.write(chunk)
    await response.write_eof()
    return response


def cut(request: web.BaseRequest) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=502)


def _gateway_timeout() -> web.Response:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Timeout", "code": 504}
    return web.json_response(status | {"message": "Timeout: request did not complete within the timeout"}, status=504)
