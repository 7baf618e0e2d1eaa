"""NetworkTraffic: favour nodes that receive less network traffic, by what Prometheus measured.

A background task queries Prometheus for all nodes at once and publishes the result; a decision reads what was published
last and never waits. The raw score is the sum of a node's readings over the time range. The node with the most becomes
0, one that receives nothing 100.

Silence never wins: a node without a fresh reading counts as the median of those with one. When Prometheus does
not respond, its last values count until they are three refreshes old, and then every node counts alike.
"""

from __future__ import annotations

import asyncio
import math
import re
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from mooring.base.errors import Fault
from mooring.base.nesting import decode
from mooring.base.redaction import shown_url
from mooring.framework import (
    Args,
    Background,
    Cycle,
    Http,
    HttpResponse,
    Log,
    Meta,
    Metrics,
    NodeView,
    Plugin,
    Pod,
    Published,
    ToMax,
)

FRESH_REFRESHES = 3
"""Readings, and query results, older than so many refreshes are stale."""

LONGEST_WAIT_SECONDS = 10.0
"""How long Prometheus may take to respond."""

EXACT_BITS = 56
"""Scaling a number of more bits to 100 would overflow 64."""


class NetworkTrafficArgs(Args):
    """Arguments of NetworkTraffic."""

    prometheus_address: Annotated[str, Meta(description="Address of Prometheus: http://prometheus.monitoring:9090")]
    network_interface: Annotated[str, Meta(min_length=1, description="The interface whose traffic counts.")] = "ens192"
    time_range_in_minutes: Annotated[int, Meta(ge=1, description="How far back readings count.")] = 5
    node_label: Annotated[str, Meta(description="The label of Prometheus' series that holds the node's name.")] = (
        "kubernetes_node"
    )
    refresh_seconds: Annotated[
        float, Meta(gt=0, description="How often Prometheus is queried; at least a third of its scrape interval.")
    ] = 30
    bearer_token_file: Annotated[
        str | None, Meta(description="A file with the token to show to Prometheus; read again at each refresh.")
    ] = None
    ca_file: Annotated[str | None, Meta(description="Certificates (PEM) to trust instead of the system's.")] = None

    def mistakes(self) -> Iterable[tuple[str, str]]:
        if wrong := _wrong_address(self.prometheus_address):
            yield "prometheusAddress", wrong
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", self.node_label):
            yield "nodeLabel", f'must be the name of a Prometheus label, such as "node", got "{self.node_label}"'


class Traffic(msgspec.Struct, frozen=True):
    """The result of one query. Without any reading, every node counts alike."""

    received: dict[str, int]
    """By node name."""
    median: int = 0

    def of(self, node: str) -> int:
        return self.received.get(node, self.median)


class NetworkTraffic(Plugin):
    """Favour nodes that receive less network traffic, as Prometheus measures it."""

    normalizer = ToMax(reverse=True)

    def __init__(
        self,
        args: NetworkTrafficArgs,
        http: Http,
        traffic: Published[Traffic],
        background: Background,
        metrics: Metrics,
        log: Log,
    ) -> None:
        self._args, self._http, self._traffic, self._background, self._log = args, http, traffic, background, log
        self._fresh_seconds = FRESH_REFRESHES * args.refresh_seconds
        self._query = query_for(args, self._fresh_seconds)
        self._is_up: bool | None = None
        """Whether the last query succeeded; None before the first."""
        self._refreshes = metrics.counter("networktraffic_refreshes_total", "Queries to Prometheus.", "result")
        self._up = metrics.gauge("networktraffic_prometheus_up", "Whether the last query succeeded.")
        self._known_nodes = metrics.gauge("networktraffic_nodes", "Nodes whose traffic counts; 0: all count alike.")
        self._logged: tuple[Traffic | None, set[str]] = (None, set())
        """The nodes whose traffic was logged, of which query result."""

    async def start(self) -> None:
        self._background.every(self._args.refresh_seconds, self._refresh)
        # A task of its own, because a refresh may be waiting for a response when the last values turn stale.
        self._background.every(min(1.0, self._args.refresh_seconds), self._forget_the_stale)

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        traffic = cycle.value(self._traffic)
        if traffic is None or not traffic.received:
            return 0
        self._log_traffic(traffic, node.name)
        return traffic.of(node.name)

    async def _refresh(self) -> None:
        try:
            received = received_bytes(await self._query_traffic(), self._args)
        except (Fault, OSError, ValueError) as error:
            self._query_failed(error)
            return
        self._traffic.publish(Traffic(received, int(statistics.median(received.values()))))
        self._refreshes.inc(result="success")
        self._up.set(1)
        self._known_nodes.set(len(received))
        if not self._is_up:
            self._is_up = True
            self._log.info("[NetworkTraffic] Prometheus responds", nodes=len(received), query=self._query)

    async def _query_traffic(self) -> HttpResponse:
        args, headers = self._args, {}
        if args.bearer_token_file is not None:
            token = await asyncio.to_thread(Path(args.bearer_token_file).read_text, encoding="utf-8")
            headers["Authorization"] = f"Bearer {token.strip()}"
        return await self._http.get(
            f"{args.prometheus_address.rstrip('/')}/api/v1/query",
            params={"query": self._query},
            headers=headers,
            timeout_seconds=min(max(args.refresh_seconds, 1.0), LONGEST_WAIT_SECONDS),
            ca_file=args.ca_file,
        )

    def _query_failed(self, error: Exception) -> None:
        """Logged once per outage, and each time at -v=4."""
        self._refreshes.inc(result="failure")
        self._up.set(0)
        log = self._log.v(4) if self._is_up is False else self._log
        self._is_up = False
        going_on = "the last values count" if self._has_values else "every node counts alike"
        log.warning(f"[NetworkTraffic] No traffic from Prometheus; {going_on}", err=error)

    async def _forget_the_stale(self) -> None:
        age = self._traffic.age
        if age is not None and age > self._fresh_seconds and self._has_values:
            self._traffic.publish(Traffic({}))
            self._known_nodes.set(0)
            self._log.warning("[NetworkTraffic] the last values are stale; every node counts alike", seconds=int(age))

    @property
    def _has_values(self) -> bool:
        return self._traffic.latest is not None and bool(self._traffic.latest.received)

    def _log_traffic(self, traffic: Traffic, node: str) -> None:
        """Log a node's traffic when a query result is first used for it."""
        if self._logged[0] is not traffic:
            self._logged = (traffic, set())
        if node not in self._logged[1]:
            self._logged[1].add(node)
            source = {} if node in traffic.received else {"source": "no fresh sample: the median"}
            self._log.info(f"[NetworkTraffic] node '{node}' bandwidth: {traffic.of(node)}", **source)


def query_for(args: NetworkTrafficArgs, fresh_seconds: float) -> str:
    """The sum over the time range, for the nodes whose last reading is fresh by Prometheus' own clock."""
    device = args.network_interface.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    series = f'node_network_receive_bytes_total{{{args.node_label}!="",device="{device}"}}'
    total = f"sum_over_time({series}[{args.time_range_in_minutes}m])"
    return f"{total} and (timestamp({series}) >= time() - {fresh_seconds:g})"


class _Series(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]
    """When, and how much."""


class _Vector(msgspec.Struct):
    result: list[_Series]


class _QueryResult(msgspec.Struct):
    """Prometheus' response to an instant query."""

    status: str
    data: _Vector | None = None
    error: str = ""


def received_bytes(response: HttpResponse, args: NetworkTrafficArgs) -> dict[str, int]:
    """The traffic of each node. Raises `Fault` when the response has none."""
    try:
        content = decode(response.body, _QueryResult)
    except msgspec.MsgspecError as error:
        if response.status != 200:
            raise Fault(f"{shown_url(args.prometheus_address)} responded {response.status}") from error
        form = "HTML" if response.body.lstrip()[:1] == b"<" else "something else"
        raise Fault(
            f"{shown_url(args.prometheus_address)} returned {form}, which is not a Prometheus query result"
        ) from error
    if response.status != 200 or content.status != "success" or content.data is None:
        raise Fault(f"{shown_url(args.prometheus_address)} responded {response.status} {content.error}".rstrip())
    received: dict[str, int] = {}
    for series in content.data.result:
        node, number = series.metric.get(args.node_label), float(series.value[1])
        if node and math.isfinite(number):
            # Two jobs may scrape one node: their readings are of the same bytes.
            received[node] = max(received.get(node, 0), int(number))
    if not received:
        label, interface = args.node_label, args.network_interface
        raise Fault(f'no fresh node_network_receive_bytes_total with the label "{label}" and device="{interface}"')
    too_long = max(0, max(received.values()).bit_length() - EXACT_BITS)
    return {node: number >> too_long for node, number in received.items()}


def _wrong_address(address: str) -> str | None:
    """What is wrong with it; None: nothing. A password is not repeated."""
    example = 'such as "http://prometheus.monitoring:9090"'
    try:
        parts = urlsplit(address)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return f'must be a URL, {example}, got "{shown_url(address)}"'
    if parts.scheme not in ("http", "https") or not has_host or re.search(r"\s", address):
        return f'must be a URL, {example}, got "{shown_url(address)}"'
    if parts.username is not None or parts.password is not None:
        return "must not hold a user or password; use bearerTokenFile"
    if parts.query or parts.fragment:
        return f'must end before the path of the API, {example}, got "{shown_url(address)}"'
    return None
