"""Where measurements come from: a load watcher, Prometheus, or the metrics API of the cluster.

A source is used by a background task and raises `Fault` when there is nothing to read, with the address and the cause.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from mooring.base.clock import Clock
from mooring.base.errors import Fault
from mooring.base.nesting import decode
from mooring.base.redaction import shown_url
from mooring.framework import Http, HttpResponse, NodeUse, Objects, ResourceMetrics
from mooring.framework.resource_metrics import NODE_METRICS, node_uses
from mooring.objects.meta import KubeObject
from mooring.objects.quantity import QuantityText, milli, whole
from mooring.objects.wire import Wire
from mooring.plugins.community.trimaran.args import PROMETHEUS, MetricProviderSpec, TrimaranArgs
from mooring.plugins.community.trimaran.load_checks import LoadChecks
from mooring.plugins.community.trimaran.loads import (
    AHEAD,
    AHEAD_SECONDS,
    AVERAGE,
    CPU,
    DEVIATION,
    LATEST,
    MEMORY,
    STALE,
    STALE_SECONDS,
    LoadMeasurement,
    Loads,
)

T = TypeVar("T")

TIMEOUT_SECONDS = 10.0
DEFAULT_PROMETHEUS = "http://prometheus-k8s:9090"
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
    @property
    def address(self) -> str:
        """Where it reads, for messages."""
        ...

    async def fetch(self) -> Loads: ...


def source_of(
    args: TrimaranArgs, http: Http, metrics: ResourceMetrics, nodes: Objects[MeasuredNode], clock: Clock
) -> LoadSource:
    """The source that the arguments name."""
    if args.watcher_address:
        return LoadWatcher(args.watcher_address, http, nodes)
    provider = args.metric_provider
    if provider.type == PROMETHEUS:
        return PrometheusSource(provider, http, nodes, clock)
    uses = AddressedMetrics(provider, http) if provider.address else OwnMetrics(metrics)
    return MetricsApi(uses, nodes, clock)


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

    def __init__(self, address: str, http: Http, nodes: Objects[MeasuredNode]) -> None:
        self._url, self._http, self._nodes = f"{address.rstrip('/')}/watcher", http, nodes
        self.address = shown_url(self._url)

    async def fetch(self) -> Loads:
        response = await self._http.get(self._url, timeout_seconds=TIMEOUT_SECONDS)
        return await _aside(self._read, response, _checks(self._nodes))

    def _read(self, response: HttpResponse, checks: LoadChecks) -> Loads:
        report = _decoded(response, _Report, "the report of a load watcher")
        if report.data.nodes is None:
            raise Fault(f"{self.address} reported no nodes")
        for name, each in report.data.nodes.items():
            for measured in each.metrics or ():
                checks.add(name, measured)
        return checks.loads(self.address, report.window.end)


class _Series(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Vector(msgspec.Struct):
    result: list[_Series]


class _QueryResult(msgspec.Struct):
    status: str
    data: _Vector | None = None
    error: str = ""


NAME_AUTHORITY = "insecureSkipVerify has no effect: name the certificate authority in metricProvider.caFile"


class PrometheusSource:
    """Prometheus, with the recording rules of kube-prometheus: averages and deviations over a quarter of an hour."""

    def __init__(self, provider: MetricProviderSpec, http: Http, nodes: Objects[MeasuredNode], clock: Clock) -> None:
        self._provider, self._http, self._nodes, self._clock = provider, http, nodes, clock
        self._url = f"{(provider.address or DEFAULT_PROMETHEUS).rstrip('/')}/api/v1/query"
        self.address = shown_url(self._url)

    async def fetch(self) -> Loads:
        now = self._clock.now()
        headers = await _authorization(self._provider)
        checks = _checks(self._nodes)
        for method, operator in _METHODS.items():
            for metric, type in _OF_PROMETHEUS.items():
                response = await self._query(f"{method}({metric}[{WINDOW}])", headers)
                await _aside(self._read, response, checks, type, operator)
        if checks.is_empty:
            raise Fault(f"{self.address} has no series of the recording rules {', '.join(_OF_PROMETHEUS)}")
        return checks.loads(self.address, now)

    async def _query(self, query: str, headers: dict[str, str]) -> HttpResponse:
        try:
            return await self._http.get(
                self._url,
                params={"query": query},
                headers=headers,
                timeout_seconds=TIMEOUT_SECONDS,
                ca_file=self._provider.ca_file or None,
            )
        except Fault as error:
            # scheduler-plugins does not verify the certificate of Prometheus.
            if "CERTIFICATE_VERIFY_FAILED" in str(error) and not self._provider.ca_file:
                raise Fault(f"{error}; {NAME_AUTHORITY}") from error
            raise

    def _read(self, response: HttpResponse, checks: LoadChecks, type: str, operator: str) -> None:
        content = _decoded(response, _QueryResult, "a Prometheus query result")
        if content.status != "success" or content.data is None:
            raise Fault(f"{self.address} responded {response.status} {content.error}".rstrip())
        for series in content.data.result:
            node = _without_port(series.metric.get("instance", ""))
            try:
                percent = 100 * float(series.value[1])
            except ValueError:
                percent = float("nan")
            checks.add(node, LoadMeasurement(type, operator, percent))


class NodeUses(Protocol):
    """Where NodeMetrics are read."""

    @property
    def address(self) -> str: ...

    async def fetch(self) -> Sequence[NodeUse]: ...


class OwnMetrics:
    """The cluster that the scheduler runs on, with its own credentials."""

    address = "the metrics API of the cluster"

    def __init__(self, metrics: ResourceMetrics) -> None:
        self._metrics = metrics

    async def fetch(self) -> Sequence[NodeUse]:
        return await self._metrics.nodes(timeout_seconds=TIMEOUT_SECONDS)


class AddressedMetrics:
    """An API server that the arguments name, such as a `kubectl proxy`."""

    def __init__(self, provider: MetricProviderSpec, http: Http) -> None:
        self._provider, self._http = provider, http
        self._url = f"{provider.address.rstrip('/')}{NODE_METRICS.path()}"
        self.address = shown_url(self._url)

    async def fetch(self) -> Sequence[NodeUse]:
        response = await self._http.get(
            self._url,
            headers=await _authorization(self._provider),
            timeout_seconds=TIMEOUT_SECONDS,
            ca_file=self._provider.ca_file or None,
        )
        if not response.is_success:
            raise Fault(f"{self.address} responded with status {response.status}")
        return await asyncio.to_thread(node_uses, response.body, self.address)


class MetricsApi:
    """The metrics API, as `kubectl top nodes` reads it: the latest usage, no deviation."""

    def __init__(self, uses: NodeUses, nodes: Objects[MeasuredNode], clock: Clock) -> None:
        self._uses, self._nodes, self._clock = uses, nodes, clock
        self.address = uses.address

    async def fetch(self) -> Loads:
        uses = await self._uses.fetch()
        checks, now, end = _checks(self._nodes), self._clock.now(), 0.0
        for use in uses:
            node = self._nodes.get(use.node)
            if not now - STALE_SECONDS <= use.measured_at <= now + AHEAD_SECONDS:
                # The time is that of the node's own clock: one that is wrong must not cost the loads of the others.
                checks.add_misdated(use.node, STALE if use.measured_at < now else AHEAD)
                continue
            end = max(end, use.measured_at)
            cpu, memory = (node.cpu_milli, node.memory_bytes) if node is not None else (0, 0)
            for type, used, capacity in ((CPU, use.cpu_milli, cpu), (MEMORY, use.memory_bytes, memory)):
                if capacity or node is None:
                    checks.add(use.node, LoadMeasurement(type, LATEST, 100 * used / capacity if capacity else 0.0))
        if not uses:
            raise Fault(f"{self.address} has no metrics of any node")
        return checks.loads(self.address, end)


def _checks(nodes: Objects[MeasuredNode]) -> LoadChecks:
    return LoadChecks({node.name for node in nodes.all()})


async def _aside(read: Callable[..., T], *arguments: object) -> T:
    """In a thread: a long report must not hold the loop of the scheduler."""
    return await asyncio.to_thread(read, *arguments)


async def _authorization(provider: MetricProviderSpec) -> dict[str, str]:
    token = provider.token
    if not token and provider.token_file:
        file = Path(provider.token_file)
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


def _without_port(instance: str) -> str:
    host, _, port = instance.rpartition(":")
    return host if host and port.isdigit() else instance
