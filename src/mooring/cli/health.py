"""`mooring health`: is the scheduler on this machine well? For HEALTHCHECK and exec probes."""

from __future__ import annotations

import http.client
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import click

from mooring.base.durations import go_duration
from mooring.base.errors import Fault, OperatorMistake, Problem
from mooring.base.pem import fault_of_certificate
from mooring.cli.gotypes import GoDuration
from mooring.cli.output import print_lines
from mooring.cli.serving import KUBE_SCHEDULERS_PORT

MOST_BYTES = 64_000


@click.command()
@click.option("--url", metavar="URL", help="URL to probe instead of a local port: https://host:10259/readyz.")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=KUBE_SCHEDULERS_PORT,
    show_default=True,
    metavar="PORT",
    help="The scheduler's --secure-port on this machine.",
)
@click.option(
    "--check",
    type=click.Choice(["healthz", "livez", "readyz"]),
    default="healthz",
    show_default=True,
    help="Which endpoint to probe.",
)
@click.option(
    "--timeout",
    type=GoDuration(),
    default="5s",
    show_default=True,
    metavar="DURATION",
    help="How long to wait for the response.",
)
@click.option("--ca-file", metavar="FILE", help="Verify the server's certificate by this authority.")
def health(url: str | None, port: int, check: str, timeout: float, ca_file: str | None) -> None:
    """Probe the health of a running scheduler; exits with 0 if it is healthy, with 1 if not or if it does not respond.

    The certificate is verified only with --ca-file: the usual one is signed by itself, nothing secret is sent, and the
    request goes to this very machine unless --url names another.

    \b
    Example:
      mooring health --check readyz
    """
    target = url or f"https://127.0.0.1:{port}/{check}"
    parts = urlsplit(target)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise OperatorMistake.found_in(
            "the command line", [Problem("--url", f'must be an http or https address, got "{target}"')]
        )
    if timeout <= 0:
        raise OperatorMistake.found_in("the command line", [Problem("--timeout", "must be longer than 0")])
    status, text = _probed(target, timeout, _trust(ca_file))
    if status != 200:
        raise Fault(f"{target} responds {status}: {text.strip() or 'nothing'}")
    print_lines(text.strip())


def _trust(ca_file: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca_file is None:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context
    try:
        context.load_verify_locations(ca_file)
    except (OSError, ssl.SSLError) as error:
        problem = Problem("--ca-file", f"{ca_file} {_why_not(ca_file, error)}")
        raise OperatorMistake.found_in("the command line", [problem]) from error
    return context


def _why_not(file: str, error: OSError) -> str:
    try:
        fault = fault_of_certificate(Path(file).read_bytes())
    except OSError:
        fault = None
    return fault or f"cannot be used: {error.strerror or error}"


def _probed(target: str, seconds: float, trust: ssl.SSLContext) -> tuple[int, str]:
    parts = urlsplit(target)
    assert parts.hostname is not None
    connection = (
        http.client.HTTPSConnection(parts.hostname, parts.port, timeout=seconds, context=trust)
        if parts.scheme == "https"
        else http.client.HTTPConnection(parts.hostname, parts.port, timeout=seconds)
    )
    try:
        connection.request("GET", (parts.path or "/healthz") + (f"?{parts.query}" if parts.query else ""))
        response = connection.getresponse()
        return response.status, response.read(MOST_BYTES).decode(errors="replace")
    except TimeoutError as error:
        raise Fault(f"{target} does not respond within {go_duration(seconds)}.") from error
    except ConnectionRefusedError as error:
        raise Fault(f"Nothing listens at {target}: is the scheduler running, and with this --secure-port?") from error
    except ssl.SSLCertVerificationError as error:
        raise Fault(f"{target} shows a certificate that is not to be trusted: {error.verify_message}.") from error
    except (OSError, http.client.HTTPException) as error:
        raise Fault(f"{target} cannot be probed: {error}.") from error
    finally:
        connection.close()
