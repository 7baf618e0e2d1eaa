"""How many connections the embedded server keeps, and how long one may wait before it has sent a request of ours.

Every local user reaches the port; only those with the token are served. A connection that has not sent the token in
time is closed, and is the first to go where there are too many.
"""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from mooring.apiserver.streaming import PIECE

MOST_CONNECTIONS = 1000
MOST_STRANGERS = 300
"""Connections over which the token has not come yet."""
STRANGER_SECONDS = 30.0
"""For a client to send a request with the token, from the end of the TLS handshake on."""


class BoundedServer(web.Server):
    """aiohttp's server with these limits."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Oldest first.
        self._strangers: dict[RequestHandler, asyncio.TimerHandle] = {}

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        transport.set_write_buffer_limits(high=PIECE)
        self._strangers[handler] = self._loop.call_later(STRANGER_SECONDS, self._cut, handler)
        if len(self._connections) > MOST_CONNECTIONS or len(self._strangers) > MOST_STRANGERS:
            self._cut(next(iter(self._strangers)))

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        self.on_authenticated(handler)

    def on_authenticated(self, handler: RequestHandler) -> None:
        """A request with the token came over this connection: it may stay."""
        if (timer := self._strangers.pop(handler, None)) is not None:
            timer.cancel()

    def _cut(self, handler: RequestHandler) -> None:
        transport = self._connections.get(handler)
        self.on_authenticated(handler)
        if transport is not None:
            transport.abort()
