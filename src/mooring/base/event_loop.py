"""The event loop of our programs: uvloop's, where there is one."""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Any

if sys.platform == "win32":
    EventLoop = asyncio.ProactorEventLoop
else:
    import uvloop

    class EventLoop(uvloop.Loop):
        """uvloop's, but a descriptor is closed once, also where a TLS handshake fails."""

        async def create_connection(self, *args: Any, sock: socket.socket | None = None, **options: Any) -> Any:
            """As documented. The socket is the loop's from now on, also where this fails.

            If the server has reset the connection before the handshake begins, uvloop (0.23) closes the descriptor
            and leaves it to the socket as well. The socket closes it again when it is collected: by then the number
            may be that of another connection. That one falls silent, nothing can be connected any more ("File
            descriptor 14 is used by transport"), or libuv aborts the process.
            """
            try:
                return await super().create_connection(*args, sock=sock, **options)
            except BaseException:
                if sock is not None:
                    sock.detach()
                raise
