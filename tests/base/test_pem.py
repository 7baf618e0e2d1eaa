"""The messages about invalid certificates and keys."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives import serialization
from tests.scheduler.serving.certificates import an_authority

from mooring.base.pem import fault_of_certificate, fault_of_key

PAIR = an_authority("a test")
CERTIFICATE = PAIR.pem.encode()
KEY = PAIR.key.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
)
KEY_IN_DER = PAIR.key.private_bytes(
    serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
)
LOCKED = PAIR.key.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
)


def cut(pem: bytes) -> bytes:
    """Without its second line, as when a part was not copied."""
    lines = pem.splitlines(keepends=True)
    return b"".join([lines[0], *lines[2:]])


CERTIFICATES = {
    "a certificate": (CERTIFICATE, None),
    "a certificate and its key": (CERTIFICATE + KEY, None),
    "nothing": (b"\n", "is empty"),
    "words": (b"0 is not a certificate", "holds no certificate in PEM: a block that begins with -----BEGIN CERT"),
    "a key": (KEY, "holds a key, and no certificate"),
    "a certificate in DER": (PAIR.der, "openssl x509 -inform der"),
    "a part of a certificate": (cut(CERTIFICATE), "cut off or changed"),
}
KEYS = {
    "a key": (KEY, None),
    "nothing": (b"", "is empty"),
    "words": (b"hello", "holds no private key in PEM: a block that begins with -----BEGIN PRIVATE KEY-----"),
    "a certificate": (CERTIFICATE, "holds a certificate, and no private key"),
    "a key in DER": (KEY_IN_DER, "openssl pkey -inform der"),
    "a key with a password": (LOCKED, "is protected by a password"),
    "a part of a key": (cut(KEY), "cut off or changed"),
}


@pytest.mark.parametrize(("found", "fault"), CERTIFICATES.values(), ids=CERTIFICATES.keys())
def test_an_invalid_certificate_is_explained(found, fault):
    assert_explained(fault_of_certificate(found), fault)


@pytest.mark.parametrize(("found", "fault"), KEYS.values(), ids=KEYS.keys())
def test_an_invalid_key_is_explained(found, fault):
    assert_explained(fault_of_key(found), fault)


def assert_explained(message: str | None, fault: str | None) -> None:
    assert (message is None) == (fault is None)
    assert fault is None or (message is not None and fault in message)
