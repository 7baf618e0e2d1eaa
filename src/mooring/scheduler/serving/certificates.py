"""The serving certificates of the scheduler.

From files if flags name them; otherwise made at start, signed by itself, and kept in memory or in `--cert-dir`. A
client that names a host (SNI) gets the certificate for it. Files are read again when they change, so
that a renewed certificate needs no restart; one that cannot be used leaves the last good one in place.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from mooring.base.errors import OperatorMistake, Problem
from mooring.base.files import make_folder, make_private, read_regular, write_private, write_whole
from mooring.base.log import Log
from mooring.base.pem import fault_of_certificate, fault_of_key
from mooring.base.secret_files import readable_path
from mooring.base.tls import LIFETIME, authority_of, make_identity, server_context
from mooring.scheduler.serving.client_authorities import mistake
from mooring.scheduler.serving.tls_settings import TlsSettings

PAIR_NAME = "kube-scheduler"
OWN_NAME = "mooring scheduler"
KEY_FLAGS = {"--tls-cert-file": "--tls-private-key-file"}
"""Which flag names the key, where it is not the one that names the certificate."""

_log = Log("serving")


@dataclass(frozen=True)
class NamedPair:
    """A certificate and key for host names, as `--tls-sni-cert-key` gives it."""

    cert_file: str
    key_file: str
    patterns: tuple[str, ...] = ()
    """Host names, `*.` in front for one label of any kind; empty: those in the certificate."""


@dataclass(frozen=True)
class TlsOptions:
    """The values of the flags."""

    cert_file: str = ""
    key_file: str = ""
    cert_dir: str = ""
    named: tuple[NamedPair, ...] = ()
    settings: TlsSettings = field(default_factory=TlsSettings)


@dataclass(frozen=True)
class _Pair:
    """What a certificate is read from: compared to see whether it has changed."""

    flag: str
    certificate: bytes
    key: bytes
    files: tuple[str, str]

    def context(self, settings: TlsSettings, trusted: str) -> ssl.SSLContext:
        context = server_context()
        settings.apply_to(context)
        try:
            # An empty password: a key that needs one is refused, instead of prompting for it on a terminal.
            with readable_path(self.certificate) as certificate, readable_path(self.key) as key:
                context.load_cert_chain(certificate, key, password="")
        except (ssl.SSLError, OSError) as error:
            raise mistake(*self._why_not(error)) from error
        return _trusting(context, trusted)

    def _why_not(self, error: OSError) -> tuple[str, str]:
        """The flag that is wrong, and how."""
        certificate, key = self.files
        reason = getattr(error, "reason", None) or ""
        if reason == "KEY_VALUES_MISMATCH":
            return self.flag, (
                f"the key in {key} is not that of the certificate in {certificate}; name the pair that belongs together"
            )
        if fault := fault_of_certificate(self.certificate):
            return self.flag, f"{certificate} {fault}"
        if fault := fault_of_key(self.key):
            return KEY_FLAGS.get(self.flag, self.flag), f"{key} {fault}"
        words = (reason or str(error)).replace("_", " ").lower()
        return self.flag, f"{certificate} and {key} cannot be used: {words}"


def _trusting(context: ssl.SSLContext, pem: str) -> ssl.SSLContext:
    """Request a client certificate of these authorities; a client without one is accepted too."""
    if pem:
        context.load_verify_locations(cadata=pem)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


class ServingCertificates:
    """`context` is what to listen with; its certificate and its trusted authorities may change while it is in use."""

    def __init__(self, options: TlsOptions, hosts: Sequence[str], now: float) -> None:
        """Raises `OperatorMistake` that names the flag and the file."""
        self._options = options
        self._hosts = tuple(hosts)
        self._trusted = ""
        self._made_at = now
        self._made = make_identity(list(hosts), OWN_NAME) if self._is_made else None
        self._pairs = self._read(now)
        self._build()
        self._warn_of_dates(now)
        # A connection begins with this context and continues with the one that is chosen for it.
        self.context = server_context()
        options.settings.apply_to(self.context)
        self.context.sni_callback = self._choose

    @property
    def _is_made(self) -> bool:
        return not self._options.cert_file and not self._options.cert_dir

    def trust(self, pem: str) -> None:
        """Trust client certificates of these authorities, and of no others."""
        if pem != self._trusted:
            before, self._trusted = self._trusted, pem
            try:
                self._build()
            except (ssl.SSLError, ValueError) as error:
                self._trusted = before
                raise mistake("client certificates", f"the authorities cannot be used: {error}") from error
        self.context.verify_mode = ssl.CERT_OPTIONAL if pem else ssl.CERT_NONE

    def refresh(self, now: float) -> None:
        """Reload changed files. What cannot be used is logged, and the last good one stays."""
        try:
            if self._is_made and now - self._made_at > LIFETIME.total_seconds() / 2:
                self._made, self._made_at = make_identity(list(self._hosts), OWN_NAME), now
                self._build()
            pairs = self._read(now)
            if pairs != self._pairs:
                before, self._pairs = self._pairs, pairs
                try:
                    self._build()
                except OperatorMistake:
                    self._pairs = before
                    raise
                _log.info("Serving with a new certificate")
                self._warn_of_dates(now)
        except OperatorMistake as error:
            _log.error("Changed certificate is invalid; serving the previous one", err=_in_a_line(error))

    def _read(self, now: float) -> list[tuple[_Pair, tuple[str, ...]]]:
        options = self._options
        pairs: list[tuple[_Pair, tuple[str, ...]]] = []
        if not self._is_made:
            pairs.append((self._own_pair(now), ()))
        for named in options.named:
            pair = _pair_of("--tls-sni-cert-key", named.cert_file, named.key_file)
            pairs.append((pair, named.patterns or _names_in(pair)))
        return pairs

    def _warn_of_dates(self, now: float) -> None:
        """A certificate that is not valid now is served, as kube-scheduler serves it; clients that verify it reject
        it."""
        from cryptography import x509

        moment = datetime.fromtimestamp(now, UTC)
        for pair, _ in self._pairs:
            try:
                certificate = x509.load_pem_x509_certificate(pair.certificate)
            except ValueError:
                continue  # OpenSSL, which serves it, knows forms that this reader does not
            first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
            if not first <= moment <= last:
                _log.warning(
                    "Certificate is not valid now; clients that verify it reject it: renew the file",
                    file=pair.files[0],
                    **{"from": first.isoformat(), "to": last.isoformat()},
                )

    def _own_pair(self, now: float) -> _Pair:
        options = self._options
        if options.cert_file:
            return _pair_of("--tls-cert-file", options.cert_file, options.key_file)
        folder = Path(options.cert_dir)
        certificate, key = folder / f"{PAIR_NAME}.crt", folder / f"{PAIR_NAME}.key"
        left = _left_of_ours(certificate, now)
        for lone, other in ((certificate, key), (key, certificate)):
            # What we made is made again; another's file is not lost because the one beside it is missing.
            if left is None and _is_file(lone) and not other.exists():
                raise mistake("--cert-dir", f"{lone} is there without {other.name}; add that, or remove {lone.name}")
        if not certificate.exists() or not key.exists() or (left is not None and left < LIFETIME.total_seconds() / 2):
            _write_pair(folder, certificate, key, self._hosts)
        elif left is not None:
            _keep_private(key)
        return _pair_of("--cert-dir", str(certificate), str(key))

    def _build(self) -> None:
        settings, trusted = self._options.settings, self._trusted
        contexts = [(pair.context(settings, trusted), patterns) for pair, patterns in self._pairs]
        if self._made is not None:
            own = self._made.ssl_context()
            settings.apply_to(own)
            contexts.insert(0, (_trusting(own, trusted), ()))
        self._own, self._named = contexts[0][0], contexts[1:]

    def _choose(self, connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        connection.context = self._for(name.lower().rstrip(".")) if name else self._own

    def _for(self, name: str) -> ssl.SSLContext:
        """Its own before one with a wildcard, before the default one."""
        for wanted in (name, f"*.{name.partition('.')[2]}"):
            for context, patterns in self._named:
                if wanted in patterns:
                    return context
        return self._own


def _pair_of(flag: str, certificate: str, key: str) -> _Pair:
    texts = []
    for its_flag, file in ((flag, certificate), (KEY_FLAGS.get(flag, flag), key)):
        try:
            texts.append(read_regular(file))
        except OSError as error:
            raise mistake(its_flag, f"{file} cannot be read: {error.strerror}") from error
    return _Pair(flag, texts[0], texts[1], (certificate, key))


def _names_in(pair: _Pair) -> tuple[str, ...]:
    from cryptography import x509

    try:
        certificate = x509.load_pem_x509_certificate(pair.certificate)
    except ValueError as error:
        fault = fault_of_certificate(pair.certificate) or "cannot be used"
        raise mistake(pair.flag, f"{pair.files[0]} {fault}") from error
    common = [str(each.value) for each in certificate.subject.get_attributes_for_oid(x509.oid.NameOID.COMMON_NAME)]
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return tuple(name.lower() for name in common)
    return tuple(name.lower() for name in names.get_values_for_type(x509.DNSName))


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size > 0


def _left_of_ours(file: Path, now: float) -> float | None:
    """How many seconds a certificate holds that we made. None: what others put there is theirs to renew."""
    from cryptography import x509

    try:
        certificate = x509.load_pem_x509_certificate(read_regular(file))
    except (OSError, ValueError):
        return None
    issuers = [each.value for each in certificate.issuer.get_attributes_for_oid(x509.oid.NameOID.COMMON_NAME)]
    return certificate.not_valid_after_utc.timestamp() - now if issuers == [authority_of(OWN_NAME)] else None


def _write_pair(folder: Path, certificate: Path, key: Path, hosts: Sequence[str]) -> None:
    made = make_identity(list(hosts), OWN_NAME)
    try:
        make_folder(folder)
        write_whole(certificate, made.certificate_pem + made.ca_pem)
        write_private(key, made.key_pem)
    except OSError as error:
        raise mistake("--cert-dir", f"no certificate can be written to {folder}: {error.strerror}") from error


def _keep_private(key: Path) -> None:
    """A key that we made and others can read by now. One that others put there keeps the mode they gave it."""
    with contextlib.suppress(OSError):  # what is wrong with the file is reported when the pair is read
        if make_private(key):
            _log.warning("Private key was readable by other users; its mode is now 0600", file=str(key))


def checked_pair(cert_file: str, key_file: str) -> list[Problem]:
    """What is wrong with how the two flags were given."""
    if bool(cert_file) == bool(key_file):
        return []
    missing = "--tls-private-key-file" if cert_file else "--tls-cert-file"
    return [Problem(missing, "must be given too: a certificate and its key belong together")]


def _in_a_line(error: OperatorMistake) -> str:
    return "; ".join(f"{problem.path}: {problem.message}" for problem in error.problems)
