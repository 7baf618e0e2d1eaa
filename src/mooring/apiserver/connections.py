"""Limits on the connections of the embedded server.

Every local user reaches the port; only requests with the token are served. A connection over which no authenticated
request has come in time is closed, and unauthenticated connections are closed first where there are too many.
"""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from mooring.apiserver.streaming import PIECE

MAX_CONNECTIONS = 1000
MAX_UNAUTHENTICATED = 300
"""Connections over which no authenticated request has come yet."""
AUTHENTICATION_SECONDS = 30.0
"""For a client to send an authenticated request, from the end of the TLS handshake on."""


class Connections:
    """The open connections, and which of them are unauthenticated."""

    def __init__(self) -> None:
        self._open: dict[RequestHandler, asyncio.Transport] = {}
        # Oldest first.
        self._unauthenticated: dict[RequestHandler, asyncio.TimerHandle] = {}

    def opened(self, protocol: RequestHandler, transport: asyncio.Transport) -> None:
        self._open[protocol] = transport
        loop = asyncio.get_running_loop()
        self._unauthenticated[protocol] = loop.call_later(AUTHENTICATION_SECONDS, self._abort, protocol)
        if len(self._open) > MAX_CONNECTIONS or len(self._unauthenticated) > MAX_UNAUTHENTICATED:
            self._abort(next(iter(self._unauthenticated)))

    def closed(self, protocol: RequestHandler) -> None:
        self._open.pop(protocol, None)
        self.authenticated(protocol)

    def authenticated(self, protocol: RequestHandler) -> None:
        """An authenticated request came over this connection: it may stay."""
        if (timer := self._unauthenticated.pop(protocol, None)) is not None:
            timer.cancel()

    def _abort(self, protocol: RequestHandler) -> None:
        self.authenticated(protocol)
        if (transport := self._open.get(protocol)) is not None:
            transport.abort()


class BoundedServer(web.Server):
    """aiohttp's server, which reports its connections to these limits."""

    def __init__(self, handler: Any, connections: Connections, **options: Any) -> None:
        super().__init__(handler, **options)
        self._limits = connections

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        transport.set_write_buffer_limits(high=PIECE)
        self._limits.opened(handler, transport)

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        self._limits.closed(handler)
