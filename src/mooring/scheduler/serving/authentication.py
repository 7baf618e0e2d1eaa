"""Authenticates requests: by a front proxy's headers, by a client certificate or by a bearer token, in this order.

A request without credentials is `system:anonymous`. Invalid credentials are rejected, unless another credential of the
same request is valid: so it is in kube-scheduler. Without an API server to review tokens, a token is ignored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from mooring.base.clock import Clock
from mooring.base.errors import MooringError
from mooring.base.limited_log import LimitedLog
from mooring.base.log import Log
from mooring.scheduler.serving.client_authorities import Authorities, FrontProxy
from mooring.scheduler.serving.review_limits import ReviewLimits
from mooring.scheduler.serving.reviews import KEPT_SECONDS, ReviewCache, Reviews
from mooring.scheduler.serving.users import ANONYMOUS, TooManyRequests, Unauthenticated, User

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
UID_OID = "1.3.6.1.4.1.57683.2"
COMMON_NAME_OID, ORGANIZATION_OID = "2.5.4.3", "2.5.4.10"
UNTRUSTED = "the client certificate is of an unknown authority, or out of date"

_log = Log("serving")
_refusals = LimitedLog(Log("serving", 2))


Headers = Sequence[tuple[str, str]]
"""HTTP headers: a name may come several times, and its case does not matter."""


@dataclass(frozen=True)
class RequestCredentials:
    """The credentials of a request. The certificate's key was proven in the TLS handshake."""

    token: str | None = None
    certificate: bytes | None = None
    headers: Headers = ()
    client: str = ""
    """The address that it came from, as limits count it."""


class Authentication:
    """Finds the user of a request."""

    def __init__(
        self,
        clock: Clock,
        *,
        tokens: Reviews | None,
        limits: ReviewLimits | None = None,
        authorities: Authorities | None = None,
        token_seconds: float = KEPT_SECONDS,
    ) -> None:
        self._clock = clock
        self._tokens = tokens
        self._authorities = authorities or Authorities()
        self._users: ReviewCache[User | None] = ReviewCache(clock, lambda _: token_seconds)
        self._limits = limits or ReviewLimits(clock.monotonic)
        self._failures = LimitedLog(_log, now=clock.monotonic, lines=1)

    async def user(self, credentials: RequestCredentials) -> User:
        """The user of the request. Raises `Unauthenticated` or `TooManyRequests`."""
        wrong = ""
        if credentials.certificate is not None:
            certified = self._certified(credentials.certificate, credentials.headers)
            if isinstance(certified, User):
                return certified.authenticated
            wrong = certified or ""
        if credentials.token is not None and self._tokens is not None:
            if (user := await self._owner(self._tokens, credentials.token, credentials.client)) is not None:
                return user.authenticated
            wrong = wrong or "invalid bearer token"
        if wrong:
            _refusals.info("Unable to authenticate the request", srcIP=credentials.client, err=wrong)
            raise Unauthenticated("Unauthorized")
        return ANONYMOUS

    def _certified(self, shown: bytes, headers: Headers) -> User | str | None:
        """The user of a certificate, or what is wrong with it; None: it is valid, and names no user."""
        from cryptography.x509 import load_der_x509_certificate

        try:
            certificate = load_der_x509_certificate(shown)
        except ValueError as error:
            return f"the client certificate cannot be read: {error}"
        now, wrong = self._clock.now(), ""
        front, clients = self._authorities.front_proxy, self._authorities.clients
        if front is not None:
            name = _first(certificate, COMMON_NAME_OID)
            if not front.issued.has(certificate, now):
                wrong = UNTRUSTED
            elif front.allowed_names and name not in front.allowed_names:
                wrong = f'the client certificate of "{name}" is not allowed to authenticate users by request headers'
            elif (user := _user_of_headers(front, headers)) is not None:
                return user
        if clients is not None:
            if clients.has(certificate, now):
                return named_by(certificate, shown)
            wrong = wrong or UNTRUSTED
        return wrong or None

    async def _owner(self, reviews: Reviews, token: str, client: str) -> User | None:
        try:
            # Cached keys are digests: they are worth nothing to an attacker.
            key = hashlib.sha256(token.encode()).digest()
        except UnicodeEncodeError:
            return None  # bytes that are not UTF-8 are no token, and no JSON could carry them
        kept = self._users.get(key)
        if kept is not None:
            return kept[0]
        is_known = self._users.last(key) is not None
        try:
            with self._limits.review(client, is_known=is_known):
                return self._users.put(key, await reviews.user_of(token))
        except TooManyRequests:
            raise
        except MooringError as error:
            self._failures.error(
                "TokenReview failed; requests with bearer tokens are denied until it succeeds. The scheduler's user "
                "must be allowed to create tokenreviews.authentication.k8s.io: the ClusterRole system:auth-delegator "
                "grants it",
                err=error,
            )
            return None


def _user_of_headers(front: FrontProxy, headers: Headers) -> User | None:
    """The user in a front proxy's headers; None: they name no user."""
    name = _first_value(headers, front.username_headers)
    if not name:
        return None
    groups = tuple(value for header in front.group_headers for value in _values(headers, header))
    extra: dict[str, list[str]] = {}
    for header, value in headers:
        for prefix in front.extra_prefixes:
            if header.lower().startswith(prefix.lower()):
                extra.setdefault(unquote(header[len(prefix) :].lower()), []).append(value)
    listed = tuple((key, tuple(values)) for key, values in sorted(extra.items()))
    return User(name, groups, _first_value(headers, front.uid_headers), listed)


def _first_value(headers: Headers, names: Sequence[str]) -> str:
    return next((value for name in names for value in _values(headers, name) if value), "")


def _values(headers: Headers, name: str) -> list[str]:
    return [value for header, value in headers if header.lower() == name.lower()]


def named_by(certificate: Certificate, encoded: bytes) -> User | None:
    """The user of a certificate: its common name, with organisations as groups."""
    name = _first(certificate, COMMON_NAME_OID)
    if not name:
        return None
    groups = tuple(_texts(certificate, ORGANIZATION_OID))
    extra = ((CREDENTIAL_ID, (f"X509SHA256={hashlib.sha256(encoded).hexdigest()}",)),)
    return User(name, groups, _first(certificate, UID_OID), extra)


def _first(certificate: Certificate, oid: str) -> str:
    return next(iter(_texts(certificate, oid)), "")


def _texts(certificate: Certificate, oid: str) -> list[str]:
    return [str(each.value) for each in certificate.subject if each.oid.dotted_string == oid]
