"""A local socket on which a running scheduler serves `mooring explain`, to its own user only.

One line of JSON is the request (`{"explain": "default/web-0"}`), one line the response. The socket's name holds a
digest of the API server's address, so that a command that reads the same kubeconfig finds the schedulers that serve
that cluster. A request is bounded in size, time and nesting; so is the number of connections. While a plugin blocks
the scheduler, the response names the plugin.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from mooring.base.log import Log
from mooring.base.nesting import decode, refuse_deep
from mooring.scheduler.election.side_thread import SideThread, in_thread
from mooring.scheduler.introspection.socket_folder import digest, is_trusted, make_socket_folder, peer_uid
from mooring.scheduler.plugin_runtime.watchdog import HeldUp

Respond = Callable[[dict[str, Any]], dict[str, Any]]

REQUEST_SECONDS = 5.0
PATIENCE_SHARE = 0.8
"""Of that time: how long the loop is waited for. Then the response is what blocks it."""
LOOK_SECONDS, HELD_UP_SECONDS, CLOSE_SECONDS = 0.1, 1.0, 1.0
MOST_REQUEST_BYTES = 64 * 1024
MOST_CONNECTIONS = 16

_log = Log("control")


class ExplainSocket:
    """Serves while it is open: on a thread of its own, which calls the loop that opened it."""

    def __init__(self, server: str, respond: Respond, held_up: Callable[[], HeldUp | None] = lambda: None) -> None:
        """`held_up` returns what blocks the loop."""
        self._name = f"{digest(server)}-{os.getpid()}-{id(self):x}.sock"
        self._respond = respond
        self._held_up = held_up
        self._path: Path | None = None
        self._is_listening = False
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = SideThread("control socket", self._run)

    async def open(self) -> None:
        """Listen. Without a place for the socket the scheduler works all the same, and logs that."""
        self._loop = asyncio.get_running_loop()
        try:
            self._thread.start()
        except OSError as error:
            _log.warning("`mooring explain` cannot reach this scheduler: no control socket", error=error)

    async def close(self) -> None:
        await in_thread(partial(self._thread.stop, CLOSE_SECONDS))

    def remove(self) -> None:
        """Remove the socket's file, on any thread: the process is about to end."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    async def _run(self, has_begun: Callable[[], None]) -> None:
        self._path = make_socket_folder() / self._name
        self._path.unlink(missing_ok=True)
        listener = await asyncio.start_unix_server(self._accept, path=str(self._path), limit=MOST_REQUEST_BYTES)
        try:
            self._path.chmod(0o600)
            self._is_listening = True
            has_begun()
            await asyncio.Event().wait()
        finally:
            self._is_listening = False
            self.remove()
            # First stop listening, then close the open connections: asyncio loses one that it accepts after `close`. A
            # client that sends nothing must not delay the shutdown.
            for listening in listener.sockets:
                asyncio.get_running_loop().remove_reader(listening.fileno())
            for serving, writer in self._connections.items():
                serving.cancel()
                writer.transport.abort()
            if others := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(others)
            listener.close()
            await listener.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = writer.get_extra_info("socket")
        if not self._is_listening or len(self._connections) >= MOST_CONNECTIONS:
            # Accepted while closing, or beyond the limit: the client may retry.
            writer.transport.abort()
            return
        if not is_trusted(connection):
            _log.warning("Rejected a request of another user on the control socket", uid=peer_uid(connection))
            writer.transport.abort()
            return
        serving = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._connections[serving] = writer
        serving.add_done_callback(self._connections.pop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(ConnectionError):
                async with asyncio.timeout(REQUEST_SECONDS):
                    writer.write(await self._response(reader) + b"\n")
                    await writer.drain()
                    writer.close()
                    await writer.wait_closed()
        except TimeoutError:
            _log.v(2).info("Request on the control socket timed out", seconds=REQUEST_SECONDS)
        finally:
            # What has not been read by now is dropped: closing alone would keep it for as long as the reader stays.
            writer.transport.abort()

    async def _response(self, reader: asyncio.StreamReader) -> bytes:
        try:
            line = await reader.readline()
        except ValueError:
            return json.dumps({"error": f"a request has at most {MOST_REQUEST_BYTES} bytes"}).encode()
        return await self._respond_to(line)

    async def _respond_to(self, line: bytes) -> bytes:
        try:
            refuse_deep(line)
            return json.dumps(await self.respond(decode(line, dict[str, Any]))).encode()
        except (ValueError, LookupError, TypeError) as error:
            return json.dumps({"error": f"invalid request: {error}"}).encode()

    async def respond(self, request: dict[str, Any]) -> dict[str, Any]:
        """What the scheduler's loop responds; or what blocks it. On the loop of any thread."""
        if self._loop is None:
            return {"heldUp": None}

        async def respond() -> dict[str, Any]:
            return self._respond(request)

        response = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(respond(), self._loop))
        deadline = asyncio.get_running_loop().time() + REQUEST_SECONDS * PATIENCE_SHARE
        while asyncio.get_running_loop().time() < deadline:
            await asyncio.wait([response], timeout=LOOK_SECONDS)
            if response.done():
                return response.result()
            held_up = self._held_up()
            if held_up is not None and held_up.seconds >= HELD_UP_SECONDS:
                break
        response.cancel()
        return {"heldUp": held_up._asdict() if (held_up := self._held_up()) is not None else None}
