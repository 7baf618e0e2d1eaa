"""The arguments that the load-aware plugins share: where measurements come from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from mooring.base.redaction import shown_url
from mooring.framework import Args, ArgsPart, Meta, ResourceMetrics
from mooring.plugins.community.compatibility import Compatibility

METRICS_SERVER, PROMETHEUS, SIGNALFX = "KubernetesMetricsServer", "Prometheus", "SignalFx"


class MetricProviderSpec(ArgsPart):
    """Where measurements come from, without a load watcher."""

    type: Annotated[str, Meta(description="KubernetesMetricsServer or Prometheus.")] = ""
    address: Annotated[str, Meta(description="The URL of Prometheus, or of the API server that serves metrics.")] = ""
    token: Annotated[str, Meta(description="A bearer token to show there; better in a file.")] = ""
    token_file: Annotated[str, Meta(description="A file with the token; read again at each refresh.")] = ""
    ca_file: Annotated[str, Meta(description="Certificates (PEM) to trust instead of the system's.")] = ""
    insecure_skip_verify: Annotated[
        bool | None, Meta(description="Without effect: certificates are always verified.")
    ] = None


class TrimaranArgs(Args):
    """Arguments of every load-aware plugin."""

    watcher_address: Annotated[str, Meta(description="The URL of a load watcher; it counts before metricProvider.")] = (
        ""
    )
    metric_provider: MetricProviderSpec = msgspec.field(default_factory=MetricProviderSpec)
    compatibility: Compatibility = "mooring"

    def unused_services(self) -> Iterable[type]:
        is_own_api = not self.watcher_address and self.metric_provider.type != PROMETHEUS
        return () if is_own_api and not self.metric_provider.address else (ResourceMetrics,)

    def mistakes(self) -> Iterable[tuple[str, str]]:
        if self.watcher_address:
            yield from wrong_address("watcherAddress", self.watcher_address)
            return
        provider = self.metric_provider
        if provider.type == SIGNALFX:
            yield (
                "metricProvider.type",
                "SignalFx is not supported here; run a load watcher that reads it, and give watcherAddress",
            )
        elif provider.type not in ("", METRICS_SERVER, PROMETHEUS):
            yield "metricProvider.type", f"invalid MetricProvider.Type, got {provider.type}"
        if provider.address:
            yield from wrong_address("metricProvider.address", provider.address)


def wrong_address(field: str, address: str) -> Iterable[tuple[str, str]]:
    """What is wrong with it. A password is not repeated."""
    try:
        parts = urlsplit(address)
        is_right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_right = False
    if not is_right:
        yield field, f'must be a URL, such as "http://load-watcher.kube-system:2020", got "{shown_url(address)}"'
