"""Elastic quotas, and several pods that preempt at the same moment: requests and watch events take time, in any order.

Each preemptor costs as many pods as it needs and no more, no quota is exceeded, and what was borrowed comes back.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import force_setattr

from mooring.base.clock import timestamp
from mooring.base.errors import ApiError
from mooring.framework import Pod
from mooring.objects import Kind
from mooring.objects.core import PodCondition
from mooring.objects.meta import ObjectMeta
from mooring.plugins.community.capacity_scheduling.quotas import ElasticQuota, ElasticQuotaSpec
from mooring.scheduler.watching.feeds import PodFeed
from mooring.scheduler.wiring import build_core
from mooring.simulator import Arrival, Cluster, SimulationResult, simulate, simulation
from mooring.simulator.simulated_client import SimulatedClient
from mooring.testing import a_pod
from mooring.testing.builders import a_node_object

EXAMPLES = 60
UNAVAILABLE = 503
END_SECONDS = 250.0
"""When a last pod arrives, without a quota. Until then, victims terminate; pods are not yet retried for their age."""


@dataclass
class Latencies:
    """Of one eviction, in seconds."""

    patch: float = 0.0
    """Until the patch of the victim's condition returns."""
    request: float = 0.0
    """From then until the API server has deleted the victim."""
    response: float = 0.0
    """From then until the response is here."""
    watch: float = 0.0
    """From the deletion until the watch shows that the victim terminates."""
    grace: float = 0.0
    """From then until the watch shows that it is gone."""
    fails: bool = False
    """Whether the API server rejects the request."""


@dataclass
class SlowServer:
    """An API server whose evictions take time, each as long as the next of these latencies."""

    latencies: Sequence[Latencies] = ()
    evicted: list[str] = field(default_factory=list)
    """The names of the pods that it deleted, in order."""
    on_terminating: Callable[[Pod], None] = lambda _pod: None

    def __post_init__(self) -> None:
        self.next = iter(self.latencies)
        self.begun: dict[str, Latencies] = {}
        """Of evictions whose deletion is not requested yet, by the name of the victim."""

    @contextlib.contextmanager
    def serves_simulations(self) -> Iterator[None]:
        server = self

        class Client(SimulatedClient):
            feed: PodFeed

            async def patch(self, kind: Kind, name: str, namespace: str | None, body: Any, **more: Any) -> Any:
                if kind == Pod.KIND and "conditions" in body.get("status", {}):
                    server.begun[name] = latency = next(server.next, Latencies())
                    await asyncio.sleep(latency.patch)
                return await super().patch(kind, name, namespace, body, **more)

            async def delete(self, kind: Kind, name: str, namespace: str | None = None, **more: Any) -> None:
                latency = server.begun.pop(name, Latencies())
                await asyncio.sleep(latency.request)
                if latency.fails:
                    raise ApiError(UNAVAILABLE, "ServiceUnavailable", "try again")
                pod = self._existing(namespace or "", name, more.get("uid"))
                if pod.metadata.deletion_timestamp is None:
                    self._terminate(pod, latency)
                await asyncio.sleep(latency.response)

            def _terminate(self, pod: Pod, latency: Latencies) -> None:
                server.evicted.append(pod.name)
                server.on_terminating(pod)
                metadata = msgspec.structs.replace(
                    pod.metadata, deletion_timestamp=timestamp(0), resource_version=self.next_version()
                )
                preempted = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
                status = msgspec.structs.replace(pod.status, conditions=(preempted,))
                terminating = Pod(metadata=metadata, spec=pod.spec, status=status)
                self.pods[pod.key] = terminating
                asyncio.get_running_loop().call_later(latency.watch, self._show, terminating, latency.grace)

            def _show(self, terminating: Pod, grace_seconds: float) -> None:
                self.feed.changed(terminating)
                asyncio.get_running_loop().call_later(grace_seconds, self._end, terminating)

            def _end(self, pod: Pod) -> None:
                if self.pods.pop(pod.key, None) is not None:
                    self.on_deleted(pod)

        def built(client: Client, *args: Any, **more: Any) -> Any:
            core = build_core(client, *args, **more)
            client.feed = core.pods
            return core

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(simulation, "SimulatedClient", Client)
            patch.setattr(simulation, "build_core", built)
            yield


ELASTIC = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "plugins": {
                "multiPoint": {"enabled": [{"name": "CapacityScheduling"}]},
                "postFilter": {"enabled": [{"name": "CapacityScheduling"}], "disabled": [{"name": "*"}]},
            },
        }
    ],
}


@dataclass
class Teams:
    """Quotas by namespace (min, max), pods that run, and what happens while others arrive."""

    quotas: dict[str, tuple[int, int]]
    node_cpus: list[int]
    running: list[Pod]
    arriving: list[Arrival]
    used: Counter[str] = field(default_factory=Counter)

    def __repr__(self) -> str:
        arriving = [f"{each.pod.key} at {each.at}: {cpus(each.pod)} cpu, {each.pod.priority}" for each in self.arriving]
        return f"{self.quotas}, nodes {self.node_cpus}, {len(self.running)} running, then {', '.join(arriving)}"

    def run(self, server: SlowServer) -> SimulationResult:
        server.on_terminating = self._terminates
        for pod in self.running:
            self.used[pod.namespace] += cpus(pod)
        objects = [
            ElasticQuota(
                metadata=ObjectMeta(name="quota", namespace=name),
                spec=ElasticQuotaSpec(min={"cpu": least}, max={"cpu": most}),
            )
            for name, (least, most) in self.quotas.items()
        ]
        nodes = [a_node_object(f"node-{at}", cpu=str(cpu)) for at, cpu in enumerate(self.node_cpus)]
        with server.serves_simulations():
            result = simulate(
                Cluster(nodes, pods=self.running, objects=objects),
                [*self.arriving, Arrival(END_SECONDS, a_pod("last", namespace="without-quota"))],
                ELASTIC,
                influence=False,
                attempt_timeout=0,
                on_bound=self._bound,
            )
        result.pods[:] = [pod for pod in result.pods if pod.name != "last"]
        return result

    def _bound(self, pod: Pod, _seconds: float) -> None:
        if pod.namespace in self.quotas:
            self.used[pod.namespace] += cpus(pod)

            total = sum(least for least, _ in self.quotas.values())
            assert sum(self.used.values()) <= total, f"{pod.key} exceeds what all are guaranteed"
            assert self.used[pod.namespace] <= self.quotas[pod.namespace][1], f"{pod.key} exceeds the max"

    def _terminates(self, pod: Pod) -> None:
        self.used[pod.namespace] -= cpus(pod)


def cpus(pod: Pod) -> int:
    return pod.requests.amounts["cpu"] // 1000


def pods_of(team: str, count: int, cpu: int = 2, **more: Any) -> list[Pod]:
    return [a_pod(f"{team}-{at}", uid=f"{team}-{at}", namespace=team, cpu=str(cpu), **more) for at in range(count)]


def on_nodes(pods: Sequence[Pod], nodes: int) -> list[Pod]:
    """One after the other, as a scheduler would spread them."""
    for at, pod in enumerate(pods):
        force_setattr(pod.spec, "node_name", f"node-{at % nodes}")
    return list(pods)


def two_teams(node_cpu: int = 8, moments: Sequence[float] = (0, 0)) -> Teams:
    """Team B borrows 4 CPUs of team A, of which two pods arrive."""
    arriving = [Arrival(at, pod) for at, pod in zip(moments, pods_of("a", len(moments)), strict=True)]
    return Teams({"a": (4, 8), "b": (4, 8)}, [node_cpu] * 2, on_nodes(pods_of("b", 4), 2), arriving)


ORDERS = {
    "the response comes before the watch event": Latencies(watch=0.5, grace=1),
    "the watch event comes before the response": Latencies(response=0.5, grace=1),
    "the request takes long": Latencies(request=0.5, grace=1),
    "the patch before it takes long": Latencies(patch=0.5, grace=1),
    "the victim takes long to terminate": Latencies(grace=30),
    "all of it happens at once": Latencies(),
}


@pytest.mark.parametrize("node_cpu", [8, 4], ids=["nodes with room", "full nodes"])
@pytest.mark.parametrize("moments", [(0, 0), (0, 0.25)], ids=["together", "one during the eviction for the other"])
@pytest.mark.parametrize("latency", ORDERS.values(), ids=ORDERS.keys())
def test_two_pods_that_take_back_what_is_borrowed_cost_two(latency, moments, node_cpu):
    teams, server = two_teams(node_cpu, moments), SlowServer([latency] * 8)
    result = teams.run(server)
    assert {pod.name for pod in result.pods if pod.bound_at is not None} == {"a-0", "a-1"}
    assert len(server.evicted) == 2, server.evicted
    assert teams.used == {"a": 4, "b": 4}


MOMENTS = st.sampled_from([0.0, 0.0, 0.1, 0.3, 1.0, 2.0])


@st.composite
def latencies(draw: st.DrawFn) -> list[Latencies]:
    delay = st.sampled_from([0.0, 0.0, 0.1, 0.2, 0.5, 1.5])
    return [
        Latencies(
            draw(delay), draw(delay), draw(delay), draw(delay), draw(st.sampled_from([0.0, 0.5, 30.0])), draw(failing)
        )
        for failing in [st.sampled_from([False] * 9 + [True])] * draw(st.integers(0, 8))
    ]


@st.composite
def borrowers(draw: st.DrawFn) -> Teams:
    """Team B uses all that A and B are guaranteed, in pods of one CPU. Pods of A arrive, and more of B and C."""
    least = {"a": draw(st.integers(1, 6)), "b": draw(st.integers(0, 4))}
    total = sum(least.values())
    are_nodes_full, count = draw(st.booleans()), draw(st.integers(1, 3))
    node_cpus = [-(-total // count)] * count if are_nodes_full else [total * 2] * count
    arriving: list[Arrival] = []
    left = least["a"]
    while left and len(arriving) < 6:
        cpu = 1 if are_nodes_full and count > 1 else draw(st.integers(1, left))  # else rooms are split between nodes
        name = f"a-{len(arriving)}"
        pod = a_pod(name, uid=name, namespace="a", cpu=str(cpu), priority=draw(st.sampled_from([0, 0, 10])))
        arriving.append(Arrival(draw(MOMENTS), pod))
        left -= cpu
    for at in range(draw(st.integers(0, 2))):
        pod = a_pod(f"late-{at}", uid=f"late-{at}", namespace=draw(st.sampled_from("bc")), cpu="1")
        arriving.append(Arrival(draw(MOMENTS), pod))
    quotas = {name: (each, total) for name, each in least.items()} | {"c": (0, total)}
    return Teams(quotas, node_cpus, on_nodes(pods_of("b", total, cpu=1), count), arriving)


@st.composite
def important(draw: st.DrawFn) -> Teams:
    """Team A uses all that it may, in pods of one CPU. Pods of higher priority arrive, and some of the same."""
    most, count = draw(st.integers(1, 8)), draw(st.integers(1, 3))
    running = on_nodes(pods_of("low", most, cpu=1), count)
    for pod in running:
        force_setattr(pod.metadata, "namespace", "a")
    arriving = [
        Arrival(draw(MOMENTS), a_pod(f"a-{at}", uid=f"a-{at}", namespace="a", cpu="1", priority=10))
        for at in range(draw(st.integers(1, most)))
    ]
    for at in range(draw(st.integers(0, 2))):
        arriving.append(Arrival(draw(MOMENTS), a_pod(f"late-{at}", uid=f"late-{at}", namespace="a", cpu="1")))
    quotas = {"a": (draw(st.integers(0, most)), most), "b": (most, most)}
    return Teams(quotas, [draw(st.sampled_from([-(-most // count), most * 2]))] * count, running, arriving)


def arrivals(*requests: tuple[str, str, int]) -> list[Arrival]:
    """At once: team, name and CPUs."""
    return [Arrival(0.0, a_pod(name, uid=name, namespace=team, cpu=str(cpu))) for team, name, cpu in requests]


ONE_LATE_EVENT = Teams(
    {"a": (6, 6), "b": (0, 6), "c": (0, 6)},
    [12],
    on_nodes(pods_of("b", 6, cpu=1), 1),
    arrivals(("a", "a-0", 1), ("a", "a-1", 2), ("a", "a-2", 3), ("b", "late-0", 1), ("b", "late-1", 1)),
)
"""The last pod of team A is tried when a victim of the second one is not shown yet."""


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.one_of(borrowers(), important()), latencies())
@example(ONE_LATE_EVENT, [Latencies(), Latencies(watch=0.1)])
def test_preemptors_cost_what_they_need_and_no_more(teams, latencies):
    server = SlowServer(latencies)
    result = teams.run(server)
    preemptors = [arrival.pod for arrival in teams.arriving if arrival.pod.name.startswith("a-")]
    needed = sum(map(cpus, preemptors))
    assert {pod.name for pod in result.pods if pod.bound_at is not None} == {pod.name for pod in preemptors}
    assert len(server.evicted) == needed, server.evicted
    assert sum(teams.used.values()) == len(teams.running), "what was borrowed has come back"
