"""Keeps a client's credentials fresh: tokens in files that rotate, programs that print tokens or certificates.

One `Credentials` belongs to one client and one event loop. `headers` and `ssl_context` are what a request needs;
`renew` is called when the server responds 401.
"""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
from pathlib import Path
from urllib.parse import quote

from multidict import CIMultiDict

from mooring.base.clock import Clock
from mooring.base.errors import Fault, OperatorMistake
from mooring.base.log import Log
from mooring.client.connection import Connection
from mooring.client.execplugin import ExecCredential, run_plugin

FILE_CHECK_SECONDS = 10.0
"""How old what we read from a file may be. Kubernetes rotates mounted tokens long before they expire."""

_log = Log("client")


class Credentials:
    """The client's credentials, in the form that requests need."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._fixed = _fixed_headers(connection)
        self._headers: CIMultiDict[str] | None = None
        self._headers_until = float("-inf")
        self._ssl_context: ssl.SSLContext | None = None
        self._ssl_checked = float("-inf")
        self._ssl_files: tuple[object, ...] = ()
        self._from_plugin: ExecCredential | None = None
        self._token = connection.token
        self._is_tls = connection.is_tls
        self._renewing = asyncio.Lock()

    def valid_headers(self) -> CIMultiDict[str] | None:
        """The authentication headers while nothing has expired; otherwise `headers` renews them."""
        return self._headers if self._clock.monotonic() < self._headers_until else None

    async def headers(self) -> CIMultiDict[str]:
        """The authentication headers, renewed where they have expired."""
        if (valid := self.valid_headers()) is not None:
            return valid
        async with self._renewing:
            if self.valid_headers() is None:
                await self._refresh()
        assert self._headers is not None
        return self._headers

    async def renew(self, refused: CIMultiDict[str]) -> bool:
        """The server refused these headers: get new ones. False when there is nothing newer to try."""
        async with self._renewing:
            if self._headers is not refused:
                return True  # another request renewed them meanwhile
            self._from_plugin = None
            before = refused.get("Authorization"), self._ssl_context
            await self._refresh()
            return (self._headers.get("Authorization"), self._ssl_context) != before

    async def _refresh(self) -> None:
        connection = self._connection
        headers = self._fixed.copy()
        until = float("inf")
        if connection.is_tls:  # like kubectl, credentials are not sent to a server that is not trusted
            if connection.token_file is not None:
                self._token = self._read_token(connection.token_file)
                until = self._clock.monotonic() + FILE_CHECK_SECONDS
            if self._token is not None:
                headers["Authorization"] = self._bearer(self._token)
            elif connection.exec is not None:
                credential = await self._plugin_credential()
                if credential.token:
                    headers["Authorization"] = self._bearer(credential.token)
                if credential.expires_at is not None:
                    until = self._clock.monotonic() + (credential.expires_at - self._clock.now())
        self._headers, self._headers_until = headers, until

    def _bearer(self, token: str) -> str:
        if not token.isascii() or not token.isprintable():
            raise Fault(f"{self._connection.source}: the token has characters that no request can carry")
        return f"Bearer {token}"

    def _read_token(self, file: str) -> str | None:
        try:
            token = Path(file).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            if self._token is None:
                raise Fault(f"{self._connection.source}: token file {file} cannot be read: {error}") from error
            _log.warning("Failed to reload the token file; using the previous token", file=file, err=error)
            return self._token
        if not token and self._token is None:
            raise Fault(f"{self._connection.source}: token file {file} is empty")
        return token or self._token

    async def _plugin_credential(self) -> ExecCredential:
        assert self._connection.exec is not None
        known = self._from_plugin
        if known is None or (known.expires_at is not None and known.expires_at <= self._clock.now()):
            self._from_plugin = known = await run_plugin(self._connection.exec, self._connection)
            if known.client_certificate:
                self._ssl_context = None
        return known

    def ssl_context(self) -> ssl.SSLContext | None:
        """Trust and identity for TLS, made again when the files it came from changed. None for plain HTTP."""
        if not self._is_tls:
            return None
        now = self._clock.monotonic()
        if self._ssl_context is not None and now < self._ssl_checked + FILE_CHECK_SECONDS:
            return self._ssl_context
        files = tuple(_stamp(file) for file in self._connection.files())
        if self._ssl_context is None:
            self._ssl_context = self._new_ssl_context()
        elif files != self._ssl_files:
            try:
                self._ssl_context = self._new_ssl_context()
            except OperatorMistake as mistake:
                # Perhaps the certificate was replaced and its key not yet. The previous pair still works.
                _log.warning("Failed to load the changed certificates; using the previous ones", err=mistake.summary)
                files = self._ssl_files
        self._ssl_checked, self._ssl_files = now, files
        return self._ssl_context

    def _new_ssl_context(self) -> ssl.SSLContext:
        if (given := self._from_plugin) is not None:
            return self._connection.ssl_context(given.client_certificate, given.client_key)
        return self._connection.ssl_context()


def _stamp(file: str) -> object:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _fixed_headers(connection: Connection) -> CIMultiDict[str]:
    headers: CIMultiDict[str] = CIMultiDict()
    if not connection.is_tls:
        return headers
    if connection.username is not None:
        pair = f"{connection.username}:{connection.password or ''}"
        headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode("ascii")
    if (other := connection.impersonate) is not None:
        headers["Impersonate-User"] = other.user
        if other.uid:
            headers["Impersonate-Uid"] = other.uid
        for group in other.groups:
            headers.add("Impersonate-Group", group)
        for key, values in other.extra.items():
            for value in values:
                headers.add(f"Impersonate-Extra-{quote(key, safe='')}", value)
    return headers
