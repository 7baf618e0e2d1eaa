"""Requests to the API server, under the names of Kubernetes' Go client."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from mooring.scheduler.metrics.series import Counter, Histogram

SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
BYTES = (64.0, 256.0, 512.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0, 16777216.0)

_BY_VERB = ("verb", "host")


class RequestMetrics:
    """The client's `RequestObserver`. Called on the thread that decides; other clients are not counted."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "rest_client_requests_total", "[ALPHA] Requests to the API server.", ("code", "method", "host")
        )
        self._seconds = _histogram(
            "rest_client_request_duration_seconds", "Latency until the response headers arrive.", SECONDS
        )
        self._sent = _histogram("rest_client_request_size_bytes", "Size of request bodies.", BYTES)
        self._received = _histogram(
            "rest_client_response_size_bytes", "Size of response bodies, except of watches.", BYTES
        )
        self._held = _histogram(
            "rest_client_rate_limiter_duration_seconds", "Time spent in client-side throttling.", SECONDS
        )
        for each in (self._requests, self._seconds, self._sent, self._received, self._held):
            registry.register(each)

    def responded(self, method: str, host: str, code: str, seconds: float, sent: int) -> None:
        self._requests.at[code, method, host] += 1
        self._seconds.at[method, host].observe(seconds)
        self._sent.at[method, host].observe(sent)

    def received(self, method: str, host: str, size: int) -> None:
        self._received.at[method, host].observe(size)

    def held_back(self, method: str, host: str, seconds: float) -> None:
        self._held.at[method, host].observe(seconds)


def _histogram(name: str, description: str, bounds: tuple[float, ...]) -> Histogram:
    return Histogram(name, f"[ALPHA] {description}", _BY_VERB, bounds)
