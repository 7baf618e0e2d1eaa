"""Where traces go: the flag, and OpenTelemetry's environment."""

from __future__ import annotations

import pytest

from mooring.base.errors import OperatorMistake
from mooring.cli.tracing import tracing_options

URLS = {
    "nothing configured": ("", {}, None),
    "the flag": ("http://c:4318/", {}, "http://c:4318/v1/traces"),
    "the environment": ("", {"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c:4318"}, "https://c:4318/v1/traces"),
    "an address for traces is taken as it is": (
        "",
        {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://t/x", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"},
        "http://t/x",
    ),
    "the flag wins": ("http://c", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://d"}, "http://c/v1/traces"),
    "switched off": ("", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://d", "OTEL_SDK_DISABLED": "true"}, None),
}


@pytest.mark.parametrize(("flag", "environment", "url"), URLS.values(), ids=URLS.keys())
def test_where_traces_go(flag, environment, url):
    options = tracing_options(flag, environment)
    assert (options and options.url) == url


def test_headers_service_and_share():
    options = tracing_options(
        "http://c",
        {
            "OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b, team = red",
            "OTEL_SERVICE_NAME": "second",
            "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
            "OTEL_TRACES_SAMPLER_ARG": "0.25",
        },
    )
    assert options is not None
    assert options.headers == {"api-key": "a b", "team": "red"}
    assert (options.service, options.share) == ("second", 0.25)


@pytest.mark.parametrize(
    ("flag", "environment", "message"),
    [
        ("collector:4318", {}, '--tracing-endpoint\n.*"collector:4318" is no address of a collector'),
        ("", {"OTEL_EXPORTER_OTLP_ENDPOINT": "grpc://c"}, "OTEL_EXPORTER_OTLP_ENDPOINT\n.*is no address"),
        (
            "http://c",
            {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "most"},
            'OTEL_TRACES_SAMPLER_ARG\n.*"most" is no share',
        ),
    ],
)
def test_what_cannot_be_done_is_refused(flag, environment, message):
    with pytest.raises(OperatorMistake, match=message):
        tracing_options(flag, environment)
