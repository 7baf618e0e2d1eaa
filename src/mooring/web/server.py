"""The HTTP server of the page: a bounded port, checks of origin, and the same headers on every response."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from aiohttp import web

from mooring.base.errors import OperatorMistake, Problem
from mooring.base.gate import ConnectionGate, GateLimits
from mooring.base.gated_connection import GatedConnection
from mooring.base.limited_log import LimitedLog, shortened
from mooring.base.log import Log
from mooring.base.rates import Rates
from mooring.scheduler.serving.http_errors import error_logger
from mooring.web.access import PageAccess, bearer
from mooring.web.api import ROOT, Api
from mooring.web.errors import RequestError, refused, too_many
from mooring.web.responses import SECURITY_HEADERS, file_response, json_response
from mooring.web.static_files import StaticFile, static_files
from mooring.web.what_if_calls import MOST_BODY

GRACE_SECONDS = 1.0
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")

_log = Log("web")
_failures = LimitedLog(_log)
_requests = LimitedLog(Log("web", 3), lines=1_000)


@dataclass(frozen=True)
class WebOptions:
    """Where the page is served, and what its clients may cost."""

    bind_address: str = "127.0.0.1"
    port: int = 0
    context: ssl.SSLContext | None = None
    """None: plain HTTP, on the loopback interface only."""
    hosts: tuple[str, ...] | None = LOCAL_NAMES
    """Names that the page is served under; None: any, as the token is one of the cluster."""
    limits: GateLimits = field(
        default_factory=lambda: GateLimits(request_bytes=MOST_BODY + 128 * 1024, connections_of_a_client=128)
    )
    requests_per_second: float = 50.0
    """Of one client, after a burst."""
    burst_of_requests: int = 500


class WebServer:
    """Serves the page and its API."""

    def __init__(
        self, api: Api, access: PageAccess, options: WebOptions, files: dict[str, StaticFile] | None = None
    ) -> None:
        self._api = api
        self._access = access
        self._options = options
        self._files = static_files() if files is None else files
        self.port = options.port
        """The one that is listened on, once it serves."""

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """While inside, the port is open."""
        options = self._options
        listening = _listen(options)
        self.port = listening.getsockname()[1]
        server = web.Server(
            self._handler(),
            access_log=None,
            logger=error_logger(),
            handler_cancellation=True,
            keepalive_timeout=options.limits.idle_seconds,
            max_field_size=options.limits.head_bytes,
            auto_decompress=False,
            lingering_time=options.limits.linger_seconds,
        )
        gate = ConnectionGate(listening, options.context, server, log_name="web", limits=options.limits)
        try:
            yield
        finally:
            gate.stop_accepting()
            self._api.close()
            server.pre_shutdown()
            await server.shutdown(GRACE_SECONDS)
            gate.close()

    @property
    def url(self) -> str:
        scheme = "http" if self._options.context is None else "https"
        host = self._options.bind_address
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}/"

    def _handler(self) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
        options = self._options
        rates = Rates(
            asyncio.get_running_loop().time, per_second=options.requests_per_second, burst=options.burst_of_requests
        )

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            try:
                # Static files are in memory, and one page needs dozens: a few tabs must not use up their user's rate.
                if request.path.startswith(ROOT) and not rates.take(_client(request)):
                    raise too_many("too many requests; please try again later.")
                self._check_origin(request)
                response = await self._respond(request)
            except RequestError as error:
                response = await json_response(request, error.document(), status=error.status, headers=error.headers)
            except OperatorMistake as error:
                mistake = refused(error)
                response = await json_response(request, mistake.document(), status=mistake.status)
            except Exception as error:
                _failures.error("Failed to serve a request", path=shortened(request.path), err=shortened(repr(error)))
                failure = RequestError(500, "the request failed; the log of `mooring web` has the reason.")
                response = await json_response(request, failure.document(), status=500)
            _requests.info(
                "HTTP", verb=request.method, URI=shortened(request.path), srcIP=_client(request), resp=response.status
            )
            return response

        return handle

    def _check_origin(self, request: web.BaseRequest) -> None:
        """A page of another site must reach nothing: neither by a name that it points here, nor by a request."""
        host = request.headers.get("Host", "")
        hosts = self._options.hosts
        if hosts is not None and host not in {f"{name}:{self.port}" for name in hosts}:
            raise RequestError(421, "this page is served under the name that `mooring web` has printed, and no other.")
        origin = request.headers.get("Origin")
        scheme = "http" if self._options.context is None else "https"
        if origin is not None and origin != f"{scheme}://{host}":
            raise RequestError(403, "requests of pages of another origin are refused.")
        if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            raise RequestError(403, "requests of pages of another site are refused.")

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if path.startswith(f"{ROOT}/"):
            rights = await self._access.rights(request, bearer(request))
            return await self._api.respond(request, rights)
        if request.method not in ("GET", "HEAD"):
            raise RequestError(405, f"only GET and HEAD of {path[:80]}.", headers={"Allow": "GET, HEAD"})
        file = self._files.get(path)
        if file is None:
            raise RequestError(404, "there is no such page.")
        return file_response(request, file)


def _client(request: web.BaseRequest) -> str:
    transport = request.transport
    return transport.client if isinstance(transport, GatedConnection) else request.remote or ""


def is_loopback(address: str) -> bool:
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _listen(options: WebOptions) -> socket.socket:
    address, port = options.bind_address, options.port
    try:
        if address in ("0.0.0.0", "::") and socket.has_dualstack_ipv6():
            return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return socket.create_server((address, port), family=family)
    except OSError as error:
        where = f"{address}:{port}"
        flag, what = "--bind", f"{where} is not an address to listen on: {error.strerror or error}"
        if error.errno == errno.EADDRINUSE:
            flag, what = "--port", f"{where} is in use already; choose another port, or 0 for any that is free"
        elif error.errno == errno.EACCES:
            flag, what = "--port", f"listening on {where} is not permitted; choose a port above 1023"
        raise OperatorMistake("the page cannot be served.", [Problem(flag, what)]) from error


__all__ = ["SECURITY_HEADERS", "WebOptions", "WebServer", "is_loopback"]
