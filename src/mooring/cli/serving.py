"""kube-scheduler's serving, authentication and authorization flags, and the HTTPS server that they configure."""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mooring import __version__
from mooring.base.errors import OperatorMistake, Problem
from mooring.cli.gotypes import Flag, GoBool, GoDuration, GoList, Row, flags

if TYPE_CHECKING:
    from mooring.client import Connection
    from mooring.scheduler import Scheduler
    from mooring.scheduler.election.leadership import Leadership
    from mooring.scheduler.serving.certificates import NamedPair, TlsOptions
    from mooring.scheduler.serving.client_authorities import AuthorityOptions
    from mooring.scheduler.serving.health import Check
    from mooring.scheduler.serving.metric_filter import MetricFilter
    from mooring.scheduler.serving.pages import Pages
    from mooring.scheduler.serving.server import SecureServer, ServingOptions

F = TypeVar("F", bound=Callable[..., Any])

KUBE_SCHEDULERS_PORT = 10259
EMULATED = "1.36"
EXPLAIN_PATH = "/explain/"
LISTED = ("/configz", "/healthz", "/livez", "/metrics", "/readyz")
"""What /statusz names, as kube-scheduler's does; and /flagz, where there is a command line to show."""

_SERVING: Mapping[str, Row] = {
    "--bind-address": (click.STRING, "0.0.0.0", "ADDRESS", "Where to listen for HTTPS."),
    "--permit-port-sharing": (GoBool(), False, "BOOL", "Let others listen on the same port (SO_REUSEPORT)."),
    "--cert-dir": (
        click.STRING,
        "",
        "FOLDER",
        "Where the certificate is kept that is made if none is given; empty: in memory.",
    ),
    "--tls-cert-file": (click.STRING, "", "FILE", "The certificate to serve with."),
    "--tls-private-key-file": (click.STRING, "", "FILE", "Its key."),
    "--tls-sni-cert-key": (
        click.STRING,
        None,
        "CERT,KEY[:NAMES]",
        "A certificate for TLS clients that request these host names (SNI). May be given several times.",
    ),
    "--tls-min-version": (click.STRING, "", "VERSION", "The minimum TLS version, such as VersionTLS13."),
    "--tls-cipher-suites": (GoList(), (), "NAMES", "The cipher suites of TLS 1.2."),
    "--tls-curve-preferences": (GoList(), (), "NUMBERS", "The key exchange, by Go's number: one of 29, 23, 24, 25."),
}
_AUTHENTICATION: Mapping[str, Row] = {
    "--authentication-kubeconfig": (click.STRING, "", "FILE", "The API server for TokenReviews."),
    "--authentication-skip-lookup": (GoBool(), False, "BOOL", "Do not read the cluster's authorities."),
    "--authentication-tolerate-lookup-failure": (GoBool(), True, "BOOL", "Go on if they cannot be read."),
    "--authentication-token-webhook-cache-ttl": (
        GoDuration(),
        "10s",
        "DURATION",
        "How long a TokenReview result is cached.",
    ),
    "--client-ca-file": (click.STRING, "", "FILE", "Authorities of client certificates, instead of the cluster's."),
    "--requestheader-client-ca-file": (
        click.STRING,
        "",
        "FILE",
        "Authorities of front proxies, whose headers name the user, instead of the cluster's.",
    ),
    "--requestheader-allowed-names": (GoList(), (), "NAMES", "Common names of front proxies; empty: any."),
    "--requestheader-username-headers": (GoList(), ("x-remote-user",), "HEADERS", "Where they name the user."),
    "--requestheader-uid-headers": (GoList(), (), "HEADERS", "Where they name the user's UID."),
    "--requestheader-group-headers": (GoList(), ("x-remote-group",), "HEADERS", "Where they name the groups."),
    "--requestheader-extra-headers-prefix": (
        GoList(),
        ("x-remote-extra-",),
        "PREFIXES",
        "Prefixes of the headers with extra user attributes.",
    ),
}
_AUTHORIZATION: Mapping[str, Row] = {
    "--authorization-kubeconfig": (click.STRING, "", "FILE", "The API server for SubjectAccessReviews."),
    "--authorization-always-allow-paths": (
        GoList(),
        ("/healthz", "/readyz", "/livez"),
        "PATHS",
        "Paths served without authorization; a path may end in *.",
    ),
    "--authorization-webhook-cache-authorized-ttl": (
        GoDuration(),
        "10s",
        "DURATION",
        "How long an allowed SubjectAccessReview is cached.",
    ),
    "--authorization-webhook-cache-unauthorized-ttl": (
        GoDuration(),
        "10s",
        "DURATION",
        "How long a denied SubjectAccessReview is cached.",
    ),
}


@dataclass(frozen=True)
class ServingFlags:
    """As given on the command line."""

    secure_port: int = 0
    bind_address: str = "0.0.0.0"
    permit_port_sharing: bool = False
    cert_dir: str = ""
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    tls_sni_cert_key: tuple[str, ...] = ()
    tls_min_version: str = ""
    tls_cipher_suites: tuple[str, ...] = ()
    tls_curve_preferences: tuple[str, ...] = ()
    authentication_kubeconfig: str = ""
    authentication_skip_lookup: bool = False
    authentication_tolerate_lookup_failure: bool = True
    authentication_token_webhook_cache_ttl: float = 10.0
    client_ca_file: str = ""
    requestheader_client_ca_file: str = ""
    requestheader_allowed_names: tuple[str, ...] = ()
    requestheader_username_headers: tuple[str, ...] = ("x-remote-user",)
    requestheader_uid_headers: tuple[str, ...] = ()
    requestheader_group_headers: tuple[str, ...] = ("x-remote-group",)
    requestheader_extra_headers_prefix: tuple[str, ...] = ("x-remote-extra-",)
    authorization_kubeconfig: str = ""
    authorization_always_allow_paths: tuple[str, ...] = ("/healthz", "/readyz", "/livez")
    authorization_webhook_cache_authorized_ttl: float = 10.0
    authorization_webhook_cache_unauthorized_ttl: float = 10.0
    is_own_cluster: bool = False
    """Whether the cluster that is scheduled reviews tokens and access, unless a flag names another."""
    command_line: Mapping[str, str] = field(default_factory=dict)
    """All flags of the command, as /flagz shows them."""
    metrics: MetricFilter | None = None
    """Which of them are shown, if not all."""

    @classmethod
    def taken_from(cls, given: dict[str, Any], metrics: MetricFilter, command_line: Mapping[str, str]) -> ServingFlags:
        """Those of a command's parameters that are for serving; they are taken out of `given`."""
        names = [each.name for each in dataclasses.fields(cls) if each.name in given]
        return cls(**{name: given.pop(name) for name in names}, command_line=command_line, metrics=metrics)

    def options(self) -> ServingOptions:
        """What the server is to do. Raises `OperatorMistake` with every flag that makes no sense."""
        from mooring.scheduler.serving.server import ServingOptions

        flag = "--authorization-always-allow-paths"
        problems = [
            Problem(flag, f'"{path}": only a * at the end is allowed')
            for path in self.authorization_always_allow_paths
            if "*" in path[:-1]
        ]
        options = ServingOptions(
            bind_address=_address(self.bind_address, problems),
            port=self.secure_port,
            share_port=self.permit_port_sharing,
            tls=self._tls(problems),
            authorities=self._authorities(problems),
            always_allowed=self.authorization_always_allow_paths,
            token_seconds=self.authentication_token_webhook_cache_ttl,
            allowed_seconds=self.authorization_webhook_cache_authorized_ttl,
            refused_seconds=self.authorization_webhook_cache_unauthorized_ttl,
        )
        if problems:
            raise OperatorMistake.found_in("the command line", problems)
        return options

    def _tls(self, problems: list[Problem]) -> TlsOptions:
        from mooring.scheduler.serving.certificates import TlsOptions
        from mooring.scheduler.serving.tls_settings import TlsSettings

        curves = []
        for number in self.tls_curve_preferences:
            if number.strip().isdecimal():
                curves.append(int(number))
            else:
                problems.append(Problem("--tls-curve-preferences", f'must be whole numbers, got "{number}"'))
        return TlsOptions(
            cert_file=self.tls_cert_file,
            key_file=self.tls_private_key_file,
            cert_dir=self.cert_dir,
            named=tuple(_named_pair(text, problems) for text in self.tls_sni_cert_key),
            settings=TlsSettings(self.tls_min_version, self.tls_cipher_suites, tuple(curves)),
        )

    def _authorities(self, problems: list[Problem]) -> AuthorityOptions:
        from mooring.scheduler.serving.client_authorities import AuthorityOptions

        flag = "--requestheader-username-headers"
        if self.requestheader_client_ca_file and not self.requestheader_username_headers:
            problems.append(Problem(flag, "must name a header: without one no front proxy can name a user"))
        return AuthorityOptions(
            client_ca_file=self.client_ca_file,
            requestheader_client_ca_file=self.requestheader_client_ca_file,
            allowed_names=self.requestheader_allowed_names,
            username_headers=self.requestheader_username_headers,
            uid_headers=self.requestheader_uid_headers,
            group_headers=self.requestheader_group_headers,
            extra_prefixes=self.requestheader_extra_headers_prefix,
            skip_lookup=self.authentication_skip_lookup,
            tolerate_lookup_failure=self.authentication_tolerate_lookup_failure,
        )


def _address(text: str, problems: list[Problem]) -> str:
    try:
        return str(ipaddress.ip_address(text)) if text else ""
    except ValueError:
        problems.append(Problem("--bind-address", f'must be an IP address, got "{text}"'))
        return text


def _named_pair(text: str, problems: list[Problem]) -> NamedPair:
    from mooring.scheduler.serving.certificates import NamedPair

    files, _, names = text.partition(":")
    certificate, _, key = files.partition(",")
    if not certificate or not key or "," in key or ":" in names:
        problems.append(Problem("--tls-sni-cert-key", f'must be CERT,KEY or CERT,KEY:NAME,NAME; got "{text}"'))
    return NamedPair(certificate, key, tuple(name.strip().lower() for name in names.split(",") if name.strip()))


def serving_options(command: F) -> F:
    """The flags; the command gets them among its parameters."""
    for rows in (_AUTHORIZATION, _AUTHENTICATION):
        command = flags(rows)(command)
    several = {"--tls-sni-cert-key"}
    for name, (kind, default, metavar, help_text) in reversed(list(_SERVING.items())):
        command = click.option(
            name,
            cls=Flag,
            type=kind,
            default=default,
            metavar=metavar,
            help=help_text,
            multiple=name in several,
            **({"unset": "[]"} if name in several else {}),
        )(command)
    return port_option(KUBE_SCHEDULERS_PORT)(command)


def port_option(default: int, serving: str = "health, metrics and configuration") -> Callable[[F], F]:
    """`--secure-port` alone, where the other flags have no meaning."""
    return click.option(
        "--secure-port",
        cls=Flag,
        type=click.IntRange(0, 65535),
        default=default,
        show_default=True,
        metavar="PORT",
        help=f"Serve {serving} over HTTPS on this port; 0: do not serve.",
    )


def secure_server(
    flags: ServingFlags, scheduler: Scheduler, leader: Leadership | None = None, own: Connection | None = None
) -> SecureServer | None:
    """The server, not started yet; None if none is configured. `own`: the API server for TokenReviews and access
    reviews."""
    if not flags.secure_port:
        return None
    from mooring.base.clock import SystemClock
    from mooring.scheduler.serving.health import Health
    from mooring.scheduler.serving.metric_filter import MetricFilter
    from mooring.scheduler.serving.pages import DecisionPage
    from mooring.scheduler.serving.server import SecureServer

    # kube-scheduler lets the verbosity be set where profiling is on.
    options = dataclasses.replace(flags.options(), sets_verbosity=scheduler.configuration.enable_profiling)
    return SecureServer(
        options,
        Health(_checks(scheduler, leader), observed=scheduler.metrics.health.observed),
        served_pages(scheduler, leader, flags.metrics or MetricFilter(), flags.command_line),
        SystemClock(),
        authentication=_connection("--authentication-kubeconfig", flags.authentication_kubeconfig) or own,
        authorization=_connection("--authorization-kubeconfig", flags.authorization_kubeconfig) or own,
        decisions=DecisionPage(EXPLAIN_PATH, socket.respond) if (socket := scheduler.explain_socket) else None,
    )


def health_server(port: int, checks: Mapping[str, Mapping[str, Check]]) -> SecureServer | None:
    """A server of health checks alone, for any client; not started yet. None without a port."""
    if not port:
        return None
    from mooring.base.clock import SystemClock
    from mooring.scheduler.serving.health import Health
    from mooring.scheduler.serving.server import SecureServer

    options = ServingFlags(secure_port=port, authentication_skip_lookup=True).options()
    return SecureServer(options, Health(checks), {}, SystemClock(), authentication=None, authorization=None)


def served_pages(
    scheduler: Scheduler, leader: Leadership | None, metric_filter: MetricFilter, command_line: Mapping[str, str]
) -> Pages:
    """To be called before the scheduler runs: /metrics/resources must observe every pod."""
    import msgspec

    from mooring.base.clock import SystemClock
    from mooring.config.as_v1 import as_v1
    from mooring.scheduler.metrics.scheduler_metrics import CONTENT_TYPE
    from mooring.scheduler.serving.pages import Page, flagz, statusz

    def configz() -> bytes:
        return msgspec.json.encode({"componentconfig": as_v1(scheduler.configuration)})

    def leads() -> bool:
        return leader is None or leader.leading.is_set()

    filtered = metric_filter.filtered
    flags = {"/flagz": flagz(command_line)} if command_line else {}
    return {
        "/metrics": Page(CONTENT_TYPE, filtered(scheduler.metrics.text)),
        "/metrics/resources": Page(CONTENT_TYPE, filtered(scheduler.pod_resources.served(leads))),
        "/metrics/slis": Page(CONTENT_TYPE, filtered(scheduler.metrics.health.text)),
        "/configz": Page("application/json", configz),
        "/statusz": statusz(SystemClock(), __version__, EMULATED, [*LISTED, *flags]),
        **flags,
    }


def _checks(scheduler: Scheduler, leader: Leadership | None) -> dict[str, dict[str, Check]]:
    checks = scheduler.health_checks()
    if leader is not None:
        for endpoint in ("healthz", "readyz"):
            checks[endpoint] = {"leaderElection": leader.problem, **checks[endpoint]}
    return checks


def _connection(flag: str, kubeconfig: str) -> Connection | None:
    """The API server for reviews: the one named, else the cluster that we run in, else none."""
    from mooring.client import in_cluster_connection, load_kubeconfig

    if not kubeconfig:
        return in_cluster_connection()
    try:
        return load_kubeconfig([kubeconfig])
    except OperatorMistake as mistake:
        raise OperatorMistake(f"{flag}: {mistake.summary}", mistake.problems) from mistake
