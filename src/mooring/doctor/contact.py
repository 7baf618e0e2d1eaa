"""The first contact: does the server respond, can it be trusted, how old is it, and do the clocks agree?"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import msgspec
from cryptography import x509

from mooring.base.clock import Clock
from mooring.base.errors import ApiError, MooringError, OperatorMistake, Unreachable
from mooring.base.nesting import decode
from mooring.client import ApiClient, Connection
from mooring.client.api import FIRST_CONTACT_SECONDS
from mooring.doctor.findings import Finding, bad, good, notice, unknown
from mooring.doctor.versions import ABSENT, OLDEST, TESTED, ServerVersion, read_version

SLOW_SECONDS = 1.0
SKEW_NOTICED_SECONDS, SKEW_BAD_SECONDS = 5.0, 60.0
ENDS_SOON = timedelta(days=14)
HANDSHAKE_SECONDS = 5.0


@dataclass(frozen=True)
class Contact:
    """What the first response shows."""

    findings: tuple[Finding, ...]
    version: ServerVersion | None = None
    ahead_seconds: float = 0.0
    """How far the server's clock is ahead of ours."""
    is_made: bool = False


async def make_contact(client: ApiClient) -> Contact:
    where = client.connection
    began, sent_at = client.clock.monotonic(), client.clock.now()
    try:
        response = await client.transport.response("GET", "/version", seconds=FIRST_CONTACT_SECONDS)
        version = decode(response.body, dict[str, str])
    except (MooringError, msgspec.DecodeError) as error:
        return Contact((_not_reached(where, error),))
    took = client.clock.monotonic() - began
    findings = [_reached(where, took), *await _trust(where, client.clock), _version(version)]
    ahead = 0.0
    if date := response.header("Date"):
        # It was written somewhere between request and response, in whole seconds.
        ahead = parsedate_to_datetime(date).timestamp() + 0.5 - (sent_at + took / 2)
        findings.append(_clock(ahead))
    return Contact(tuple(findings), read_version(version), ahead, is_made=True)


def _not_reached(where: Connection, error: Exception) -> Finding:
    match error:
        case Unreachable() | OperatorMistake():
            to_do = f"Correct the address or the certificates in {where.source}, or start the server."
            return bad("server", str(error), to_do)
        case ApiError(code=401):
            to_do = f"Renew the token, the certificate or the credential plugin in {where.source}."
            return bad("server", f"{where.host} does not accept the credentials: {error.message}", to_do)
        case ApiError(code=403) if where.impersonate is not None and "impersonate" in error.message:
            message = f"the user may not impersonate {where.impersonate.user}: {error.message}"
            to_do = "Use the kubeconfig of an administrator, or run it in the pod, without --as."
            return bad("server", message, to_do)
        case ApiError(code=404):
            message = f"{where.host} responds, and is no API server: it has no /version"
            return bad("server", message, f"Correct the server's address in {where.source}; is it a proxy?")
        case ApiError() if error.code >= 500:
            message = f"{where.host} responds {error.code}: {error.message}"
            return bad("server", message, "Look whether the API server, or a load balancer before it, is well.")
        case ApiError():
            message = f"{where.host} refuses to report its version ({error.code}): {error.message}"
            to_do = "Bind the user to the ClusterRole system:public-info-viewer, which every cluster has."
            return bad("server", message, to_do)
        case MooringError():
            return bad("server", str(error), f"Correct the credentials in {where.source}.")
        case _:
            message = f"{where.host} does not respond like an API server: {error}"
            return bad("server", message, f"Check the server's address in {where.source}.")


def _reached(where: Connection, took: float) -> Finding:
    message = f"{where.address} (from {where.source}) responded in {took * 1000:.0f} ms"
    if took >= SLOW_SECONDS:
        to_do = "Look at the network in between, and at the server's load: every binding waits as long."
        return notice("server", message, to_do)
    return good("server", message)


def _version(document: dict[str, str]) -> Finding:
    version, shown = read_version(document), document.get("gitVersion", "unknown")
    if version is None:
        return unknown("version", f"the server's version cannot be read: {document}")
    if read_version({"gitVersion": shown}) not in (version, None):
        shown += f", which behaves as {version}"
    if version < OLDEST:
        message = f"Kubernetes {shown} is older than {OLDEST}, the oldest that is supported"
        return bad("version", message, f"Upgrade the cluster; Mooring is tested against {TESTED}.")
    if version > TESTED:
        message = f"Kubernetes {shown} is newer than {TESTED}, the newest that Mooring was tested against"
        return notice("version", message, "Look for a newer Mooring; try it with `mooring run --shadow` first.")
    absent = [what for since, what in ABSENT.items() if version < since]
    without = f"; it has no {', no '.join(absent)}" if absent else ""
    return good("version", f"Kubernetes {shown}{without}")


def _clock(ahead: float) -> Finding:
    skew = abs(ahead)
    if skew < SKEW_NOTICED_SECONDS:
        return good("clock", "our clock and the server's agree")
    message = f"the server's clock is {skew:.0f} s {'ahead of' if ahead > 0 else 'behind'} ours"
    to_do = "Let both machines set their clocks by NTP: tokens and certificates have a beginning and an end."
    return (bad if skew >= SKEW_BAD_SECONDS else notice)("clock", message, to_do)


async def _trust(where: Connection, clock: Clock) -> list[Finding]:
    if not where.is_tls:
        to_do = "Use https:// if it is not on this machine; credentials are not sent over plain HTTP."
        return [
            notice(
                "tls", f"{where.address} is plain HTTP: anyone on the network path can read and change all of it", to_do
            )
        ]
    if where.insecure_skip_tls_verify:
        to_do = f"Give certificate-authority(-data) instead of insecure-skip-tls-verify in {where.source}."
        return [notice("tls", "the server's certificate is not verified: anyone can pose as the server", to_do)]
    now = datetime.fromtimestamp(clock.now(), UTC)
    ends = list(_ends(where, await _server_certificate(where)))
    findings = [_ending(what, until, now, where) for what, until in ends if until - now < ENDS_SOON]
    if findings:
        return findings
    until = f", valid until {min(until for _, until in ends):%Y-%m-%d}" if ends else ""
    return [good("tls", f"the server's certificate is trusted{until}")]


def _ending(what: str, until: datetime, now: datetime, where: Connection) -> Finding:
    message = f"{what} {'ended' if until <= now else 'ends'} on {until:%Y-%m-%d %H:%M} UTC"
    who = "the cluster's" if what.startswith("the server") else f"that of {where.source}"
    return notice("tls", message, f"Renew {who} (kubeadm: `kubeadm certs renew`).")


def _ends(where: Connection, server: bytes | None) -> Iterator[tuple[str, datetime]]:
    if server is not None:
        yield "the server's certificate", x509.load_der_x509_certificate(server).not_valid_after_utc
    if (own := where.client_certificate()) is not None:
        yield "our client certificate", x509.load_pem_x509_certificate(own).not_valid_after_utc


async def _server_certificate(where: Connection) -> bytes | None:
    """From a TLS handshake; None where a proxy is in between, or the handshake fails."""
    if where.proxy_url:
        return None
    parts = urlsplit(where.server)
    try:
        async with asyncio.timeout(HANDSHAKE_SECONDS):
            _, writer = await asyncio.open_connection(
                parts.hostname,
                parts.port or 443,
                ssl=where.ssl_context(),
                server_hostname=where.tls_server_name or parts.hostname,
            )
    except (OSError, TimeoutError, MooringError):
        return None
    try:
        found: ssl.SSLObject | None = writer.get_extra_info("ssl_object")
        return found.getpeercert(binary_form=True) if found is not None else None
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
