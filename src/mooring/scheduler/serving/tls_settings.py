"""TLS versions, cipher suites and key exchanges, by the names that kube-scheduler's flags use.

The implementation is OpenSSL's, so what Go supports and OpenSSL does not is refused or warned about, never assumed.
"""

from __future__ import annotations

import contextlib
import functools
import ssl
import warnings
from dataclasses import dataclass

from mooring.base.errors import Problem
from mooring.base.tls import DEFAULT_SUITES

VERSIONS = {
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
TLS13_SUITES = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
"""Always offered with TLS 1.3, here as in Go."""
SUITES = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA": "ECDHE-ECDSA-RC4-SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA": "ECDHE-RSA-DES-CBC3-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA": "ECDHE-RSA-RC4-SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA": "DES-CBC3-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_RSA_WITH_RC4_128_SHA": "RC4-SHA",
}
"""IANA's names, which Go uses, to OpenSSL's."""
DEFAULT_OLD_SUITES = (
    *DEFAULT_SUITES,
    "ECDHE-ECDSA-AES128-SHA",
    "ECDHE-RSA-AES128-SHA",
    "ECDHE-ECDSA-AES256-SHA",
    "ECDHE-RSA-AES256-SHA",
)
"""Where an operator allows TLS 1.0 or 1.1, which has no others."""
CURVES = {29: "X25519", 23: "prime256v1", 24: "secp384r1", 25: "secp521r1"}
"""Go's numbers for key exchanges, in the order in which we would take them."""


@functools.cache
def curves_here() -> dict[int, str]:
    """Those that this Python can choose: before 3.11.4 it cannot choose X25519."""
    context, found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), {}
    for number, name in CURVES.items():
        with contextlib.suppress(ssl.SSLError):
            context.set_ecdh_curve(name)
            found[number] = name
    return found


@dataclass(frozen=True)
class TlsSettings:
    """The values of the flags; empty: the default."""

    min_version: str = ""
    cipher_suites: tuple[str, ...] = ()
    curves: tuple[int, ...] = ()

    def mistakes(self) -> list[Problem]:
        """What is not supported."""
        problems = []
        if self.min_version and self.min_version not in VERSIONS:
            known = ", ".join(VERSIONS)
            problems.append(Problem("--tls-min-version", f'must be one of {known}, got "{self.min_version}"'))
        for suite in self.cipher_suites:
            if suite not in SUITES and suite not in TLS13_SUITES:
                what = f'"{suite}" is not a cipher suite that Go knows; see kube-scheduler --help for their names'
                problems.append(Problem("--tls-cipher-suites", what))
        if self._old_suites and not self._supported_suites and self.min_version != "VersionTLS13":
            what = f"this OpenSSL supports none of {', '.join(self._old_suites)}; name others, or leave the flag out"
            problems.append(Problem("--tls-cipher-suites", what))
        for curve in self.curves:
            if not 1 <= curve <= 65535:
                problems.append(Problem("--tls-curve-preferences", f"{curve} is out of range (must be 1-65535)"))
        if self.curves and self.curve is None and not problems:
            known = ", ".join(f"{number} ({name})" for number, name in curves_here().items())
            problems.append(Problem("--tls-curve-preferences", f"none of these can be used here; there are {known}"))
        return problems

    def warnings(self) -> list[Problem]:
        """Where the server deviates from the flags."""
        warnings = []
        if lacking := [suite for suite in self._old_suites if SUITES[suite] not in self._supported_suites]:
            what = f"{', '.join(lacking)}: not supported by this OpenSSL"
            warnings.append(Problem("--tls-cipher-suites", what))
        if self.curve is not None and len(set(self.curves)) > 1:
            what = f"one key exchange can be chosen here; of those given it is {self.curve}"
            warnings.append(Problem("--tls-curve-preferences", what))
        return warnings

    @property
    def curve(self) -> str | None:
        return next((name for number, name in curves_here().items() if number in self.curves), None)

    @property
    def _is_old(self) -> bool:
        return self.min_version in ("VersionTLS10", "VersionTLS11")

    @property
    def _old_suites(self) -> list[str]:
        return [suite for suite in self.cipher_suites if suite in SUITES]

    @property
    def _supported_suites(self) -> list[str]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        supported = []
        for suite in self._old_suites:
            try:
                context.set_ciphers(SUITES[suite])
            except ssl.SSLError:
                continue
            if SUITES[suite] in {each["name"] for each in context.get_ciphers()}:
                supported.append(SUITES[suite])
        return supported

    def apply_to(self, context: ssl.SSLContext) -> None:
        with warnings.catch_warnings():
            # Python warns of obsolete versions; the operator has chosen them.
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = VERSIONS.get(self.min_version, ssl.TLSVersion.TLSv1_2)
        if suites := self._supported_suites or (DEFAULT_OLD_SUITES if self._is_old else ()):
            context.set_ciphers(":".join(suites))
        if self.curve is not None:
            context.set_ecdh_curve(self.curve)
        # Every connection proves its certificate itself; a resumed one would repeat what was proven before.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
