"""A local socket on which a running scheduler answers questions about itself, to its own user only.

One line of JSON asks (`{"explain": "default/web-0"}`), one line answers. The socket's name holds a digest of the API
server's address, so that a command that reads the same kubeconfig finds the schedulers that serve that cluster. A
question is bounded in size, time and nesting; so is the number of connections. While a plugin holds up the scheduler,
the answer names the plugin.
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

Answer = Callable[[dict[str, Any]], dict[str, Any]]

QUESTION_SECONDS = 5.0
PATIENCE_SHARE = 0.8
"""Of that time: how long the loop is waited for. Then what keeps it is the answer."""
LOOK_SECONDS, HELD_UP_SECONDS, CLOSE_SECONDS = 0.1, 1.0, 1.0
MOST_QUESTION_BYTES = 64 * 1024
MOST_CONVERSATIONS = 16

_log = Log("control")


class ExplainSocket:
    """Answers while it is open: on a thread of its own, which asks the loop that opened it."""

    def __init__(self, server: str, answer: Answer, held_up: Callable[[], HeldUp | None] = lambda: None) -> None:
        """`held_up` says what keeps the loop from answering."""
        self._name = f"{digest(server)}-{os.getpid()}-{id(self):x}.sock"
        self._answer = answer
        self._held_up = held_up
        self._path: Path | None = None
        self._is_listening = False
        self._conversations: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._thread = SideThread("control socket", self._run)

    async def open(self) -> None:
        """Listen. Without a place for the socket the scheduler works all the same, and says so."""
        self._loop = asyncio.get_running_loop()
        try:
            self._thread.start()
        except OSError as error:
            _log.warning("`mooring explain` cannot ask this scheduler: no control socket", error=error)

    async def close(self) -> None:
        await in_thread(partial(self._thread.stop, CLOSE_SECONDS))

    def remove(self) -> None:
        """Remove the socket's file, on any thread: the process is about to end."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    async def _run(self, has_begun: Callable[[], None]) -> None:
        self._path = make_socket_folder() / self._name
        self._path.unlink(missing_ok=True)
        listener = await asyncio.start_unix_server(self._welcome, path=str(self._path), limit=MOST_QUESTION_BYTES)
        try:
            self._path.chmod(0o600)
            self._is_listening = True
            has_begun()
            await asyncio.Event().wait()
        finally:
            self._is_listening = False
            self.remove()
            # First no connection more, then an end to those that are there: asyncio loses one that it accepts after
            # `close`. Who has connected and asks nothing must not hold up the end.
            for listening in listener.sockets:
                asyncio.get_running_loop().remove_reader(listening.fileno())
            for conversation, writer in self._conversations.items():
                conversation.cancel()
                writer.transport.abort()
            if others := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(others)
            listener.close()
            await listener.wait_closed()

    def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = writer.get_extra_info("socket")
        if not self._is_listening or len(self._conversations) >= MOST_CONVERSATIONS:
            # Accepted in the moment in which we closed, or one too many: another try comes later.
            writer.transport.abort()
            return
        if not is_trusted(connection):
            _log.warning("Refused a question of another user on the control socket", uid=peer_uid(connection))
            writer.transport.abort()
            return
        conversation = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._conversations[conversation] = writer
        conversation.add_done_callback(self._conversations.pop)

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
        return await self._answered(line)

    async def _answered(self, line: bytes) -> bytes:
        try:
            refuse_deep(line)
            return json.dumps(await self._asked(decode(line, dict[str, Any]))).encode()
        except (ValueError, LookupError, TypeError) as error:
            return json.dumps({"error": f"cannot answer that: {error}"}).encode()

    async def _asked(self, question: dict[str, Any]) -> dict[str, Any]:
        """The loop's answer; or what keeps it from answering."""

        async def answer() -> dict[str, Any]:
            return self._answer(question)

        answering = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(answer(), self._loop))
        deadline = asyncio.get_running_loop().time() + QUESTION_SECONDS * PATIENCE_SHARE
        while asyncio.get_running_loop().time() < deadline:
            await asyncio.wait([answering], timeout=LOOK_SECONDS)
            if answering.done():
                return answering.result()
            held_up = self._held_up()
            if held_up is not None and held_up.seconds >= HELD_UP_SECONDS:
                break
        answering.cancel()
        return {"heldUp": held_up._asdict() if (held_up := self._held_up()) is not None else None}
