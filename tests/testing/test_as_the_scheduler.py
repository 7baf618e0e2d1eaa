"""The cluster and the services in memory show a plugin what the running scheduler shows it: one script, run on both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.scheduler.conftest import Live, a_configuration, a_live_scheduler

from mooring.apiserver import EmbeddedApiServer
from mooring.base.clock import ManualClock
from mooring.base.errors import Fault
from mooring.framework import (
    Allow,
    Cycle,
    Hint,
    Metrics,
    NodeView,
    Plugin,
    Pod,
    Pods,
    PodsWhere,
    Published,
    Queue,
    Refusal,
    Wait,
    WaitingPods,
)
from mooring.scheduler.cycle.permit import PermitRoom
from mooring.scheduler.metrics import PluginMetrics
from mooring.testing import Cluster, Services, a_cluster, a_node, a_plugin, a_pod

ANY = PodsWhere()
seen: list[tuple[Any, ...]] = []
"""What the plugins below saw: of the run that is under way."""


class Witness(Plugin):
    """Records its calls and the state of the services; labels of a pod set what it returns."""

    def __init__(self, pods: Pods, waiting: WaitingPods, queue: Queue, published: Published[int]) -> None:
        self._pods, self._waiting, self._queue, self._published = pods, waiting, queue, published

    async def start(self) -> None:
        self._published.publish(7)

    def events(self) -> Iterable[Hint]:
        return []  # only what the script does tries a pod again

    def _note(self, point: str, pod: Pod, *more: Any) -> None:
        pending = sorted(each.name for each in self._pods.pending(ANY))
        placed = sorted(each.name for each in self._pods.placed(ANY))
        waiting = sorted((each.pod.name, *sorted(each.waiting_for)) for each in self._waiting)
        seen.append((point, pod.name, f"{pending=}", f"{placed=}", f"{waiting=}", *more))

    def pre_filter(self, pod: Pod, cycle: Cycle) -> Refusal | None:
        self._note("pre_filter", pod, cycle.attempt, cycle.value(self._published))
        if "pair" not in pod.labels:
            return None
        pair = PodsWhere.labelled({"pair": pod.labels["pair"]})
        there = len(self._pods.pending(pair)) + len(self._pods.placed(pair))
        return None if there == 2 else Refusal(f"{there} of 2 pods of the pair")

    def reserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        self._note("reserve", pod, node.name)
        return Refusal("nothing left to reserve") if "unreservable" in pod.labels else None

    def unreserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        self._note("unreserve", pod, node.name)

    def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> Allow | Wait | Refusal | None:
        self._note("permit", pod, node.name)
        if "denied" in pod.labels:
            return Refusal("not today")
        if "waits" in pod.labels:
            return Wait(600)
        if "rejects" in pod.labels:
            for waiting in self._waiting:
                assert self._waiting.reject(waiting.pod.uid, self.name, f"{pod.name} rejects it")
                assert not self._waiting.reject(waiting.pod.uid, self.name, "twice")
            self._note("permit, after it rejected", pod)
        if "pair" in pod.labels:
            pair = PodsWhere.labelled({"pair": pod.labels["pair"]})
            if len(self._pods.placed(pair)) < 2:
                self._queue.activate(self._pods.pending(pair))
                return Wait(600)
            for waiting in self._waiting:
                assert self._waiting.allow(waiting.pod.uid, self.name)
                assert not self._waiting.allow(waiting.pod.uid, self.name)
            self._note("permit, after it allowed", pod)
        return None


class Second(Plugin):
    """Requests outside data of the same type."""

    def __init__(self, published: Published[int]) -> None:
        self._published = published

    def pre_filter(self, pod: Pod, cycle: Cycle) -> None:
        seen.append(("published for another plugin", cycle.value(self._published)))


PLUGINS: list[type[Plugin]] = [Witness, Second]
CONFIG = a_configuration("""
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      enabled: [{name: PrioritySort}, {name: Witness}, {name: Second}, {name: DefaultBinder}]
      disabled: [{name: "*"}]
""")

SCRIPT: list[tuple[str, dict[str, str], str | None]] = [
    ("alone", {}, None),
    ("one", {"pair": "x"}, "0/1 nodes are available: 1 of 2 pods of the pair."),
    ("two", {"pair": "x"}, None),
    ("unreservable", {"unreservable": ""}, "0/1 nodes are available: 1 nothing left to reserve."),
    ("denied", {"denied": ""}, "0/1 nodes are available: 1 not today."),
    ("waiter", {"waits": ""}, None),
    ("rejecting", {"rejects": ""}, None),
    ("last", {}, None),
]
"""Pod by pod: name, labels, and why it is refused."""


async def in_memory() -> list[tuple[Any, ...]]:
    services = Services()
    plugins = [a_plugin(cls, services) for cls in PLUGINS]
    cluster: Cluster = a_cluster(a_node("node-1"), plugins=plugins, services=services)
    for plugin in plugins:
        if isinstance(plugin, Witness):
            await plugin.start()
    seen.clear()
    pods = {name: a_pod(name, labels=labels) for name, labels, _ in SCRIPT}
    for name, _, refusal in SCRIPT:
        decision = cluster.schedule(pods[name])
        assert decision.message == (refusal or ""), name
        assert (decision.node is None) == (refusal is not None)
        while services.queue.activated:
            assert cluster.schedule(pods[services.queue.activated.pop(0)]).node == "node-1"
    assert services.waiting_pods.allowed == ["two"]
    assert services.waiting_pods.rejected == [("waiter", "rejecting rejects it")]
    return list(seen)


async def in_the_scheduler(server: EmbeddedApiServer, expected: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """A step ends once `expected` is observed; until then any state may be."""
    async with a_live_scheduler(server, CONFIG, PLUGINS) as live:
        await live.node("node-1")
        seen.clear()
        for name, labels, refusal in SCRIPT:
            await live.pod(name, **labels)
            if refusal is not None:
                assert await live.refused(name, containing=refusal) == refusal
            elif name == "two":
                await live.bound("one", "two")
            elif name == "waiter":
                await live.until(lambda: seen[-1][:2] == ("permit", "waiter"))
            else:
                await live.bound(name)
            if name == "rejecting":
                await live.refused("waiter", containing="rejecting rejects it")
        await settled(live, len(expected))
        return list(seen)


async def settled(live: Live, count: int) -> None:
    await live.until(lambda: len(seen) >= count)


async def test_plugins_see_the_same(server):
    expected = await in_memory()
    assert await in_the_scheduler(server, expected) == expected


def test_the_pod_that_is_being_decided_is_pending_and_deciding_alone_changes_nothing():
    services = Services()
    cluster = a_cluster(a_node(), plugins=[a_plugin(Witness, services)], services=services)
    for pair, message in (({}, "1 of 2 pods"), ({"x": "y"}, "1 of 2 pods")):
        decision = cluster.decide(a_pod("one", labels={"pair": "x", **pair}))
        assert message in decision.message
        assert services.pods.pending(ANY) == []


def test_a_refused_pod_is_at_its_next_attempt_when_it_is_scheduled_again():
    services = Services()
    cluster = a_cluster(a_node(), plugins=[a_plugin(Witness, services)], services=services)
    pod = a_pod("one", labels={"pair": "x"})
    seen.clear()
    for _ in range(2):
        cluster.schedule(pod)
    assert [noted[5] for noted in seen] == [1, 2]


# Pods that wait


@asynccontextmanager
async def the_room() -> AsyncIterator[tuple[Any, Callable[[Pod, dict[str, float]], None]]]:
    room = PermitRoom(ManualClock())
    yield room, lambda pod, waits: room.enter(pod, "node", waits)


@asynccontextmanager
async def the_room_in_memory() -> AsyncIterator[tuple[Any, Callable[[Pod, dict[str, float]], None]]]:
    room = Services().waiting_pods

    def enter(pod: Pod, waits: dict[str, float]) -> None:
        for plugin, seconds in waits.items():
            room.put(pod, "node", plugin, seconds)

    yield room, enter


STEPS: dict[str, list[tuple[str, str, bool, list[list[str]]]]] = {
    "all have to allow": [("allow", "A", True, [["B"]]), ("allow", "B", True, [])],
    "one may allow twice": [("allow", "A", True, [["B"]]), ("allow", "A", True, [["B"]])],
    "one that was allowed waits no longer": [
        ("allow", "A", True, [["B"]]),
        ("allow", "B", True, []),
        ("allow", "B", False, []),
        ("reject", "B", False, []),
    ],
    "one rejection ends it": [
        ("reject", "A", True, []),
        ("reject", "B", False, []),
        ("allow", "B", False, []),
    ],
}


@pytest.mark.parametrize("room", [the_room, the_room_in_memory], ids=["scheduler", "memory"])
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS.keys())
async def test_pods_that_wait_on_permit(room, steps):
    async with room() as (waiting, enter):
        enter(a_pod(uid="1"), {"A": 5.0, "B": 10.0})
        for verb, plugin, returned, left in steps:
            arguments = ["no"] if verb == "reject" else []
            assert getattr(waiting, verb)("1", plugin, *arguments) is returned
            assert [sorted(each.waiting_for) for each in waiting] == left


class Another(Plugin):
    """It lets no pod wait."""


@pytest.mark.parametrize("room", [the_room, the_room_in_memory], ids=["scheduler", "memory"])
async def test_a_plugin_that_does_not_hold_the_pod_cannot_allow_it(room):
    async with room() as (waiting, enter):
        enter(a_pod("web", uid="1"), {"A": 5.0, "B": 10.0})
        assert waiting.allow("1", Another()) is True  # it may go through all pods that wait
        with pytest.raises(
            Fault, match='pod default/web does not wait for a plugin "C"; it waits for A, B: pass `self`'
        ):
            waiting.allow("1", "C")
        assert [sorted(each.waiting_for) for each in waiting] == [["A", "B"]]


def test_a_pod_that_waits_too_long_loses_its_place():
    services = Services()
    cluster = a_cluster(a_node(), plugins=[a_plugin(Witness, services)], services=services)
    cluster.schedule(a_pod("waiter", labels={"waits": ""}))
    services.clock.advance(599)
    services.waiting_pods.expire()
    assert [each.pod.name for each in services.waiting_pods] == ["waiter"]
    assert [pod.name for pod in services.pods.placed(ANY)] == ["waiter"]
    services.clock.advance(1)
    services.waiting_pods.expire()
    late = "rejected due to timeout after waiting 10m0s at plugin Witness"
    assert services.waiting_pods.rejected == [("waiter", late)]
    assert services.pods.placed(ANY) == []
    assert [pod.name for pod in services.pods.pending(ANY)] == ["waiter"]


# Metrics

METRICS: dict[str, tuple[Callable[[Metrics], Any], type[Exception] | None]] = {
    "a counter": (lambda made: made.counter("a_total", "", "x").inc(2, x="1"), None),
    "a counter that goes back": (lambda made: made.counter("a_total", "").inc(-1), ValueError),
    "a wrong label": (lambda made: made.counter("a_total", "", "x").inc(y="1"), ValueError),
    "a name that is none": (lambda made: made.gauge("a-b", ""), Fault),
    "one name twice, alike": (lambda made: [made.gauge("a", "", "x") for _ in range(2)], None),
    "one name twice, with other labels": (lambda made: [made.gauge("a", "", *x) for x in ("x", "y")], Fault),
    "one name twice, as another type": (lambda made: [made.gauge("a", ""), made.histogram("a", "")], Fault),
    "a gauge that counts": (lambda made: made.gauge("a", "").inc(), AttributeError),  # type: ignore[attr-defined]
    "a counter that is set": (lambda made: made.counter("a", "").set(1), AttributeError),  # type: ignore[attr-defined]
}


@pytest.mark.parametrize("make", [lambda: PluginMetrics(CollectorRegistry()), lambda: Services().metrics])
@pytest.mark.parametrize(("use", "error"), METRICS.values(), ids=METRICS.keys())
def test_metrics_refuse_the_same(make, use, error):
    if error is None:
        use(make())
        return
    with pytest.raises(error):
        use(make())
