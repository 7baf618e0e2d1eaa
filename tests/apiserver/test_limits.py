"""Limits of the server: requests at once, slow clients, connections without the token, sizes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.apiserver.builders import a_config_map
from tests.apiserver.conftest import Client

from mooring.apiserver import EmbeddedApiServer, connections, handlers, storage
from mooring.apiserver.json_patch import json_patch
from mooring.apiserver.status import MAX_ERRORS, StatusError, invalid, required

MAPS = "/api/v1/namespaces/default/configmaps"


@asynccontextmanager
async def started() -> AsyncIterator[EmbeddedApiServer]:
    """For tests that change limits before the server starts."""
    server = EmbeddedApiServer()
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def connected(server: EmbeddedApiServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = ssl.create_default_context(cadata=server.ca_pem)
    return await asyncio.open_connection(server.host, server.port, ssl=context)


def a_head(server: EmbeddedApiServer, method: str, *headers: str) -> bytes:
    lines = [f"{method} {MAPS}/none HTTP/1.1", "Host: x", f"Authorization: Bearer {server.token}", *headers, "", ""]
    return "\r\n".join(lines).encode()


async def is_ended(reader: asyncio.StreamReader) -> bool:
    try:
        return not await reader.read()
    except ConnectionError:
        return True


async def test_more_requests_than_are_served_at_once_get_429_with_retry_after(
    api: Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(handlers, "MAX_IN_FLIGHT", 0)
    response = await api.get(MAPS)
    assert (response.code, response.body["reason"], response.headers["Retry-After"]) == (429, "TooManyRequests", "1")


async def test_a_request_that_takes_too_long_is_cut(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(handlers, "REQUEST_SECONDS", 0.3)
    async with started() as server, asyncio.timeout(connections.AUTHENTICATION_SECONDS / 2):
        arrived = asyncio.Event()
        authenticated = connections.Connections.authenticated

        def arrive(self: connections.Connections, protocol: Any) -> None:
            authenticated(self, protocol)
            arrived.set()

        monkeypatch.setattr(connections.Connections, "authenticated", arrive)
        reader, writer = await connected(server)
        writer.write(a_head(server, "PUT", "Content-Length: 100"))
        await arrived.wait()
        assert await reader.read() == b""
        writer.close()


async def test_connections_with_the_token_stay_and_others_are_closed_where_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 3)
    async with started() as server, asyncio.timeout(connections.AUTHENTICATION_SECONDS / 2):
        kept = [await connected(server) for _ in range(3)]
        for _ in range(2):
            for reader, writer in kept:
                writer.write(a_head(server, "HEAD"))
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 ")
            reader, writer = await connected(server)
            assert await is_ended(reader)
            writer.close()
        for _, writer in kept:
            writer.close()


async def test_a_connection_without_the_token_is_closed_in_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connections, "AUTHENTICATION_SECONDS", 0)
    async with started() as server, asyncio.timeout(90):
        reader, writer = await connected(server)
        assert await reader.read() == b""
        writer.close()


async def test_an_object_that_is_too_large_is_refused_and_the_old_one_stays(
    api: Client, monkeypatch: pytest.MonkeyPatch
):
    await api.post(MAPS, a_config_map("a", text="short"))
    monkeypatch.setattr(storage, "MAX_OBJECT_BYTES", 1000)
    response = await api.patch(f"{MAPS}/a", {"data": {"text": "x" * 2000}}, "merge")
    assert (response.code, response.body["reason"]) == (413, "RequestEntityTooLarge")
    assert (await api.get(f"{MAPS}/a")).body["data"] == {"text": "short"}


async def test_a_large_list_is_sent_in_pieces_and_whole(api: Client):
    for number in range(8):
        await api.post(MAPS, a_config_map(f"m{number}", text=f"{number}" * 100_000))
    found = (await api.get(MAPS)).body["items"]
    assert [item["data"]["text"] for item in found] == [f"{number}" * 100_000 for number in range(8)]
    table = await api.get(f"{MAPS}?includeObject=Object", Accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert [row["cells"][0] for row in table.body["rows"]] == [f"m{number}" for number in range(8)]
    watching = await api.watch(MAPS)
    assert await watching.seen(8) == [("ADDED", f"m{number}") for number in range(8)]


def test_a_watch_that_bytes_leave_behind_is_ended(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(storage, "WATCH_CACHE_BYTES", 1000)
    store = storage.Store()
    watch = store.watch("pods", None)
    other = store.watch("nodes", None)
    for number in range(30):
        store.create("pods", {"metadata": {"name": str(number)}})
    assert watch.failure is not None
    assert watch.failure.code == 410
    assert not other.ended
    assert sum(event.size for event in store.collection("pods").watch_cache) <= 1000


def test_a_refusal_names_the_first_errors_only():
    message = invalid("", "Pod", "a", [required(f"field{number}") for number in range(250)]).message
    assert f"field{MAX_ERRORS - 1}: Required value, and {250 - MAX_ERRORS} more errors]" in message


def patched(*operations: dict[str, Any]) -> Any:
    return json_patch({"a": [1, 2, 3], "b": {"c": None}}, list(operations))


def test_json_patch_does_what_kube_apiservers_does():
    assert patched({"op": "replace", "path": "/new", "value": 1})["new"] == 1
    assert patched({"op": "add", "path": "/a/-1", "value": 9})["a"] == [1, 2, 3, 9]
    assert patched({"op": "remove", "path": "/a/-1"})["a"] == [1, 2]
    assert patched({"op": "test", "path": "/absent", "value": None})["a"] == [1, 2, 3]
    assert patched({"op": "move", "from": "/b/c", "path": "/c"}) == {"a": [1, 2, 3], "b": {}, "c": None}
    assert patched({"op": "copy", "from": "/a", "path": "/b/d"})["b"]["d"] == [1, 2, 3]
    assert patched({"op": "add", "path": "/x~1y~0", "value": 1})["x/y~"] == 1
    assert patched({"op": "replace", "path": "", "value": {"k": 1}}) == {"k": 1}


BAD_PATCHES: dict[str, tuple[Any, int]] = {
    "no list": ({}, 400),
    "no object": ([5], 400),
    "a path that is no text": ([{"op": "add", "path": 5}], 400),
    "no path": ([{"op": "add", "value": 1}], 422),
    "an index beyond the end": ([{"op": "add", "path": "/a/4", "value": 1}], 422),
    "an index that is no number": ([{"op": "remove", "path": "/a/²"}], 422),
    "true is not one": ([{"op": "test", "path": "/a/0", "value": True}], 422),
    "a root that is no object": ([{"op": "replace", "path": "", "value": 5}], 422),
    "a list in place of the object": ([{"op": "replace", "path": "", "value": []}], 400),
    "a move out of nowhere": ([{"op": "move", "from": "/x/y", "path": "/z"}], 422),
}


@pytest.mark.parametrize(("operations", "code"), BAD_PATCHES.values(), ids=BAD_PATCHES.keys())
def test_a_json_patch_that_is_none_is_refused(operations: Any, code: int):
    with pytest.raises(StatusError) as refused:
        json_patch({"a": [1, 2, 3]}, operations)
    assert refused.value.code == code
