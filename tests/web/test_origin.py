"""Who reaches the page: the token, the name that it is served under, and pages of other sites."""

from __future__ import annotations

import pytest


async def test_the_api_needs_the_token(page):
    async with page.raw("api/v1/cluster") as response:
        assert response.status == 401
    async with page.raw("api/v1/cluster", headers={"Authorization": f"Bearer {page.token[:-1]}x"}) as response:
        assert response.status == 401
    async with page.raw(f"api/v1/cluster?token={page.token}") as response:
        assert response.status == 401


async def test_a_path_that_does_not_exist_shows_nothing_without_the_token(page):
    async with page.raw("api/v1/nothing") as response:
        assert response.status == 401


async def test_the_files_of_the_page_need_no_token(page):
    async with page.raw("") as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/html; charset=utf-8"


REFUSED = {
    "another name that points here": ({"Host": "evil.example:80"}, 421),
    "another port": ({"Host": "127.0.0.1:1"}, 421),
    "a page of another origin": ({"Origin": "https://evil.example"}, 403),
    "a sandboxed frame": ({"Origin": "null"}, 403),
    "a page of another site, without an origin": ({"Sec-Fetch-Site": "cross-site"}, 403),
    "a page of another port": ({"Sec-Fetch-Site": "same-site"}, 403),
}


@pytest.mark.parametrize(("headers", "status"), REFUSED.values(), ids=REFUSED.keys())
async def test_requests_of_other_sites_are_refused_with_the_token(page, headers, status):
    for path in ("", "api/v1/cluster"):
        async with page.raw(path, headers=page.headers | headers) as response:
            assert response.status == status


async def test_a_request_of_the_page_itself_is_served(page):
    await page.get("cluster", **{"Origin": page.url.rstrip("/"), "Sec-Fetch-Site": "same-origin"})


async def test_every_response_keeps_the_page_to_itself(page):
    for path in ("", "nothing", "api/v1/cluster"):
        async with page.raw(path) as response:
            headers = response.headers
            assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")
            assert "unsafe" not in headers["Content-Security-Policy"]
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Referrer-Policy"] == "no-referrer"
            assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
            assert "Access-Control-Allow-Origin" not in headers


PATHS = ["../pyproject.toml", "%2e%2e/server.py", "server.py", "static/index.html", "index.html%00", "//etc/passwd"]


@pytest.mark.parametrize("path", PATHS)
async def test_only_files_of_the_page_are_served(page, path):
    async with page.raw(path) as response:
        assert response.status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_nothing_is_written(page, method):
    for path in ("", "api/v1/cluster", "api/v1/nodes/node-1", "api/v1/pods/shop/web-0"):
        async with page.raw(path, method, headers=page.headers) as response:
            assert response.status in (403, 405)
