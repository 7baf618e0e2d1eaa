"""What a connection to one API server needs: its address, how to trust it, and the client's credentials.

A `Connection` is a value; it opens nothing. `kubeconfig` creates it, `credentials` keeps its credentials fresh.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mooring.base.errors import OperatorMistake
from mooring.base.pem import fault_of_certificate, fault_of_key
from mooring.base.redaction import shown_url
from mooring.base.secret_files import readable_path


@dataclass(frozen=True)
class ExecPlugin:
    """A program that prints credentials (`users[].user.exec` of a kubeconfig)."""

    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    api_version: str = "client.authentication.k8s.io/v1"
    interactive_mode: str = "IfAvailable"
    provide_cluster_info: bool = False
    cluster_config: Any = None
    """The cluster's extension `client.authentication.k8s.io/exec`, handed to the plugin with the cluster's data."""
    install_hint: str = ""


@dataclass(frozen=True)
class Impersonation:
    """Impersonate another user (`as`, `as-uid`, `as-groups`, `as-user-extra`)."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Connection:
    """One API server and how to authenticate there. `source` is where this came from, for messages."""

    server: str = field(repr=False)
    source: str
    namespace: str = "default"

    ca_data: bytes | None = None
    ca_file: str | None = None
    client_cert_data: bytes | None = None
    client_cert_file: str | None = None
    client_key_data: bytes | None = field(default=None, repr=False)
    client_key_file: str | None = None
    insecure_skip_tls_verify: bool = False
    tls_server_name: str | None = None
    proxy_url: str | None = field(default=None, repr=False)

    token: str | None = field(default=None, repr=False)
    token_file: str | None = None
    """Read again when it may have been rotated; wins over `token`."""
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    exec: ExecPlugin | None = None
    impersonate: Impersonation | None = None

    @property
    def host(self) -> str:
        """Host and port, for messages."""
        return self.address.partition("://")[2].partition("/")[0]

    @property
    def address(self) -> str:
        """The server as messages show it: without a password or query."""
        return shown_url(self.server)

    @property
    def proxy(self) -> str | None:
        """The proxy as messages show it: without the password that its address may carry."""
        return shown_url(self.proxy_url).rpartition("://")[2].partition("/")[0] if self.proxy_url else None

    @property
    def is_tls(self) -> bool:
        return self.server.startswith("https://")

    def ssl_context(self, client_cert: bytes | None = None, client_key: bytes | None = None) -> ssl.SSLContext:
        """Trust and identity for TLS; a certificate that an exec plugin gave takes the place of the configured one."""
        if self.insecure_skip_tls_verify:
            # Without the system's CAs: nothing is checked, and to read them takes longer than a handshake.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        else:
            context = ssl.create_default_context(cadata=self._trusted_ca())
            # Python 3.13 refuses CAs without an authority key identifier; existing clusters have such CAs.
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        certificate = client_cert or self.client_certificate()
        key = client_key or self._bytes_of("client-key", self.client_key_data, self.client_key_file)
        if certificate is not None:
            try:
                with readable_path(certificate) as certificate_path, readable_path(key or certificate) as key_path:
                    # Without a password callback OpenSSL would prompt at the terminal, and wait.
                    context.load_cert_chain(certificate_path, key_path, password=_no_password)
            except (ssl.SSLError, ValueError) as error:
                raise OperatorMistake(
                    f"{self.source}: {self._why_not(certificate, key or certificate, error)}."
                ) from error
        return context

    def client_certificate(self) -> bytes | None:
        """The configured one, in PEM."""
        return self._bytes_of("client-certificate", self.client_cert_data, self.client_cert_file)

    def ca_pem(self) -> bytes | None:
        return self._bytes_of("certificate-authority", self.ca_data, self.ca_file)

    def _trusted_ca(self) -> str | None:
        """The only CA to trust, once it is known to be one; None means those the system trusts."""
        if (pem := self.ca_pem()) is None:
            return None
        try:
            if not (text := pem.decode("ascii")).strip():
                raise ValueError("it is empty")  # OpenSSL would trust the system's CAs instead
            ssl.create_default_context(cadata=text)
        except (ssl.SSLError, ValueError) as error:
            fault = fault_of_certificate(pem) or f"cannot be used: {_plain(error)}"
            where = _place("certificate-authority", self.ca_data, self.ca_file)
            raise OperatorMistake(f"{self.source}: {where} {fault}.") from error
        return text

    def _why_not(self, certificate: bytes, key: bytes, error: Exception) -> str:
        """What is wrong with a client certificate and its key."""
        if getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
            return "the client key is not that of the client certificate; name the pair that belongs together"
        if fault := fault_of_certificate(certificate):
            return f"{_place('client-certificate', self.client_cert_data, self.client_cert_file)} {fault}"
        if fault := fault_of_key(key):
            return f"{_place('client-key', self.client_key_data, self.client_key_file)} {fault}"
        return f"the client certificate and key cannot be used: {_plain(error)}"

    def _bytes_of(self, what: str, data: bytes | None, file: str | None) -> bytes | None:
        if data is not None or file is None:
            return data
        try:
            return Path(file).read_bytes()
        except OSError as error:
            raise OperatorMistake(f"{self.source}: {what} {file} cannot be read: {error.strerror}.") from error

    def files(self) -> tuple[str, ...]:
        """The files whose change means new certificates."""
        pairs = (
            (self.ca_data, self.ca_file),
            (self.client_cert_data, self.client_cert_file),
            (self.client_key_data, self.client_key_file),
        )
        return tuple(file for data, file in pairs if data is None and file is not None)


def _place(what: str, data: bytes | None, file: str | None) -> str:
    """How a kubeconfig names it; what neither data nor a file gave came from a program."""
    if data is not None:
        return f"{what}-data"
    return f"{what} {file}" if file is not None else f"the {what} that was given"


def _no_password() -> str:
    raise ValueError("the key is encrypted, which kubeconfig files do not support")


def _plain(error: Exception) -> str:
    return (getattr(error, "reason", None) or str(error) or type(error).__name__).replace("_", " ").lower()
