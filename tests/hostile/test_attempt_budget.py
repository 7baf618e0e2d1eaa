"""One pod cannot hold up the others: its attempt has a time budget, and its namespace pays for what it exceeded."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.scheduler.conftest import a_configuration, a_live_scheduler, a_profile, among_themselves
from tests.scheduler.world import World

from mooring.apiserver import EmbeddedApiServer
from mooring.base.clock import ManualClock
from mooring.client import ApiClient, Connection
from mooring.framework import Plugin, Pod
from mooring.objects.core import Namespace, Node
from mooring.plugins.catalogue import catalogue
from mooring.scheduler.cycle.overruns import LONG_SECONDS, LOST_SHARE, RECENT_SECONDS, Overruns, Penalties
from mooring.scheduler.introspection.decision_log import DecisionLog
from mooring.testing import a_pod

__all__ = ["among_themselves"]

LIMIT_SECONDS = 60
BUDGET_SECONDS = 0.2
SPEC = {"containers": [{"name": "main", "image": "pause"}]}


class Slow(Plugin):
    """Evaluates pods with many tolerations for ever."""

    pod_fields = ("spec.tolerations",)

    def pre_filter(self, pod: Pod, cycle: Any) -> None:
        end = time.process_time() + LIMIT_SECONDS
        while len(pod.spec.tolerations) > 10 and time.process_time() < end:
            pass


async def a_hostile_pod(client: ApiClient, name: str, namespace: str = "default") -> None:
    tolerations = [{"key": f"key-{number}", "operator": "Exists"} for number in range(300)]
    await client.create(Pod.KIND, {"metadata": {"name": name}, "spec": SPEC | {"tolerations": tolerations}}, namespace)


async def test_a_pod_that_exceeds_its_budget_is_set_aside_and_others_are_bound(server, capsys):
    config = a_configuration(a_profile("default-scheduler", plugins=["Slow"]))
    async with a_live_scheduler(server, config, [Slow], attempt_timeout_seconds=BUDGET_SECONDS) as live:
        await live.node("node-1")
        await live.client.create(Namespace.KIND, {"metadata": {"name": "tenant"}})
        await a_hostile_pod(live.client, "hostile", "tenant")
        message = await live.refused("hostile")
        assert message == (
            'running PreFilter plugin "Slow": exceeded the time budget of 200ms for one attempt, evaluating '
            "spec.tolerations (302 entries); the pod is set aside"
        )
        assert live.condition("hostile").reason == "SchedulerError"

        await live.pod("ours")
        await live.bound("ours")
        # What would requeue a pod that Slow refused, which named no events: any change of a node.
        await live.node("node-2")
        await live.pod("ours-too")
        await live.bound("ours-too")
        assert live.scheduler.queue.where("tenant/hostile") == "unschedulable"
        logged = capsys.readouterr().err
        assert "Scheduling attempt exceeded its time budget; pod is set aside" in logged
        assert f"{__file__}:" in logged


async def test_a_pod_beside_one_that_took_long_in_its_namespace_waits_and_others_do_not(server):
    config = a_configuration(a_profile("default-scheduler", plugins=["Slow"]))
    async with a_live_scheduler(server, config, [Slow], attempt_timeout_seconds=1.5 * LONG_SECONDS) as live:
        await live.node("node-1")
        await live.client.create(Namespace.KIND, {"metadata": {"name": "tenant"}})
        await live.pod("ours")
        await live.bound("ours")
        await a_hostile_pod(live.client, "hostile", "tenant")
        await live.refused("hostile")

        spec = {"containers": [{"name": "main", "image": "pause"}]}
        await live.client.create(Pod.KIND, {"metadata": {"name": "beside"}, "spec": spec}, "tenant")
        assert await live.refused("beside") == (
            "pods of namespace tenant wait because attempts for some of them take too long"
        )
        await live.pod("ours-too")
        await live.bound("ours-too")


def overruns(world: World) -> Overruns:
    clock = world.server.clock
    return Overruns(Penalties(clock), world.queue, world.failures, DecisionLog(clock))


CHARGED = {
    "an attempt of a moment is free": ({"shop": 0.001}, 0.5, False),
    "a long one beside short ones of others is charged": ({"shop": 0.001}, 3.0, True),
    "a long one where those of others are long too is free": ({"shop": 2.0, "bank": 3.0}, 5.0, False),
    "one short one of others is enough": ({"shop": 2.0, "bank": 0.001}, 5.0, True),
    "a long one without pods of other namespaces is free": ({}, 5.0, False),
    "its own earlier attempts do not count": ({"tenant": 0.001}, 5.0, False),
}


@pytest.mark.parametrize(("before", "seconds", "is_charged"), CHARGED.values(), ids=CHARGED.keys())
def test_whether_a_namespace_pays(before, seconds, is_charged):
    held = overruns(World())
    for namespace, spent in before.items():
        held.attempted(namespace, spent)
    held.attempted("tenant", seconds)
    assert (held.penalties.left("tenant") > 0) is is_charged


def test_a_namespace_does_not_pay_for_the_objects_of_others():
    held = overruns(World())
    held.attempted("shop", 0.001)
    held.attempted("tenant", 3.0, others_seconds=2.5)
    assert not held.penalties.left("tenant")
    held.attempted("tenant", 5.0, others_seconds=2.5)
    assert held.penalties.left("tenant") == 2.5 * LOST_SHARE


def test_attempts_of_long_ago_are_not_compared_with():
    world = World()
    held = overruns(world)
    held.attempted("shop", 0.001)
    world.server.clock.advance(seconds=RECENT_SECONDS)
    held.attempted("tenant", 5.0)
    assert not held.penalties.left("tenant")


Attempt = tuple[str, float]

# What was attempted before, in seconds by namespace; the namespaces and priorities of the waiting pods; how long an
# attempt for a pod of `tenant` takes, where those of others take a millisecond; and the order in which they are tried.
TURNS: dict[str, tuple[list[Attempt], list[tuple[str, int]], float, list[str]]] = {
    "after a long attempt it is the turn of a namespace that had none yet": (
        [],
        [("tenant", 0)] * 4 + [("shop", 0)] * 2,
        0.9,
        ["tenant", "shop", "shop", "tenant", "tenant", "tenant"],
    ),
    "and of one whose attempts are short": (
        [("shop", 0.01)],
        [("tenant", 0)] * 3 + [("shop", 0)],
        0.9,
        ["tenant", "shop", "tenant", "tenant"],
    ),
    "the order stays where the attempts of the others are as long": (
        [("shop", 0.5)],
        [("tenant", 0)] * 3 + [("shop", 0)],
        0.9,
        ["tenant", "tenant", "tenant", "shop"],
    ),
    "the order stays after attempts of a moment": (
        [],
        [("tenant", 0)] * 3 + [("shop", 0)],
        0.05,
        ["tenant", "tenant", "tenant", "shop"],
    ),
    "a higher priority goes first all the same": (
        [],
        [("tenant", 10)] * 2 + [("tenant", 0)] * 2 + [("shop", 0)],
        0.9,
        ["tenant", "tenant", "shop", "tenant", "tenant"],
    ),
    "two namespaces with long attempts have one each": (
        [("tenant", 0.9), ("tenant-2", 0.9)],
        [("tenant", 0), ("tenant-2", 0)] * 3 + [("shop", 0)],
        0.9,
        ["tenant", "shop", "tenant-2", "tenant", "tenant-2", "tenant", "tenant-2"],
    ),
}


@pytest.mark.parametrize(("before", "waiting", "seconds", "order"), TURNS.values(), ids=TURNS.keys())
def test_whose_turn_it_is(before, waiting, seconds, order):
    world = World(sort_key=lambda queued: (-queued.priority, queued.timestamp))
    held = overruns(world)
    for namespace, spent in before:
        held.attempted(namespace, spent)
    for number, (namespace, priority) in enumerate(waiting):
        world.queue.add(a_pod(f"pod-{number}", namespace=namespace, priority=priority))
        world.server.clock.advance(seconds=0.001)
    tried = []
    while (popped := held.pop()) is not None:
        tried.append(popped.pod.namespace)
        held.attempted(popped.pod.namespace, seconds if "tenant" in popped.pod.namespace else 0.001)
        world.queue.done(popped.pod.uid)
    assert tried == order


def test_a_turn_lasts_as_long_as_the_attempt_before_it():
    world = World()
    held = overruns(world)
    for number in range(20):
        world.queue.add(a_pod(f"pod-{number}", namespace="tenant" if number < 10 else "shop"))
        world.server.clock.advance(seconds=0.001)
    tried = []
    for _ in range(10):
        popped = held.pop()
        assert popped is not None
        tried.append(popped.pod.namespace)
        held.attempted(popped.pod.namespace, 0.5 if popped.pod.namespace == "tenant" else 0.0625)
        world.queue.done(popped.pod.uid)
    assert tried == ["tenant", *["shop"] * 8, "tenant"]


class SlowToo(Slow):
    """The same, and the pods that it was called for."""

    called_for: ClassVar[list[str]] = []

    def pre_filter(self, pod: Pod, cycle: Any) -> None:
        self.called_for.append(pod.name)
        super().pre_filter(pod, cycle)


async def a_queue_of_hostile_pods(server: EmbeddedApiServer, number: int) -> None:
    connection = Connection(server=server.url, source="the test", ca_data=server.ca_pem.encode(), token=server.token)
    async with ApiClient(connection) as client:
        resources = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        await client.create(Node.KIND, {"metadata": {"name": "node-1"}, "status": {"allocatable": resources}})
        await client.create(Namespace.KIND, {"metadata": {"name": "tenant"}})
        for each in range(number):
            await a_hostile_pod(client, f"hostile-{each}", "tenant")
        await client.create(Pod.KIND, {"metadata": {"name": "first"}, "spec": SPEC}, "default")


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_pod_does_not_wait_behind_a_queue_of_long_attempts(server, at_once):
    """There when the scheduler starts, or created later; attempts for the tenant take as long as they may."""
    await a_queue_of_hostile_pods(server, 30)
    config = a_configuration(a_profile("default-scheduler", plugins=["SlowToo"]))
    SlowToo.called_for.clear()
    async with a_live_scheduler(server, config, [SlowToo], attempt_timeout_seconds=BUDGET_SECONDS) as live:
        await live.bound("first")
        assert SlowToo.called_for.index("first") <= 1
        if not at_once:
            await live.pod("second")
            await live.bound("second")
        assert live.scheduler.queue.counts()["active"] > 0


def after_a_long_attempt(world: World) -> Overruns:
    """5 s for a pod of `tenant`, beside a short attempt of another namespace."""
    held = overruns(world)
    held.attempted("shop", 0.001)
    held.attempted("tenant", 5.0)
    return held


async def test_the_other_pods_of_the_namespace_wait_until_the_lost_time_is_a_tenth():
    world = World()
    held = after_a_long_attempt(world)
    assert held.holds(world.popped(a_pod("another", namespace="tenant")))
    assert not held.holds(world.popped(a_pod("ours", namespace="shop")))

    world.server.clock.advance(seconds=5.0 * LOST_SHARE - 1)
    assert world.queue.pop() is None
    world.server.clock.advance(seconds=1.1)
    another = world.queue.pop()
    assert another is not None
    assert another.pod.name == "another"
    assert not held.holds(another)


@example([number % 31 for number in range(2000)])  # as often as they may
@given(st.lists(st.integers(0, 30), min_size=1, max_size=2000))
def test_all_namespaces_together_lose_a_tenth_beside_the_first_attempt_of_each(attempts):
    """Each second one namespace tries again, in whatever order."""
    clock = ManualClock()
    penalties = Penalties(clock)
    lost = 0.0
    for number in attempts:
        if not penalties.left(f"tenant-{number}"):
            penalties.add(f"tenant-{number}", 5.0)
            lost += 5.0
        clock.advance(seconds=1)
    assert lost <= 5.0 * len(set(attempts)) + len(attempts) / LOST_SHARE


async def test_a_held_pod_is_reported_once():
    world = World()
    held = after_a_long_attempt(world)
    pod = a_pod("another", namespace="tenant")
    assert held.holds(world.popped(pod))
    await world.settle()
    patched = len(world.server.bodies)
    assert patched == 1

    world.queue.activate([pod])
    again = world.queue.pop()
    assert again is not None
    assert held.holds(again)
    await world.settle()
    assert len(world.server.bodies) == patched


async def test_a_reload_ends_the_penalties(server):
    async with a_live_scheduler(server) as live:
        penalties = live.scheduler.overruns.penalties
        penalties.add("default", 1000.0)
        await live.scheduler.adopt(live.scheduler.configuration, catalogue())
        assert not penalties.left("default")
