"""Authorities and certificates for tests."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

HOUR = timedelta(hours=1)


def _name(common_name: str, organizations: Sequence[str] = ()) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    return x509.Name([*parts, *([x509.NameAttribute(NameOID.COMMON_NAME, common_name)] if common_name else [])])


@dataclass(frozen=True)
class Pair:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    def write(self, folder: Path, name: str, password: bytes | None = None) -> tuple[str, str]:
        certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
        certificate.write_text(self.pem)
        protection = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        key.write_bytes(
            self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection)
        )
        return str(certificate), str(key)

    def client_context(self, folder: Path) -> ssl.SSLContext:
        """To show this certificate with; the server's is not checked."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.load_cert_chain(*self.write(folder, f"client-{self.certificate.serial_number}"))
        return context


class Authority(Pair):
    def issue(
        self,
        common_name: str,
        organizations: Sequence[str] = (),
        *,
        hosts: Sequence[str] = (),
        life: timedelta = HOUR,
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = _builder(_name(common_name, organizations), self.certificate.subject, key, life).add_extension(
            x509.ExtendedKeyUsage([purpose]), critical=False
        )
        if hosts:
            names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        return Pair(builder.sign(self.key, hashes.SHA256()), key)


def an_authority(name: str) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(_name(name), _name(name), key, HOUR).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    return Authority(builder.sign(key, hashes.SHA256()), key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, life: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 2 * HOUR)
        .not_valid_after(now + life)
    )
