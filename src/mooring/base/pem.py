"""What is wrong with a certificate or a key, and what to do about it; OpenSSL's own errors name neither.

Called after OpenSSL has rejected them: None means that nothing is found here.
"""

from __future__ import annotations

_DER_SEQUENCE = 0x30


def fault_of_certificate(found: bytes) -> str | None:
    """What keeps this from being a certificate in PEM."""
    if fault := _fault_of_form(found, "certificate", "openssl x509 -inform der"):
        return fault
    if b"-----BEGIN CERTIFICATE-----" not in found:
        return (
            "holds a key, and no certificate; name the certificate"
            if _has_key(found)
            else "holds no certificate in PEM: a block that begins with -----BEGIN CERTIFICATE-----"
        )
    from cryptography.x509 import load_pem_x509_certificates

    try:
        load_pem_x509_certificates(found)
    except ValueError:
        return "holds a certificate that is cut off or changed, and cannot be decoded; copy it again"
    return None


def fault_of_key(found: bytes) -> str | None:
    """What keeps this from being a private key in PEM, without a password."""
    if fault := _fault_of_form(found, "private key", "openssl pkey -inform der"):
        return fault
    if b"ENCRYPTED" in found:
        return "is protected by a password; give one without"
    if not _has_key(found):
        return (
            "holds a certificate, and no private key; name the key"
            if b"CERTIFICATE-----" in found
            else "holds no private key in PEM: a block that begins with -----BEGIN PRIVATE KEY-----"
        )
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        load_pem_private_key(found, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "holds a private key that is cut off or changed, and cannot be decoded; copy it again"
    return None


def _has_key(found: bytes) -> bool:
    return b"PRIVATE KEY-----" in found


def _fault_of_form(found: bytes, what: str, convert: str) -> str | None:
    if not found.strip():
        return f"is empty; it must hold a {what} in PEM"
    # The byte is also the character 0; DER is never text alone.
    if found[0] == _DER_SEQUENCE and not found.isascii():
        return f"is in DER form, not PEM; convert it: {convert}"
    return None
