"""Traces, as a collector receives them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.scheduler.metrics.test_attempt_metrics import Bench, Taking

from mooring.base.errors import PluginFault
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.stopwatch import Run
from mooring.scheduler.metrics.tracing import MOST_WAITING, OtlpTracer, TracingOptions

Span = dict[str, Any]


class Collector:
    """Receives OTLP over HTTP."""

    def __init__(self) -> None:
        received = self.received = []  # type: list[tuple[str, dict[str, str], dict[str, Any]]]

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received.append((self.path, dict(self.headers), json.loads(body)))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """No component reads it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1/traces"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def spans(self) -> list[Span]:
        return [
            span
            for _, _, document in self.received
            for resource in document["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        ]


@pytest.fixture
def collector() -> Iterator[Collector]:
    running = Collector()
    yield running
    running.close()


def traced(collector: Collector, **options: Any) -> tuple[Bench, OtlpTracer]:
    tracer = OtlpTracer(TracingOptions(collector.url, **options))
    tracer.start()
    return Bench(tracer=tracer), tracer


def test_an_attempt_is_a_trace_of_points_and_plugins(collector):
    bench, tracer = traced(collector, headers={"X-Team": "red"}, service="second")
    decision = bench.attempt(Taking(bench.clock, filter=0.25))
    assert decision.cycle.watch is not None
    decision.cycle.watch.runs.append(
        Run(ExtensionPoint.BIND, ["Binder"], [now := bench.clock.monotonic()], now, now + 1)
    )
    bench.metrics.attempts.ended(decision, PluginFault("Binder", "the server is away", "Bind"))
    tracer.stop()

    spans = {(span["name"], span["parentSpanId"]): span for span in collector.spans}
    whole = spans["schedule", ""]
    reported = {each["key"]: each["value"]["stringValue"] for each in whole["attributes"]}
    assert reported == {"pod": "default/web", "profile": "default-scheduler", "attempt": "1", "node": decision.node}
    filtering = spans["Filter", whole["spanId"]]
    turn = spans["Taking", filtering["spanId"]]
    assert int(turn["endTimeUnixNano"]) - int(turn["startTimeUnixNano"]) == pytest.approx(250e6, rel=0.01)
    binding = spans["bind", whole["spanId"]]
    binder = spans["Binder", spans["Bind", binding["spanId"]]["spanId"]]
    assert binder["status"] == {"code": 2, "message": "the server is away"}
    assert {span["traceId"] for span in collector.spans} == {whole["traceId"]}
    path, headers, document = collector.received[0]
    assert (path, headers["X-Team"]) == ("/v1/traces", "red")
    assert {"key": "service.name", "value": {"stringValue": "second"}} in document["resourceSpans"][0]["resource"][
        "attributes"
    ]


def test_a_share_of_nothing_traces_nothing(collector):
    bench, tracer = traced(collector, share=0.0)
    bench.attempt(Taking(bench.clock))
    tracer.stop()
    assert collector.received == []


def test_a_collector_that_is_away_costs_attempts_and_one_line(capsys):
    tracer = OtlpTracer(TracingOptions("http://127.0.0.1:9/v1/traces"))
    tracer.start()
    bench = Bench(tracer=tracer)
    bench.attempt(Taking(bench.clock))
    tracer.stop()
    assert tracer.dropped.at[()] == 1
    assert "Failed to send traces; is the collector's OTLP/HTTP receiver running?" in capsys.readouterr().err


def test_what_does_not_fit_is_left_out():
    tracer = OtlpTracer(TracingOptions("http://127.0.0.1:9/v1/traces"))
    bench = Bench(tracer=tracer)
    decision = bench.attempt(Taking(bench.clock))
    for _ in range(MOST_WAITING):
        bench.metrics.attempts.ended(decision)
    assert tracer.dropped.at[()] == 1
