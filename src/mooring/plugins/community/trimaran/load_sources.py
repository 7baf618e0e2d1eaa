"""Where measurements come from: a load watcher, Prometheus, or the metrics API of the cluster.

A source is used by a background task and raises `Fault` when there is nothing to read, with the address and the cause.
"""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from mooring.base.clock import Clock, parse_timestamp
from mooring.base.errors import Fault
from mooring.base.nesting import decode
from mooring.base.redaction import shown_url
from mooring.framework import Http, HttpResponse, Objects
from mooring.objects.meta import KubeObject
from mooring.objects.quantity import BadQuantity, QuantityText, milli, whole
from mooring.objects.wire import Wire
from mooring.plugins.community.trimaran.args import PROMETHEUS, MetricProviderSpec, TrimaranArgs
from mooring.plugins.community.trimaran.loads import AVERAGE, CPU, DEVIATION, LATEST, MEMORY, LoadMeasurement, Loads

T = TypeVar("T")

TIMEOUT_SECONDS = 10.0
DEFAULT_PROMETHEUS = "http://prometheus-k8s:9090"
DEFAULT_API_SERVER = "https://kubernetes.default.svc"
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
WINDOW = "15m"
_OF_PROMETHEUS = {"instance:node_cpu:ratio": CPU, "instance:node_memory_utilisation:ratio": MEMORY}
_METHODS = {"avg_over_time": AVERAGE, "stddev_over_time": DEVIATION}


class MeasuredNodeStatus(Wire):
    capacity: dict[str, QuantityText] = {}


class MeasuredNode(KubeObject, version="v1", plural="nodes", scope="Cluster", kind="Node"):
    """What load-aware plugins read of a node: what it has in all, of which pods may use less."""

    status: MeasuredNodeStatus = msgspec.field(default_factory=MeasuredNodeStatus)

    @property
    def cpu_milli(self) -> int:
        return milli(self.status.capacity.get("cpu", 0))

    @property
    def memory_bytes(self) -> int:
        return whole(self.status.capacity.get("memory", 0))


class LoadSource(Protocol):
    async def fetch(self) -> Loads: ...


def source_of(args: TrimaranArgs, http: Http, nodes: Objects[MeasuredNode], clock: Clock) -> LoadSource:
    """The source that the arguments name."""
    if args.watcher_address:
        return LoadWatcher(args.watcher_address, http)
    if args.metric_provider.type == PROMETHEUS:
        return PrometheusSource(args.metric_provider, http, clock)
    return MetricsApi(args.metric_provider, http, nodes)


class _NodeReport(msgspec.Struct):
    metrics: list[LoadMeasurement] | None = None


class _Data(msgspec.Struct):
    nodes: dict[str, _NodeReport] | None = msgspec.field(default=None, name="NodeMetricsMap")


class _Window(msgspec.Struct):
    end: float = 0.0


class _Report(msgspec.Struct):
    """The response of a load watcher."""

    data: _Data
    window: _Window = msgspec.field(default_factory=_Window)


class LoadWatcher:
    """A load watcher: one request for all nodes."""

    def __init__(self, address: str, http: Http) -> None:
        self._url, self._http = f"{address.rstrip('/')}/watcher", http

    async def fetch(self) -> Loads:
        response = await self._http.get(self._url, timeout_seconds=TIMEOUT_SECONDS)
        report = _decoded(response, _Report, "the report of a load watcher")
        if report.data.nodes is None:
            raise Fault(f"{shown_url(self._url)} reported no nodes")
        nodes = {name: _finite(each.metrics or ()) for name, each in report.data.nodes.items()}
        return Loads(nodes, report.window.end)


class _Series(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Vector(msgspec.Struct):
    result: list[_Series]


class _QueryResult(msgspec.Struct):
    status: str
    data: _Vector | None = None
    error: str = ""


class PrometheusSource:
    """Prometheus, with the recording rules of kube-prometheus: averages and deviations over a quarter of an hour."""

    def __init__(self, provider: MetricProviderSpec, http: Http, clock: Clock) -> None:
        self._provider, self._http, self._clock = provider, http, clock
        self._url = f"{(provider.address or DEFAULT_PROMETHEUS).rstrip('/')}/api/v1/query"

    async def fetch(self) -> Loads:
        now = self._clock.now()
        nodes: dict[str, list[LoadMeasurement]] = {}
        headers = await _authorization(self._provider)
        for method, operator in _METHODS.items():
            for metric, type in _OF_PROMETHEUS.items():
                for series in await self._query(f"{method}({metric}[{WINDOW}])", headers):
                    ratio = float(series.value[1])
                    if math.isfinite(ratio):
                        node = _without_port(series.metric.get("instance", ""))
                        nodes.setdefault(node, []).append(LoadMeasurement(type, operator, 100 * ratio))
        if not nodes:
            rules = ", ".join(_OF_PROMETHEUS)
            raise Fault(f"{shown_url(self._url)} has no series of the recording rules {rules}")
        return Loads({name: tuple(measured) for name, measured in nodes.items()}, now)

    async def _query(self, query: str, headers: dict[str, str]) -> list[_Series]:
        response = await self._http.get(
            self._url,
            params={"query": query},
            headers=headers,
            timeout_seconds=TIMEOUT_SECONDS,
            ca_file=self._provider.ca_file or None,
        )
        content = _decoded(response, _QueryResult, "a Prometheus query result")
        if content.status != "success" or content.data is None:
            raise Fault(f"{shown_url(self._url)} responded {response.status} {content.error}".rstrip())
        return content.data.result


class _NodeMetricsMeta(msgspec.Struct):
    name: str = ""


class _NodeMetrics(msgspec.Struct):
    """metrics.k8s.io/v1beta1."""

    metadata: _NodeMetricsMeta
    usage: dict[str, QuantityText] = {}
    timestamp: str = ""


class _NodeMetricsList(msgspec.Struct):
    items: list[_NodeMetrics]


class MetricsApi:
    """The metrics API of the cluster, as `kubectl top nodes` reads it: the latest usage, no deviation."""

    def __init__(self, provider: MetricProviderSpec, http: Http, nodes: Objects[MeasuredNode]) -> None:
        self._provider, self._http, self._nodes = provider, http, nodes
        self._url = f"{(provider.address or DEFAULT_API_SERVER).rstrip('/')}/apis/metrics.k8s.io/v1beta1/nodes"

    async def fetch(self) -> Loads:
        # In a pod, the service account's files are there; elsewhere the arguments name others, or none are needed.
        in_cluster = not self._provider.address
        response = await self._http.get(
            self._url,
            headers=await _authorization(self._provider, SERVICE_ACCOUNT / "token" if in_cluster else None),
            timeout_seconds=TIMEOUT_SECONDS,
            ca_file=self._provider.ca_file or (str(SERVICE_ACCOUNT / "ca.crt") if in_cluster else None),
        )
        listed = _decoded(response, _NodeMetricsList, "a list of NodeMetrics")
        nodes: dict[str, tuple[LoadMeasurement, ...]] = {}
        end = 0.0
        for item in listed.items:
            node = self._nodes.get(item.metadata.name)
            if node is None:
                continue
            try:
                cpu, memory = milli(item.usage.get("cpu", 0)), whole(item.usage.get("memory", 0))
                end = max(end, parse_timestamp(item.timestamp))
            except (BadQuantity, ValueError) as error:
                raise Fault(f"{shown_url(self._url)} has invalid metrics of {item.metadata.name}: {error}") from error
            nodes[item.metadata.name] = tuple(
                LoadMeasurement(type, LATEST, 100 * used / capacity)
                for type, used, capacity in ((CPU, cpu, node.cpu_milli), (MEMORY, memory, node.memory_bytes))
                if capacity
            )
        if not nodes:
            raise Fault(f"{shown_url(self._url)} has no metrics of any node")
        return Loads(nodes, end)


async def _authorization(provider: MetricProviderSpec, default_file: Path | None = None) -> dict[str, str]:
    file = Path(provider.token_file) if provider.token_file else default_file
    token = provider.token
    if not token and file is not None:
        try:
            token = (await asyncio.to_thread(file.read_text, encoding="utf-8")).strip()
        except OSError as error:
            raise Fault(f"the token file {file} cannot be read: {error.strerror}") from error
    return {"Authorization": f"Bearer {token}"} if token else {}


def _decoded(response: HttpResponse, form: type[T], what: str) -> T:
    address = shown_url(response.url) or "the server"
    if not response.is_success:
        raise Fault(f"{address} responded with status {response.status}")
    try:
        decoded: T = decode(response.body, form)
    except msgspec.MsgspecError as error:
        raise Fault(f"{address} returned something that is not {what}: {error}") from error
    return decoded


def _finite(measured: list[LoadMeasurement] | tuple[LoadMeasurement, ...]) -> tuple[LoadMeasurement, ...]:
    return tuple(each for each in measured if math.isfinite(each.value))


def _without_port(instance: str) -> str:
    host, _, port = instance.rpartition(":")
    return host if host and port.isdigit() else instance
