"""An HTTP proxy in front of an embedded API server that executes so many bindings and holds the others back."""

from __future__ import annotations

import asyncio
import ssl
from types import TracebackType

import aiohttp
from aiohttp import web
from tests.cli.programs import PATIENCE_SECONDS
from tests.real_apiserver.failing_writes import HOP_BY_HOP, passed_on

from mooring.apiserver import EmbeddedApiServer
from mooring.apiserver.server import kubeconfig
from mooring.base.documents import written
from mooring.base.tls import make_identity


class HeldBindings:
    """Serves on a port of its own, in the running event loop.

    Of the last binding that is executed the response is held back as well: the scheduler does not know of it.
    """

    def __init__(self, server: EmbeddedApiServer) -> None:
        self._server = server
        self._identity = make_identity(["127.0.0.1"], "test")
        self._limit: int | None = None
        self._begun = self._held = 0
        self._changed = asyncio.Event()
        self.executed: list[str] = []
        """The pods whose bindings were executed with success."""

    async def __aenter__(self) -> HeldBindings:
        trusted = ssl.create_default_context(cadata=self._server.ca_pem)
        # No timeout for a watch without events, and no decompression: bytes are forwarded as they arrive.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=trusted, limit=0),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(),
        )
        handler = web.Server(self._handle, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(handler, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._identity.ssl_context()).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._runner.cleanup()
        await self._session.close()

    def kubeconfig_text(self) -> str:
        url = f"https://127.0.0.1:{self._runner.addresses[0][1]}"
        return written(kubeconfig(url, self._server.token, self._identity.ca_pem))

    def execute_only(self, count: int) -> None:
        """From now on."""
        self._limit, self._begun, self._held = count, 0, 0

    def execute_all(self) -> None:
        self._limit = None

    async def until_held(self, *, executed: int, held: int) -> None:
        """Until so many bindings are executed, and so many requests or responses are held back."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self.executed) < executed or self._held < held:
                self._changed.clear()
                await self._changed.wait()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        left = self._bindings_left(request)
        if left is not None and left <= 0:
            await self._hold()
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP}
        url = self._server.url + request.raw_path
        async with self._session.request(request.method, url, headers=headers, data=body or None) as received:
            if _is_binding(request) and received.status == 201:
                self.executed.append(request.path.split("/")[-2])
                self._changed.set()
            if left == 1:
                await self._hold()
            return await passed_on(request, received)

    def _bindings_left(self, request: web.BaseRequest) -> int | None:
        """How many may be executed, this one among them; None: it is no binding, or there is no limit."""
        if self._limit is None or not _is_binding(request):
            return None
        self._begun += 1
        return self._limit - self._begun + 1

    async def _hold(self) -> None:
        """Until the client is gone: then this is cancelled."""
        self._held += 1
        self._changed.set()
        await asyncio.Event().wait()


def _is_binding(request: web.BaseRequest) -> bool:
    return request.method == "POST" and request.path.endswith("/binding")
