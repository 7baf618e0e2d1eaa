"""The page's port under clients that want too much: half requests, floods, streams that are not read."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from tests.web.pages import mirrored, served

from mooring.base.gate import GateLimits
from mooring.web import stream
from mooring.web.server import WebOptions


@pytest.fixture
def mirror():
    with mirrored() as mirror:
        yield mirror


async def opened(page, data: bytes):
    reader, writer = await asyncio.open_connection("127.0.0.1", page.server.port)
    writer.write(data)
    return reader, writer


async def test_half_requests_of_many_browsers_do_not_keep_others_out(mirror):
    options = WebOptions(limits=GateLimits(connections=32, connections_of_a_client=16))
    async with served(mirror, options) as page:
        writers = [(await opened(page, b"GET / HTTP/1.1\r\nHost: x"))[1] for _ in range(200)]
        assert (await page.get("cluster"))["counts"]["nodes"] == 2
        for writer in writers:
            writer.close()


async def test_a_flood_of_requests_is_refused_with_a_time_to_wait(mirror):
    options = WebOptions(requests_per_second=0.001, burst_of_requests=5)
    async with served(mirror, options) as page:
        statuses = []
        for _ in range(8):
            async with page.raw("api/v1/cluster", headers=page.headers) as response:
                statuses.append(response.status)
                has_time = "Retry-After" in response.headers
        assert statuses == [200] * 5 + [429] * 3
        assert has_time
        # The files of the page still load, so that it can show why.
        async with page.raw("") as response:
            assert response.status == 200


async def test_streams_that_are_not_read_keep_a_bounded_number_of_events(mirror, monkeypatch):
    monkeypatch.setattr(stream, "MOST_BUFFERED", 10)
    async with served(mirror) as page:
        request = f"GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1:{page.server.port}\r\n"
        request += f"Authorization: Bearer {page.token}\r\n\r\n"
        reader, writer = await opened(page, request.encode())
        async with asyncio.timeout(10):
            await reader.readuntil(b"event: cluster")
        [client] = page.api.streams._clients
        for number in range(100):
            client.put(b"event: decision\ndata: %d\n\n" % number)
            assert len(client.buffer) <= 10
        async with asyncio.timeout(10):
            await reader.readuntil(b"event: resync")
        writer.close()


REQUESTS = {
    "no HTTP": b"\x16\x03\x01\x02\x00",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "an absolute address of another site": b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "a head without an end": b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000,
    "a body that is longer than announced": b"POST /api/v1/what-if HTTP/1.1\r\nContent-Length: 1\r\n\r\n"
    + b"x" * 5_000,
    "a path that is no UTF-8": b"GET /api/v1/pods/%ff%fe/%00 HTTP/1.1\r\nHost: x\r\n\r\n",
}


@pytest.mark.parametrize("request_bytes", REQUESTS.values(), ids=REQUESTS.keys())
async def test_a_malformed_request_harms_no_other(mirror, request_bytes):
    options = WebOptions(limits=GateLimits(head_seconds=0.2, linger_seconds=0.1))
    async with served(mirror, options) as page:
        reader, writer = await opened(page, request_bytes)
        async with asyncio.timeout(10):
            with contextlib.suppress(ConnectionError):
                received = await reader.read(4096)
                assert b" 200 " not in received.partition(b"\r\n")[0]
        writer.close()
        assert (await page.get("cluster"))["counts"]["nodes"] == 2


NAMES = ["<script>alert(1)</script>", "..%2f..%2fetc%2fpasswd", "%00", "a" * 3_000, "%f0%9f%92%a9", "';DROP TABLE pods"]


@pytest.mark.parametrize("name", NAMES)
async def test_a_malicious_name_is_not_found_and_stays_data(mirror, name):
    async with served(mirror) as page:
        for path in (f"pods/shop/{name}", f"nodes/{name}"):
            async with page.raw(f"api/v1/{path}", headers=page.headers) as response:
                assert response.status in (403, 404)
                assert response.headers["Content-Type"] == "application/json; charset=utf-8"
                assert response.headers["X-Content-Type-Options"] == "nosniff"
