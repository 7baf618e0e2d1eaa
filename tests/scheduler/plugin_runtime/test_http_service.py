"""The HTTP service of plugins: a response, or a fault that names the host and not the password."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from mooring.base.errors import Fault
from mooring.scheduler.plugin_runtime.http_service import HttpFetcher


@pytest.fixture
async def http() -> AsyncIterator[HttpFetcher]:
    fetcher = HttpFetcher()
    yield fetcher
    await fetcher.close()


async def respond(request: web.BaseRequest) -> web.StreamResponse:
    match request.path:
        case "/slow":
            await asyncio.Event().wait()
        case "/moved":
            return web.Response(status=302, headers={"Location": "/"})
        case "/broken":
            return web.Response(status=500, text="oh")
        case "/broken-json":
            return web.json_response({"error": "oh"}, status=503)
        case "/endless":
            response = web.StreamResponse()
            await response.prepare(request)
            with contextlib.suppress(ConnectionError):
                while True:
                    await response.write(b" " * 2**20)
        case "/text":
            return web.Response(text="oh")
    return web.json_response({"query": dict(request.query), "token": request.headers.get("Authorization")})


@pytest.fixture
async def address() -> AsyncIterator[str]:
    runner = web.ServerRunner(web.Server(respond), shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_a_response_is_its_status_and_its_body(http, address):
    response = await http.get(address, params={"q": "up"}, headers={"Authorization": "Bearer x"})
    assert (response.status, response.json()) == (200, {"query": {"q": "up"}, "token": "Bearer x"})


@pytest.mark.parametrize(("path", "status"), [("/broken", 500), ("/moved", 302)])
async def test_a_response_that_is_no_success_is_a_response_too(http, address, path, status):
    assert (await http.get(address + path)).status == status


async def test_a_server_that_does_not_respond_in_time_is_named(http, address):
    with pytest.raises(Fault, match=f"^{address} did not respond within 0.05 s$"):
        await http.get(f"{address}/slow?token=secret", timeout_seconds=0.05)


async def test_who_cannot_be_reached_is_named_without_the_password(http, unused_tcp_port):
    with pytest.raises(Fault, match=f"http://127.0.0.1:{unused_tcp_port} cannot be reached") as caught:
        await http.get(f"http://me:secret@127.0.0.1:{unused_tcp_port}/?token=secret")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["prometheus", "http://", "http://host:99999/", "http://host:port/"])
async def test_an_address_that_is_none_is_a_fault(http, url):
    with pytest.raises(Fault):
        await http.get(url)


@pytest.mark.parametrize("content", [None, "no certificate"])
async def test_a_ca_file_that_cannot_be_used_is_named(http, tmp_path, content):
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(Fault, match=r"ca\.pem"):
        await http.get("https://127.0.0.1:1/", ca_file=str(file))


async def test_closing_before_the_first_request_leaves_it_usable(http, address):
    await http.close()
    assert (await http.get(address)).status == 200


@pytest.mark.parametrize(("path", "status"), [("/broken", 500), ("/broken-json", 503), ("/moved", 302)])
async def test_reading_a_response_that_is_no_success_names_address_and_status(http, address, path, status):
    response = await http.get(f"{address}{path}?token=secret")
    with pytest.raises(Fault, match=f"^{address}{path} responded with status {status}$"):
        response.json()


async def test_a_body_that_is_no_json_is_an_error_when_it_is_read(http, address):
    response = await http.get(f"{address}/text?token=secret")
    with pytest.raises(Fault, match=f"^{address}/text responded with something that is not JSON: "):
        response.json()


async def test_a_body_without_an_end_is_cut_off(http: HttpFetcher, address: str):
    with pytest.raises(Fault, match=r"^http://127\.0\.0\.1:\d+ sent more than 32 MiB$"):
        await http.get(f"{address}/endless")
