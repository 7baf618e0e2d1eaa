"""The HTTPS server: a thread with an event loop of its own, aiohttp, and nothing that waits for the scheduler."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from mooring.base import log
from mooring.base.clock import Clock
from mooring.base.errors import Fault, MooringError, OperatorMistake, Problem
from mooring.base.gate import ConnectionGate, GateLimits
from mooring.base.gated_connection import GatedConnection
from mooring.base.limited_log import LimitedLog, report_suppressed, shortened
from mooring.base.rates import Rates
from mooring.client import ApiClient, Connection
from mooring.scheduler.election.side_thread import SideThread
from mooring.scheduler.serving.access import ALWAYS_ALLOWED_PATHS, Access
from mooring.scheduler.serving.authentication import Authentication, RequestCredentials
from mooring.scheduler.serving.certificates import ServingCertificates, TlsOptions, checked_pair
from mooring.scheduler.serving.client_authorities import Authorities, AuthorityOptions, what_to_do
from mooring.scheduler.serving.health import Health
from mooring.scheduler.serving.http_errors import error_logger
from mooring.scheduler.serving.pages import DecisionPage, Pages, Reply, RequestedForm, status_reply
from mooring.scheduler.serving.review_limits import ReviewLimits
from mooring.scheduler.serving.reviews import ClusterReviews
from mooring.scheduler.serving.users import NotAuthorized, TooManyRequests, Unauthenticated, Undecided

DEFAULT_PORT = 10259
GRACE_SECONDS = 2.0
LOOKUP_SECONDS = 5.0
REFRESH_SECONDS = 60.0
REQUEST_LINES_IN_A_MINUTE = 1_000
VERBOSITY_PATH = "/debug/flags/v"
TRY_LATER = {"Retry-After": "1"}
ANY_ADDRESS = ("", "0.0.0.0", "::")

_log = log.Log("serving")
_failures = LimitedLog(_log)
_requests = LimitedLog(log.Log("serving", 3), lines=REQUEST_LINES_IN_A_MINUTE)


@dataclass(frozen=True)
class ServingOptions:
    """The values of the flags."""

    bind_address: str = "0.0.0.0"
    port: int = DEFAULT_PORT
    share_port: bool = False
    tls: TlsOptions = field(default_factory=TlsOptions)
    authorities: AuthorityOptions = field(default_factory=AuthorityOptions)
    always_allowed: tuple[str, ...] = ALWAYS_ALLOWED_PATHS
    token_seconds: float = 10.0
    allowed_seconds: float = 10.0
    refused_seconds: float = 10.0
    sets_verbosity: bool = False
    """Whether the log's verbosity can be set with PUT /debug/flags/v."""
    limits: GateLimits = field(default_factory=GateLimits)
    requests_per_second: float = 200.0
    """Of one client, after a burst. Each costs the thread that decides some of its time."""
    burst_of_requests: int = 1_000

    def check(self) -> None:
        """Raises `OperatorMistake` with everything that cannot be served with, as far as it shows without files."""
        problems = checked_pair(self.tls.cert_file, self.tls.key_file) + self.tls.settings.mistakes()
        if problems:
            raise OperatorMistake("the scheduler cannot serve over HTTPS.", problems)
        for warning in self.tls.settings.warnings():
            _log.warning(warning.message, flag=warning.path)


class SecureServer:
    """Serves until `stop`. `start` returns when the port is open, or raises what is in the way."""

    def __init__(
        self,
        options: ServingOptions,
        health: Health,
        pages: Pages,
        clock: Clock,
        *,
        authentication: Connection | None,
        authorization: Connection | None,
        decisions: DecisionPage | None = None,
    ) -> None:
        self._options = options
        self._decisions = decisions
        self._health = health
        self._pages = pages
        self._clock = clock
        self._authentication = authentication
        self._authorization = authorization
        self._thread = SideThread("serving", self._serve)
        self.port = options.port
        """The one we listen on, once started (0 in the options chooses a free one)."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Close the port; responses in flight get a moment. Stopping twice is harmless."""
        self._thread.stop(GRACE_SECONDS * 2)

    async def _serve(self, has_begun: Callable[[], None]) -> None:
        options = self._options
        options.check()
        # The port first: another scheduler on this machine may have it.
        listening = _listen(options)
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(listening.close)
            hosts = sorted({"localhost", "127.0.0.1", *_named(options.bind_address)})
            certificates = ServingCertificates(options.tls, hosts, self._clock.now())
            authentication = await _client(stack, self._authentication)
            authorization = await _client(stack, self._authorization)
            if authorization is None and self._pages:
                _log.warning(
                    "Other paths are served to members of system:masters only: without --authorization-kubeconfig "
                    "no API server can review access",
                    openToAll=",".join(options.always_allowed),
                )
            authorities = Authorities()
            authorities.read_files(options.authorities)
            await self._look_up(authorities, authentication)
            certificates.trust(authorities.pem)
            limits = ReviewLimits(self._clock.monotonic)
            access = Access(
                self._clock,
                Authentication(
                    self._clock,
                    limits=limits,
                    tokens=ClusterReviews(authentication) if authentication is not None else None,
                    authorities=authorities,
                    token_seconds=options.token_seconds,
                ),
                limits=limits,
                rights=ClusterReviews(authorization) if authorization is not None else None,
                always_allowed=options.always_allowed,
                allowed_seconds=options.allowed_seconds,
                refused_seconds=options.refused_seconds,
            )
            asyncio.get_running_loop().set_exception_handler(_on_loop_error)
            server = web.Server(
                self._handler(access),
                access_log=None,
                logger=error_logger(),
                handler_cancellation=True,
                keepalive_timeout=options.limits.idle_seconds,
                max_field_size=options.limits.head_bytes,
                auto_decompress=False,
                lingering_time=options.limits.linger_seconds,
            )
            self.port = listening.getsockname()[1]
            gate = ConnectionGate(listening, certificates.context, server, log_name="serving", limits=options.limits)
            stack.callback(gate.close)
            stack.push_async_callback(server.shutdown, GRACE_SECONDS)
            stack.callback(server.pre_shutdown)
            stack.callback(gate.stop_accepting)
            _log.info("Serving securely", address=options.bind_address, port=self.port)
            has_begun()
            while True:
                await self._clock.sleep(REFRESH_SECONDS)
                report_suppressed()
                await self._refresh(certificates, authorities, authentication)

    async def _look_up(self, authorities: Authorities, client: ApiClient | None) -> None:
        """The cluster's authorities, if they can be read soon; a server that does not respond is retried later."""
        options = self._options.authorities
        if options.skip_lookup:
            return
        if client is None:
            if not options.client_ca_file:
                _log.warning(
                    "Client certificates signed by the cluster's CA are not accepted: without "
                    "--authentication-kubeconfig there is no API server to read that CA from"
                )
            return
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                await authorities.look_up(options, client)
        except (MooringError, TimeoutError) as error:
            fault = error if isinstance(error, MooringError) else Fault("the API server does not respond")
            if not options.tolerate_lookup_failure:
                remedy = what_to_do(fault)
                raise Fault(
                    f"the cluster's CA for client certificates cannot be read: {fault}. To do: {remedy['do']}."
                ) from error
            _log.warning(
                "Client certificates signed by the cluster's CA are not accepted: the CA cannot be read",
                **what_to_do(fault),
            )

    async def _refresh(
        self, certificates: ServingCertificates, authorities: Authorities, client: ApiClient | None
    ) -> None:
        """Certificates and authorities are replaced while we run; what cannot be read now stays as it was."""
        certificates.refresh(self._clock.now())
        try:
            authorities.read_files(self._options.authorities)
            if client is not None and not self._options.authorities.skip_lookup:
                await authorities.look_up(self._options.authorities, client)
            certificates.trust(authorities.pem)
        except MooringError as error:
            _log.v(2).warning("Failed to reload the CAs of client certificates; keeping the previous ones", err=error)

    def _handler(self, access: Access) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
        options = self._options
        rates = Rates(self._clock.monotonic, per_second=options.requests_per_second, burst=options.burst_of_requests)

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            path = _text(request.path)
            form = RequestedForm.of(
                ",".join(request.headers.getall("Accept", [])),
                request.headers.get("User-Agent", ""),
                request.query.get("pretty", ""),
            )
            try:
                shown = _shown(request)
                if not rates.take(shown.client):
                    raise TooManyRequests
                await access.check(request.method.lower(), path, shown)
                reply = await self._reply(request, form)
            except Unauthenticated as error:
                reply = status_reply(form, 401, "Unauthorized", str(error))
            except NotAuthorized as error:
                reply = status_reply(form, 403, "Forbidden", str(error), details={})
            except TooManyRequests as error:
                reply = status_reply(form, 429, "TooManyRequests", str(error), headers=TRY_LATER)
            except Undecided as error:
                reply = Reply(f"{error}\n", status=500)
            except Exception as error:
                _failures.error("Failed to serve a page", path=shortened(path), err=shortened(repr(error)))
                reply = Reply("internal server error\n", status=500)
            _requests.info(
                "HTTP",
                verb=request.method,
                URI=shortened(request.path_qs.partition("?")[0]),  # a query may hold a credential
                userAgent=shortened(request.headers.get("User-Agent", "")),
                srcIP=request.remote or "",
                resp=reply.status,
            )
            return _response(reply)

        return handle

    async def _reply(self, request: web.BaseRequest, form: RequestedForm) -> Reply:
        _, name, *check = request.path.split("/")
        if name in self._health.checks and len(check) <= 1:
            return self._reply_health(request, name, check)
        if request.path == VERBOSITY_PATH and self._options.sets_verbosity:
            return await _set_verbosity(request)
        page, decisions = self._pages.get(request.path), self._decisions
        is_of_pod = decisions is not None and request.path.startswith(decisions.path)
        if page is None and not is_of_pod:
            return Reply("404 page not found\n", status=404)
        if request.method not in ("GET", "HEAD"):
            return Reply("only GET\n", status=405, headers={"Allow": "GET, HEAD"})
        if page is None:
            assert decisions is not None
            return await decisions.reply(request.path, form)
        return page.reply(form)

    def _reply_health(self, request: web.BaseRequest, endpoint: str, check: list[str]) -> Reply:
        query = request.query
        if not check:
            result = self._health.run(endpoint, excluded=query.getall("exclude", []), verbose="verbose" in query)
        else:
            one = self._health.run_one(endpoint, check[0])
            if one is None:
                return Reply("404 page not found\n", status=404)
            result = one
        return Reply(result.text, status=200 if result.is_well else 500)


def _on_loop_error(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """asyncio would write a traceback each time."""
    _failures.error("Serving failed", what=context.get("message", ""), err=repr(context.get("exception")))


def _text(received: str) -> str:
    """What a client sent, as text: bytes that are not UTF-8 become replacement characters, as in Go's JSON."""
    return received.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _shown(request: web.BaseRequest) -> RequestCredentials:
    scheme, _, rest = request.headers.get("Authorization", "").partition(" ")
    token = rest.strip() if scheme.lower() == "bearer" else ""
    transport = request.transport
    connection = transport.get_extra_info("ssl_object") if transport is not None else None
    certificate = connection.getpeercert(binary_form=True) if connection is not None else None
    client = transport.client if isinstance(transport, GatedConnection) else ""
    return RequestCredentials(token or None, certificate, tuple(request.headers.items()), client)


async def _set_verbosity(request: web.BaseRequest) -> Reply:
    """`curl -X PUT --data 4 …/debug/flags/v`, as kube-scheduler takes it."""
    if request.method != "PUT":
        return Reply("unsupported http method\n", "text/plain", 406)
    value = (await request.text()).strip()
    if not value.isdecimal():
        return Reply(f'failed to set klog.logging.verbosity: "{value}" is not a whole number\n', "text/plain", 400)
    log.configure(verbosity=int(value))
    return Reply(f"successfully set klog.logging.verbosity to {value}\n", "text/plain")


def _response(reply: Reply) -> web.Response:
    body = reply.body.encode() if isinstance(reply.body, str) else reply.body
    headers = {
        "Cache-Control": "no-cache, private",
        "Content-Type": reply.content_type,
        "X-Content-Type-Options": "nosniff",
        "Server": "mooring",
        **reply.headers,
    }
    response = web.Response(status=reply.status, body=body, headers=headers)
    if len(body) > 1024:
        response.enable_compression()
    if reply.status == 429:
        response.force_close()  # connecting again has a rate of its own
    return response


async def _client(stack: contextlib.AsyncExitStack, connection: Connection | None) -> ApiClient | None:
    if connection is None:
        return None
    return await stack.enter_async_context(ApiClient(connection, user_agent="mooring serving"))


def _named(address: str) -> list[str]:
    return [] if address in ANY_ADDRESS else [address]


def _listen(options: ServingOptions) -> socket.socket:
    """A socket on the port; where any address will do, for IPv4 and IPv6 alike."""
    address, port = options.bind_address, options.port
    try:
        if address in ANY_ADDRESS and socket.has_dualstack_ipv6():
            return socket.create_server(
                ("::", port), family=socket.AF_INET6, dualstack_ipv6=True, reuse_port=options.share_port
            )
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return socket.create_server((address, port), family=family, reuse_port=options.share_port)
    except OSError as error:
        raise _cannot_listen(options, error) from error


def _cannot_listen(options: ServingOptions, error: OSError) -> OperatorMistake:
    where = f"{options.bind_address}:{options.port}"
    if error.errno == errno.EADDRINUSE:
        what = (
            f"{where} is in use already; is another scheduler running here? Choose another port, or 0 to serve nothing"
        )
        flag = "--secure-port"
    elif error.errno == errno.EACCES:
        what, flag = f"listening on {where} is not permitted; choose a port above 1023", "--secure-port"
    else:
        what, flag = f"{where} is not an address to listen on: {error.strerror or error}", "--bind-address"
    return OperatorMistake("the scheduler cannot serve over HTTPS.", [Problem(flag, what)])
