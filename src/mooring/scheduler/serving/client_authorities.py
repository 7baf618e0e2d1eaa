"""Which client certificates are trusted, and which of them may authenticate users by request headers.

Flags name authorities by file; what they do not name is read from the cluster, where kube-apiserver publishes its own
(configmap kube-system/extension-apiserver-authentication). Both are read again from time to time, because authorities
are replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from mooring.base.errors import MooringError, OperatorMistake, Problem
from mooring.base.nesting import decode
from mooring.base.pem import fault_of_certificate
from mooring.objects import Kind

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

CONFIG_MAPS = Kind("", "v1", "ConfigMap", "configmaps")
CONFIG_MAP, NAMESPACE = "extension-apiserver-authentication", "kube-system"


@dataclass(frozen=True)
class Bundle:
    """Authorities. A certificate is of one of them if it was issued by it directly.

    Signature and purpose of the whole chain were checked in the TLS handshake, against all bundles together; this
    shows to which of them a certificate belongs.
    """

    pem: str
    certificates: tuple[Certificate, ...] = field(compare=False)

    @classmethod
    def read(cls, pem: str, source: str) -> Bundle:
        from cryptography.x509 import load_pem_x509_certificates

        try:
            found = load_pem_x509_certificates(pem.encode())
        except ValueError as error:
            raise mistake(source, fault_of_certificate(pem.encode()) or "cannot be used") from error
        return cls(pem, tuple(found))

    def has(self, certificate: Certificate, now: float) -> bool:
        """Whether it was issued by one of these authorities, and is valid now."""
        moment = datetime.fromtimestamp(now, UTC)
        return _holds(certificate, moment) and any(
            _holds(issuer, moment) and _is_issued_by(certificate, issuer) for issuer in self.certificates
        )


def _holds(certificate: Certificate, moment: datetime) -> bool:
    return certificate.not_valid_before_utc <= moment <= certificate.not_valid_after_utc


def _is_issued_by(certificate: Certificate, issuer: Certificate) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


class Reading(Protocol):
    """The verb of an API client that is used here."""

    async def get(self, kind: Kind, name: str, namespace: str, /) -> dict[str, Any]: ...


@dataclass(frozen=True)
class FrontProxy:
    """Which certificates may name a user in request headers, and in which headers."""

    issued: Bundle
    allowed_names: tuple[str, ...] = ()
    """Common names of the certificates; empty: any."""
    username_headers: tuple[str, ...] = ("x-remote-user",)
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ("x-remote-group",)
    extra_prefixes: tuple[str, ...] = ("x-remote-extra-",)


@dataclass(frozen=True)
class AuthorityOptions:
    """The values of the flags."""

    client_ca_file: str = ""
    requestheader_client_ca_file: str = ""
    allowed_names: tuple[str, ...] = ()
    username_headers: tuple[str, ...] = ("x-remote-user",)
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ("x-remote-group",)
    extra_prefixes: tuple[str, ...] = ("x-remote-extra-",)
    skip_lookup: bool = False
    """Do not read the cluster's authorities."""
    tolerate_lookup_failure: bool = True


@dataclass
class Authorities:
    """The authorities that are trusted now."""

    clients: Bundle | None = None
    front_proxy: FrontProxy | None = None

    @property
    def pem(self) -> str:
        """All authorities together, for the TLS handshake."""
        bundles = [self.clients, self.front_proxy.issued if self.front_proxy is not None else None]
        return "\n".join(bundle.pem for bundle in bundles if bundle is not None)

    def read_files(self, options: AuthorityOptions) -> None:
        """What flags name. Raises `OperatorMistake`, and then nothing has changed."""
        clients, front = self.clients, self.front_proxy
        if options.client_ca_file:
            clients = _bundle_in(options.client_ca_file, "--client-ca-file")
        if options.requestheader_client_ca_file:
            front = FrontProxy(
                _bundle_in(options.requestheader_client_ca_file, "--requestheader-client-ca-file"),
                options.allowed_names,
                options.username_headers,
                options.uid_headers,
                options.group_headers,
                options.extra_prefixes,
            )
        self.clients, self.front_proxy = clients, front

    async def look_up(self, options: AuthorityOptions, client: Reading) -> None:
        """What flags do not name, from the cluster. Raises `MooringError`, and then nothing has changed."""
        if options.client_ca_file and options.requestheader_client_ca_file:
            return
        found = await client.get(CONFIG_MAPS, CONFIG_MAP, NAMESPACE)
        data: Mapping[str, str] = found.get("data") or {}
        source = f"configmap {NAMESPACE}/{CONFIG_MAP}"
        clients, front = self.clients, self.front_proxy
        if not options.client_ca_file:
            pem = data.get("client-ca-file")
            clients = Bundle.read(pem, f"{source}, client-ca-file") if pem else None
        if not options.requestheader_client_ca_file:
            pem = data.get("requestheader-client-ca-file")
            front = _published_proxy(pem, data, source) if pem else None
        self.clients, self.front_proxy = clients, front


def _published_proxy(pem: str, data: Mapping[str, str], source: str) -> FrontProxy:
    def listed(key: str) -> tuple[str, ...]:
        try:
            return tuple(decode(data.get(key) or "[]", list[str]))
        except msgspec.MsgspecError as error:
            raise mistake(f"{source}, {key}", f"must be a JSON list of strings: {error}") from error

    return FrontProxy(
        Bundle.read(pem, f"{source}, requestheader-client-ca-file"),
        listed("requestheader-allowed-names"),
        listed("requestheader-username-headers"),
        listed("requestheader-uid-headers"),
        listed("requestheader-group-headers"),
        listed("requestheader-extra-headers-prefix"),
    )


def _bundle_in(file: str, flag: str) -> Bundle:
    try:
        found = Path(file).read_bytes()
    except OSError as error:
        raise mistake(flag, f"{file} cannot be read: {error.strerror}") from error
    if fault := fault_of_certificate(found):
        raise mistake(flag, f"{file} {fault}")
    try:
        return Bundle.read(found.decode("ascii"), flag)
    except UnicodeDecodeError as error:
        raise mistake(flag, f"{file} holds more than certificates: something in it is not ASCII text") from error


def what_to_do(error: MooringError) -> dict[str, Any]:
    """Values for a log line about a lookup that failed."""
    ways: Iterable[str] = (
        "bind the scheduler's user to the Role extension-apiserver-authentication-reader in kube-system",
        "name the authority with --client-ca-file",
        "give --authentication-skip-lookup",
    )
    return {"configMap": f"{NAMESPACE}/{CONFIG_MAP}", "err": error, "do": "; or ".join(ways)}


def mistake(flag: str, what: str) -> OperatorMistake:
    return OperatorMistake("the scheduler cannot serve over HTTPS.", [Problem(flag, what)])
