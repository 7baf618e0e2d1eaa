"""Queries the schedulers of this user and machine over their sockets.

Folder, socket and process at the other end must be this user's: the folder's name is no secret, and another user may
have made it first. A response is bounded in size, time and nesting. A problem is a sentence; a command continues
without that response.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from mooring.base.nesting import decode, refuse_deep
from mooring.scheduler.introspection.socket_folder import (
    check_socket,
    check_socket_folder,
    digest,
    is_trusted,
    socket_folder,
)

RESPONSE_SECONDS = 5.0
MOST_RESPONSE_BYTES = 16 * 1024 * 1024
MOST_SOCKETS = 16
_CHUNK = 64 * 1024


class QueryResult(NamedTuple):
    """What came back: nothing at all where no scheduler runs."""

    responses: list[dict[str, Any]]
    problems: list[str]
    is_unresponsive: bool = False
    """Whether a scheduler of this user runs, but returned no valid response."""


class _Unusable(Exception):
    """A sentence about a socket."""


class _NoResponse(_Unusable):
    """A sentence about a scheduler of this user that did not respond, or whose response is invalid."""


def query(server: str, request: dict[str, Any]) -> QueryResult:
    """The responses of all schedulers of this user and machine that serve this API server."""
    result = QueryResult([], [])
    folder = socket_folder()
    try:
        check_socket_folder(folder)
        paths = sorted(folder.glob(f"{digest(server)}-*.sock"))
    except FileNotFoundError:
        return result
    except OSError as error:
        result.problems.append(f"no scheduler on this machine can be queried: {error.strerror or error}")
        return result
    is_unresponsive = False
    for path in paths[:MOST_SOCKETS]:
        try:
            line = _response(path, json.dumps(request).encode() + b"\n")
            if line:
                result.responses.append(_read(line, path))
        except _Unusable as error:
            is_unresponsive |= isinstance(error, _NoResponse)
            result.problems.append(str(error))
        except OSError as error:
            is_unresponsive |= isinstance(error, TimeoutError)
            result.problems.append(f"{path} cannot be queried: {error.strerror or error}")
    if len(paths) > MOST_SOCKETS:
        result.problems.append(f"{folder} holds {len(paths)} sockets of this cluster; {MOST_SOCKETS} were tried")
    return result._replace(is_unresponsive=is_unresponsive)


def _response(path: Path, request: bytes) -> bytes:
    """The line that comes back; nothing from a scheduler that is gone."""
    deadline = time.monotonic() + RESPONSE_SECONDS
    with contextlib.suppress(FileNotFoundError):  # it has just ended
        check_socket(path)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(RESPONSE_SECONDS)
            try:
                connection.connect(str(path))
            except ConnectionRefusedError:
                # Its scheduler was killed before it removed the socket.
                os.unlink(path)
                return b""
            if not is_trusted(connection):
                raise _Unusable(f"{path} is served by another user and was not queried; remove it")
            with contextlib.suppress(ConnectionError):
                connection.sendall(request)
                if line := _line(connection, path, deadline):
                    return line
            if path.exists():  # it has not just ended
                raise _NoResponse(f"the scheduler at {path} closed the connection without a response; try again")
    return b""


def _line(connection: socket.socket, path: Path, deadline: float) -> bytes:
    found = bytearray()
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise _NoResponse(f"the scheduler at {path} did not respond within {RESPONSE_SECONDS:g} s")
        connection.settimeout(left)
        try:
            chunk = connection.recv(_CHUNK)
        except TimeoutError:
            continue
        found += chunk
        if not chunk or b"\n" in chunk:
            return bytes(found).partition(b"\n")[0]
        if len(found) > MOST_RESPONSE_BYTES:
            raise _NoResponse(f"the scheduler at {path} responded with more than {MOST_RESPONSE_BYTES} bytes")


def _read(line: bytes, path: Path) -> dict[str, Any]:
    try:
        refuse_deep(line)
        response: dict[str, Any] = decode(line, dict[str, Any])
    except msgspec.DecodeError as error:
        raise _NoResponse(f"the scheduler at {path} sent an invalid response: {error}") from error
    return response
