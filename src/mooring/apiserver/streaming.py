"""Streamed responses: what a client has not read yet is shared with other responses, not copied."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import chain

from aiohttp import web

PIECE = 64 * 1024
"""How much is handed to a connection at once, and about how much it may hold before its client reads."""
WHOLE = 256 * 1024
"""A body up to this size is written at once."""


async def streamed(request: web.BaseRequest, parts: Iterator[bytes], content_type: str) -> web.StreamResponse:
    """A response with that body: written at once where it is small, otherwise rendered while it is sent."""
    headers = {"Content-Type": content_type}
    first: list[bytes] = []
    size = 0
    for part in parts:
        first.append(part)
        size += len(part)
        if size > WHOLE and request.method != "HEAD":
            break
    else:
        return web.Response(body=b"".join(first), headers=headers)
    response = web.StreamResponse(headers=headers)
    response.enable_chunked_encoding()
    await response.prepare(request)
    await send(response, chain(first, parts))
    await response.write_eof()
    return response


async def send(response: web.StreamResponse, parts: Iterable[bytes]) -> None:
    """Write parts to a prepared response, small ones together and long ones in pieces, as fast as the client reads."""
    gathered: list[bytes] = []
    size = 0
    for part in parts:
        gathered.append(part)
        size += len(part)
        if size > PIECE:
            whole = memoryview(gathered[0] if len(gathered) == 1 else b"".join(gathered))
            gathered, size = [], 0
            for start in range(0, len(whole), PIECE):
                await response.write(bytes(whole[start : start + PIECE]))
                # A client that reads as fast as we write must not keep other requests waiting.
                await asyncio.sleep(0)
    if gathered:
        await response.write(b"".join(gathered))
