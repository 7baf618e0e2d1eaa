"""`--tracing-endpoint`, and OpenTelemetry's own environment variables, which mean the same."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

import click

from mooring.base.errors import OperatorMistake, Problem
from mooring.base.redaction import shown_url
from mooring.cli.gotypes import Flag

if TYPE_CHECKING:
    from mooring.scheduler.metrics.tracing import OtlpTracer, TracingOptions

FLAG = "--tracing-endpoint"
ENDPOINT, TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
HEADERS, SERVICE = "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_SERVICE_NAME"
SAMPLER, SHARE, DISABLED = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG", "OTEL_SDK_DISABLED"

F = TypeVar("F", bound=Callable[..., Any])


def tracing_option(command: F) -> F:
    """The flag; the command gets it as `tracing_endpoint`."""
    return click.option(
        FLAG,
        cls=Flag,
        default="",
        metavar="URL",
        help="Send traces of attempts to this OpenTelemetry collector (OTLP over HTTP, as http://collector:4318).",
    )(command)


def tracing_options(endpoint: str, environment: Mapping[str, str] = os.environ) -> TracingOptions | None:
    """The tracing options; None: no traces. The flag wins over the environment."""
    from mooring.scheduler.metrics.tracing import PATH, TracingOptions

    source, url = FLAG, endpoint.rstrip("/") + PATH if endpoint else ""
    if not url and environment.get(DISABLED, "").lower() != "true":
        if given := environment.get(TRACES_ENDPOINT):
            source, url = TRACES_ENDPOINT, given
        elif given := environment.get(ENDPOINT):
            source, url = ENDPOINT, given.rstrip("/") + PATH
    if not url:
        return None
    if not _is_address(url):
        shown = shown_url(endpoint or url)
        problem = Problem(source, f'"{shown}" is no address of a collector; write http://HOST:4318')
        raise OperatorMistake.found_in("the tracing setup", [problem])
    url, basic = _without_user(url)
    return TracingOptions(
        url, basic | _headers(environment), environment.get(SERVICE) or "mooring", _share(environment)
    )


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _without_user(url: str) -> tuple[str, dict[str, str]]:
    """The address to send to, and its user and password as a header."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    encoded = base64.b64encode(unquote(user).encode()).decode()
    return urlunsplit(parts._replace(netloc=host)), {"Authorization": f"Basic {encoded}"}


def _headers(environment: Mapping[str, str]) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in environment.get(HEADERS, "").split(",") if pair.strip())
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}


def _share(environment: Mapping[str, str]) -> float:
    """The sampled share of attempts, as OpenTelemetry's ratio samplers define it."""
    if "traceidratio" not in environment.get(SAMPLER, ""):
        return 0.0 if environment.get(SAMPLER) == "always_off" else 1.0
    text = environment.get(SHARE, "1")
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        problem = Problem(SHARE, f'"{text}" is no share; write a number between 0 and 1')
        raise OperatorMistake.found_in("the tracing setup", [problem])
    return share


@contextmanager
def tracer_of(options: TracingOptions | None) -> Iterator[OtlpTracer | None]:
    """The tracer of attempts, sending while inside; None without options."""
    if options is None:
        yield None
        return
    from mooring.scheduler.metrics.tracing import OtlpTracer

    tracer = OtlpTracer(options)
    tracer.start()
    try:
        yield tracer
    finally:
        tracer.stop()
