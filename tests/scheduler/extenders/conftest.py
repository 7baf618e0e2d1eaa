"""An extender for tests: a real HTTP server that records its requests and responds as the test sets."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from tests.scheduler.conftest import HEAD, PATIENCE_SECONDS

Handler = Callable[[dict[str, Any]], Any]


class ExtenderServer:
    """`on[verb]` is the response to requests of that verb: JSON, a `web.Response`, or something to await."""

    def __init__(self) -> None:
        self.on: dict[str, Handler] = {}
        self.requested: list[tuple[str, dict[str, Any]]] = []
        self.is_requested = asyncio.Event()
        self.url = ""

    async def respond(self, request: web.BaseRequest) -> web.StreamResponse:
        verb, args = request.path.rpartition("/")[2], json.loads(await request.read())
        assert request.method == "POST"
        assert request.content_type == "application/json"
        self.requested.append((verb, args))
        self.is_requested.set()
        response = self.on[verb](args)
        if isinstance(response, Awaitable):
            response = await response
        return response if isinstance(response, web.Response) else web.json_response(response)

    def verbs(self) -> list[str]:
        return [verb for verb, _ in self.requested]


@asynccontextmanager
async def an_extender(context: ssl.SSLContext | None = None) -> AsyncIterator[ExtenderServer]:
    server = ExtenderServer()
    runner = web.ServerRunner(web.Server(server.respond), shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    scheme = "http" if context is None else "https"
    server.url = f"{scheme}://127.0.0.1:{runner.addresses[0][1]}/extend"
    try:
        yield server
    finally:
        await runner.cleanup()


@pytest.fixture
async def extender() -> AsyncIterator[ExtenderServer]:
    async with an_extender() as server:
        yield server


def calling(*extenders: dict[str, Any]) -> str:
    """A configuration with these extenders."""
    return HEAD + f"extenders: {json.dumps(extenders)}\n"


async def soon(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not happened():  # noqa: ASYNC110  # nothing sets an event for it
            await asyncio.sleep(0.01)


def names_of(args: dict[str, Any]) -> list[str]:
    """The nodes of the request, whichever way they are sent."""
    if args["NodeNames"] is not None:
        return list(args["NodeNames"])
    return [node["metadata"]["name"] for node in args["Nodes"]["items"]]


def only(*wanted: str, **failed: dict[str, str]) -> Handler:
    """A filter that lets these nodes through, as whole nodes or by name."""

    def response(args: dict[str, Any]) -> dict[str, Any]:
        if args["NodeNames"] is not None:
            return {"NodeNames": [name for name in args["NodeNames"] if name in wanted], **failed}
        nodes = [node for node in args["Nodes"]["items"] if node["metadata"]["name"] in wanted]
        return {"Nodes": {"items": nodes}, **failed}

    return response
