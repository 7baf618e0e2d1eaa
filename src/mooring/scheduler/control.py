"""A local socket on which a running scheduler answers questions about itself, to its own user only.

One line of JSON asks (`{"explain": "default/web-0"}`), one line answers. The socket's name holds a digest of the API
server's address, so that a command that reads the same kubeconfig finds the schedulers that serve that cluster. A
question is bounded in size, time and nesting; so is the number of connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mooring.base.log import Log
from mooring.base.nesting import decode, refuse_deep
from mooring.scheduler.control_folder import digest, is_trusted, make_socket_folder, peer_uid

Answer = Callable[[dict[str, Any]], dict[str, Any]]

QUESTION_SECONDS = 5.0
MOST_QUESTION_BYTES = 64 * 1024
MOST_CONVERSATIONS = 16

_log = Log("control")


class ControlSocket:
    """Answers while it is open."""

    def __init__(self, server: str, answer: Answer) -> None:
        self._name = f"{digest(server)}-{os.getpid()}-{id(self):x}.sock"
        self._answer = answer
        self._path: Path | None = None
        self._listener: asyncio.Server | None = None
        self._conversations: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Listen. Without a place for the socket the scheduler works all the same, and says so."""
        try:
            self._path = make_socket_folder() / self._name
            self._path.unlink(missing_ok=True)
            self._listener = await asyncio.start_unix_server(
                self._welcome, path=str(self._path), limit=MOST_QUESTION_BYTES
            )
            self._path.chmod(0o600)
        except OSError as error:
            _log.warning("`mooring explain` cannot ask this scheduler: no control socket", error=error)

    async def close(self) -> None:
        listener, self._listener = self._listener, None
        if listener is None:
            return
        listener.close()
        # Who has connected and asks nothing must not hold up the end.
        for conversation in self._conversations:
            conversation.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)
        await listener.wait_closed()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = writer.get_extra_info("socket")
        if self._listener is None or len(self._conversations) >= MOST_CONVERSATIONS:
            # Accepted in the moment in which we closed, or one too many: another try comes later.
            writer.transport.abort()
            return
        if not is_trusted(connection):
            _log.warning("Refused a question of another user on the control socket", uid=peer_uid(connection))
            writer.transport.abort()
            return
        conversation = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._conversations.add(conversation)
        conversation.add_done_callback(self._conversations.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(ConnectionError):
                async with asyncio.timeout(QUESTION_SECONDS):
                    writer.write(await self._response(reader) + b"\n")
                    await writer.drain()
                    writer.close()
                    await writer.wait_closed()
        except TimeoutError:
            _log.v(2).info("A question on the control socket took too long", seconds=QUESTION_SECONDS)
        finally:
            # What has not been read by now is dropped: closing alone would keep it for as long as the reader stays.
            writer.transport.abort()

    async def _response(self, reader: asyncio.StreamReader) -> bytes:
        try:
            line = await reader.readline()
        except ValueError:
            return json.dumps({"error": f"a question has at most {MOST_QUESTION_BYTES} bytes"}).encode()
        return self._answered(line)

    def _answered(self, line: bytes) -> bytes:
        try:
            refuse_deep(line)
            return json.dumps(self._answer(decode(line, dict[str, Any]))).encode()
        except (ValueError, LookupError, TypeError) as error:
            return json.dumps({"error": f"cannot answer that: {error}"}).encode()
