"""Which certificate is shown for which host, and what happens when its file changes."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from tests.scheduler.serving.certificates import an_authority

from mooring.base.errors import OperatorMistake
from mooring.base.tls import make_identity
from mooring.scheduler.serving.certificates import NamedPair, ServingCertificates, TlsOptions
from mooring.scheduler.serving.tls_settings import TlsSettings, curves_here

AUTHORITY = an_authority("a test")
NOW = time.time()
DAY = 24 * 3600


def shake_hands(server: ssl.SSLContext, name: str | None = None, client: ssl.SSLContext | None = None) -> ssl.SSLSocket:
    """The client's end of a connection."""
    if client is None:
        client = ssl.create_default_context()
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    ours, theirs = socket.socketpair()

    def serve() -> None:
        try:
            server.wrap_socket(theirs, server_side=True).close()
        except OSError:
            theirs.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        return client.wrap_socket(ours, server_hostname=name)
    finally:
        thread.join()


def shown_by(certificates: ServingCertificates, name: str | None = None) -> str:
    """The common name of the certificate that a client gets for this host."""
    with shake_hands(certificates.context, name) as connection:
        encoded = connection.getpeercert(binary_form=True)
    assert encoded is not None
    names = x509.load_der_x509_certificate(encoded).subject.get_attributes_for_oid(x509.oid.NameOID.COMMON_NAME)
    return str(names[0].value)


def a_pair(folder: Path, name: str, hosts: Sequence[str] = ("localhost",)) -> tuple[str, str]:
    return AUTHORITY.issue(name, hosts=hosts).write(folder, name)


@pytest.mark.parametrize(
    ("requested", "shown"),
    [
        (None, "default"),
        ("unknown.example", "default"),
        ("web.example", "web"),
        ("WEB.EXAMPLE", "web"),
        ("a.shop.example", "shops"),
        ("own.shop.example", "own"),
        ("deep.a.shop.example", "default"),
        ("in.certificate", "extracted"),
    ],
)
def test_a_host_gets_the_certificate_that_is_kept_for_it(tmp_path, requested, shown):
    certificate, key = a_pair(tmp_path, "default")
    named = (
        NamedPair(*a_pair(tmp_path, "web"), ("web.example",)),
        NamedPair(*a_pair(tmp_path, "shops"), ("*.shop.example",)),
        NamedPair(*a_pair(tmp_path, "own"), ("own.shop.example",)),
        NamedPair(*a_pair(tmp_path, "extracted", ["in.certificate"])),
    )
    options = TlsOptions(cert_file=certificate, key_file=key, named=named)
    assert shown_by(ServingCertificates(options, ["localhost"], NOW), requested) == shown


def test_a_renewed_certificate_needs_no_restart(tmp_path):
    certificate, key = a_pair(tmp_path, "server")
    certificates = ServingCertificates(TlsOptions(cert_file=certificate, key_file=key), [], NOW)
    AUTHORITY.issue("renewed", hosts=["localhost"]).write(tmp_path, "server")
    assert shown_by(certificates) == "server"
    certificates.refresh(NOW)
    assert shown_by(certificates) == "renewed"


def test_a_broken_renewal_leaves_the_last_good_certificate(tmp_path, capsys):
    certificate, key = a_pair(tmp_path, "server")
    certificates = ServingCertificates(TlsOptions(cert_file=certificate, key_file=key), [], NOW)
    Path(certificate).write_text("hello")
    certificates.refresh(NOW)
    assert "Changed certificate is invalid" in capsys.readouterr().err
    assert shown_by(certificates) == "server"
    Path(key).unlink()
    certificates.refresh(NOW)
    assert "cannot be read: No such file" in capsys.readouterr().err
    assert shown_by(certificates) == "server"


def test_a_certificate_that_has_ended_is_served_and_named(tmp_path, capsys):
    certificate, key = AUTHORITY.issue("late", hosts=["localhost"], life=timedelta(minutes=-1)).write(tmp_path, "late")
    certificates = ServingCertificates(TlsOptions(cert_file=certificate, key_file=key), [], NOW + 3600)
    assert "Certificate is not valid now" in capsys.readouterr().err
    assert shown_by(certificates) == "late"


def test_a_certificate_of_our_own_is_made_again_before_it_ends():
    certificates = ServingCertificates(TlsOptions(), ["localhost"], NOW)

    def serial() -> bytes | None:
        with shake_hands(certificates.context) as connection:
            return connection.getpeercert(binary_form=True)

    first = serial()
    certificates.refresh(NOW + 14 * 24 * 3600)
    assert serial() == first
    certificates.refresh(NOW + 16 * 24 * 3600)
    assert serial() != first


def test_one_of_our_own_in_a_folder_is_made_again_before_it_ends_and_kept_until_then(tmp_path):
    written = tmp_path / "kube-scheduler.crt"
    certificates = ServingCertificates(TlsOptions(cert_dir=str(tmp_path)), ["localhost"], NOW)
    first = written.read_bytes()
    ServingCertificates(TlsOptions(cert_dir=str(tmp_path)), ["localhost"], NOW + 14 * DAY)
    certificates.refresh(NOW + 14 * DAY)
    assert written.read_bytes() == first
    certificates.refresh(NOW + 16 * DAY)
    assert written.read_bytes() != first
    assert shown_by(certificates) == "mooring scheduler"


def test_a_certificate_that_an_operator_put_into_the_folder_is_theirs_to_renew(tmp_path):
    AUTHORITY.issue("server", hosts=["localhost"]).write(tmp_path, "kube-scheduler")
    first = (tmp_path / "kube-scheduler.crt").read_bytes()
    ServingCertificates(TlsOptions(cert_dir=str(tmp_path)), ["localhost"], NOW + 1000 * DAY)
    assert (tmp_path / "kube-scheduler.crt").read_bytes() == first


def test_authorities_are_replaced_while_we_serve(tmp_path):
    one, other = an_authority("one"), an_authority("other")
    certificates = ServingCertificates(TlsOptions(), ["localhost"], NOW)

    def is_trusted(context: ssl.SSLContext) -> bool:
        try:
            with shake_hands(certificates.context, client=context) as connection:
                # In TLS 1.3 the client is done before the server has looked at its certificate.
                connection.settimeout(5)
                return connection.recv(1) == b""
        except ssl.SSLError:
            return False

    mine, yours = (each.issue("me").client_context(tmp_path) for each in (one, other))
    certificates.trust(one.pem)
    assert (is_trusted(mine), is_trusted(yours)) == (True, False)
    certificates.trust(other.pem)
    assert (is_trusted(mine), is_trusted(yours)) == (False, True)


def test_a_pair_for_a_host_that_cannot_be_read_is_named(tmp_path):
    options = TlsOptions(named=(NamedPair(str(tmp_path / "no.crt"), "no.key"),))
    with pytest.raises(OperatorMistake, match=r"(?s)--tls-sni-cert-key.*no.crt cannot be read"):
        ServingCertificates(options, [], NOW)


def test_only_the_given_cipher_suite_is_negotiated():
    settings = TlsSettings(cipher_suites=("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",))
    server = ServingCertificates(TlsOptions(settings=settings), ["localhost"], NOW).context
    old = ssl.create_default_context()
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with shake_hands(server, client=old) as connection:
        cipher = connection.cipher()
    assert cipher is not None
    assert cipher[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"
    old.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    with pytest.raises(ssl.SSLError):
        shake_hands(server, client=old)


@pytest.mark.parametrize("suite", ["ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA384", "ECDHE-ECDSA-AES128-SHA256"])
def test_no_suite_with_cbc_is_negotiated_unless_a_flag_names_it(suite):
    old = ssl.create_default_context()
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    old.set_ciphers(suite)
    with pytest.raises(ssl.SSLError):
        shake_hands(ServingCertificates(TlsOptions(), ["localhost"], NOW).context, client=old)
    with pytest.raises(ssl.SSLError):
        shake_hands(make_identity(["localhost"], "a test").ssl_context(), client=old)


def test_no_client_may_renegotiate():
    for context in (
        ServingCertificates(TlsOptions(), ["localhost"], NOW).context,
        make_identity(["localhost"], "a test").ssl_context(),
    ):
        assert context.options & ssl.OP_NO_RENEGOTIATION


def test_a_suite_with_cbc_is_negotiated_where_a_flag_names_it():
    settings = TlsSettings(cipher_suites=("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",))
    old = ssl.create_default_context()
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    old.set_ciphers("ECDHE-ECDSA-AES128-SHA")
    with shake_hands(ServingCertificates(TlsOptions(settings=settings), ["localhost"], NOW).context, client=old) as met:
        cipher = met.cipher()
    assert cipher is not None
    assert cipher[0] == "ECDHE-ECDSA-AES128-SHA"


def test_the_oldest_version_is_kept():
    server = ServingCertificates(TlsOptions(settings=TlsSettings("VersionTLS13")), ["localhost"], NOW).context
    old = ssl.create_default_context()
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        shake_hands(server, client=old)
    with shake_hands(server) as connection:
        assert connection.version() == "TLSv1.3"


@pytest.mark.parametrize("version", ["VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"])
def test_every_version_can_be_configured(version):
    assert TlsSettings(version).mistakes() == []
    ServingCertificates(TlsOptions(settings=TlsSettings(version)), ["localhost"], NOW)


def test_a_suite_or_curve_that_cannot_be_honoured_is_reported():
    settings = TlsSettings(
        cipher_suites=("TLS_RSA_WITH_RC4_128_SHA", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"),
        curves=(24, 23),
    )
    assert settings.mistakes() == []
    reported = {warning.path: warning.message for warning in settings.warnings()}
    assert "TLS_RSA_WITH_RC4_128_SHA" in reported["--tls-cipher-suites"]
    assert "prime256v1" in reported["--tls-curve-preferences"]


@pytest.mark.parametrize("curve", curves_here())
def test_each_key_exchange_can_be_chosen(curve):
    server = ServingCertificates(TlsOptions(settings=TlsSettings(curves=(curve,))), ["localhost"], NOW).context
    shake_hands(server).close()


@pytest.mark.parametrize("name", ["kube-scheduler.crt", "kube-scheduler.key"])
def test_one_file_of_an_operators_pair_is_not_replaced_because_the_other_is_missing(tmp_path, name):
    (tmp_path / name).write_text("an operator's")
    with pytest.raises(OperatorMistake, match=f"{name} is there without"):
        ServingCertificates(TlsOptions(cert_dir=str(tmp_path)), ["localhost"], 0.0)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [(name, "an operator's")]
