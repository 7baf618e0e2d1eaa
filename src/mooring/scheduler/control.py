"""A local socket on which a running scheduler answers questions about itself, to its own user only.

One line of JSON asks (`{"explain": "default/web-0"}`), one line answers. The socket's name holds a digest of the API
server's address, so that a command that reads the same kubeconfig finds the schedulers that serve that cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mooring.base.log import Log

Answer = Callable[[dict[str, Any]], dict[str, Any]]

QUESTION_SECONDS = 5.0

_log = Log("control")


def socket_folder() -> Path:
    """A folder that only this user can enter."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) / "mooring" if runtime else Path(tempfile.gettempdir()) / f"mooring-{os.getuid()}"


def _digest(server: str) -> str:
    return hashlib.sha256(server.rstrip("/").encode()).hexdigest()[:16]


class ControlSocket:
    """Answers while it is open."""

    def __init__(self, server: str, answer: Answer) -> None:
        self._name = f"{_digest(server)}-{os.getpid()}-{id(self):x}.sock"
        self._answer = answer
        self._path: Path | None = None
        self._listener: asyncio.Server | None = None
        self._conversations: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Listen. Without a place for the socket the scheduler works all the same, and says so."""
        try:
            folder = socket_folder()
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if folder.stat().st_uid != os.getuid():
                raise PermissionError(f"{folder} belongs to another user")
            self._path = folder / self._name
            self._path.unlink(missing_ok=True)
            self._listener = await asyncio.start_unix_server(self._welcome, path=str(self._path))
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
        if self._listener is None:  # accepted in the moment in which we closed
            writer.close()
            return
        conversation = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._conversations.add(conversation)
        conversation.add_done_callback(self._conversations.discard)
        conversation.add_done_callback(lambda _: writer.close())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(QUESTION_SECONDS):
                line = await reader.readline()
                writer.write(self._answered(line) + b"\n")
                await writer.drain()

    def _answered(self, line: bytes) -> bytes:
        try:
            return json.dumps(self._answer(json.loads(line))).encode()
        except (ValueError, LookupError, TypeError) as error:
            return json.dumps({"error": f"cannot answer that: {error}"}).encode()


def ask(server: str, question: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The answers of all schedulers of this user and machine that serve this API server; none if none runs."""
    import socket

    for path in sorted(socket_folder().glob(f"{_digest(server)}-*.sock")):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(5.0)
            try:
                connection.connect(str(path))
            except OSError:
                # Its scheduler was killed before it could tidy up.
                path.unlink(missing_ok=True)
                continue
            connection.sendall(json.dumps(question).encode() + b"\n")
            with connection.makefile("rb") as answers:
                line = answers.readline()
            if line:
                yield json.loads(line)
