"""The `Http` service: GET with a deadline, for plugins' background tasks."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

import aiohttp

from mooring.base.errors import Fault
from mooring.framework import HttpAnswer


class HttpFetcher:
    """One connection pool for all plugins."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def get(
        self,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float = 10.0,
        ca_file: str | None = None,
    ) -> HttpAnswer:
        if self._session is None:
            self._session = aiohttp.ClientSession(trust_env=True)
        trust: ssl.SSLContext | bool = ssl.create_default_context(cafile=ca_file) if ca_file else True
        timeout = aiohttp.ClientTimeout(total=timeout_seconds)
        try:
            async with self._session.get(
                url, params=params, headers=headers, timeout=timeout, ssl=trust, allow_redirects=False
            ) as answer:
                return HttpAnswer(answer.status, await answer.read())
        except TimeoutError as error:
            raise Fault(f"{_host(url)} did not answer within {timeout_seconds:g} s") from error
        except (aiohttp.ClientError, ValueError, OSError) as error:
            raise Fault(f"{_host(url)} cannot be asked: {error}") from error

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


def _host(url: str) -> str:
    """Without user, password or query: this goes into messages."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}" if parts.hostname else repr(url)
