"""The `Http` service: GET with a deadline, for plugins' background tasks."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mooring.base.errors import Fault
from mooring.base.redaction import scrubbed, shown_url
from mooring.client.proxy import environment_proxy
from mooring.framework import HttpResponse

if TYPE_CHECKING:
    import aiohttp

MAX_BODY_BYTES = 32 * 2**20
CHUNK_BYTES = 2**16


class HttpFetcher:
    """One connection pool for all plugins."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self.is_offline = False
        """Set on virtual time, on which no response arrives: plugins get a fault at once."""

    async def get(
        self,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float = 10.0,
        ca_file: str | None = None,
    ) -> HttpResponse:
        if self.is_offline:
            raise Fault(f"{_host(url)} is not requested: this is a simulation")
        import aiohttp  # here: to import it takes a fifth of a scheduler's start, and few plugins use it

        if self._session is None:
            self._session = aiohttp.ClientSession(trust_env=True)
        trust = _trust(ca_file)
        timeout = aiohttp.ClientTimeout(total=timeout_seconds)
        try:
            async with self._session.get(
                url, params=params, headers=headers, timeout=timeout, ssl=trust, allow_redirects=False
            ) as response:
                return HttpResponse(response.status, await _body(response, url), shown_url(url))
        except TimeoutError as error:
            raise Fault(f"{_host(url)} did not respond within {timeout_seconds:g} s") from error
        except (aiohttp.ClientError, ValueError, OSError) as error:
            raise Fault(f"{_host(url)} cannot be reached: {_without_credentials(error, url)}") from error

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


async def _body(response: aiohttp.ClientResponse, url: str) -> bytes:
    """At most `MAX_BODY_BYTES`: what a server sends must not fill the memory of a scheduler."""
    body = bytearray()
    async for chunk in response.content.iter_chunked(CHUNK_BYTES):
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise Fault(f"{_host(url)} sent more than {MAX_BODY_BYTES // 2**20} MiB")
    return bytes(body)


def _trust(ca_file: str | None) -> ssl.SSLContext | bool:
    if ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # ssl.SSLError is one too
        raise Fault(f"the CA file {ca_file} cannot be used: {error}") from error


def _host(url: str) -> str:
    """Without user, password, path or query: this goes into messages."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:  # a port that is none
        return "an address that is none"
    return f"{parts.scheme}://{parts.hostname}{port}" if parts.hostname else "an address without a host"


def _without_credentials(error: Exception, url: str) -> str:
    """Errors of the HTTP library contain the whole address, or a part of it."""
    proxy = environment_proxy(url, os.environ)
    return scrubbed(str(error), url, *([proxy] if proxy else []))
