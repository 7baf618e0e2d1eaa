"""What happens between two awaits: the watch does not wait for a binding, and a binding does not wait for the loop."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.scheduler.churn import HurriedClock, until
from tests.scheduler.conftest import PATIENCE_SECONDS, Live, a_configuration, a_live_scheduler, a_profile

from mooring.framework import Action, Allow, Cycle, Hint, NodeView, Plugin, Pod, Refusal, Rejection, Wait
from mooring.objects import Node


class Stage(Plugin):
    """Stops pods labelled with the name of a point at that point, until the test lets them go on."""

    def __init__(self) -> None:
        Stage.reached, Stage.go = asyncio.Event(), asyncio.Event()
        Stage.calls = []

    reached: asyncio.Event
    go: asyncio.Event
    calls: list[str]

    async def _stop(self, point: str, pod: Pod) -> None:
        self.calls.append(f"{point} {pod.name}")
        if pod.labels.get("stop") == point:
            self.reached.set()
            await self.go.wait()

    def reserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        return Refusal("not here") if pod.labels.get("refuse") == "reserve" and cycle.attempt == 1 else None

    async def unreserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        await self._stop("unreserve", pod)

    def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> Allow | Wait:
        if pod.labels.get("stop") == "permit":
            self.reached.set()
            return Wait(600)
        return Allow()

    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        await self._stop("pre_bind", pod)
        self.calls.append(f"free {node.free('cpu')}")
        if pod.labels.get("cancel") == "pre_bind" and cycle.attempt == 1:
            raise asyncio.CancelledError
        return None


STAGED = a_configuration(a_profile("default-scheduler", plugins=["Stage"]))


async def stopped(live: Live, name: str = "web", **labels: str) -> Pod:
    """The pod, created and stopped at the point of its label."""
    await live.pod(name, cpu="1", **labels)
    await asyncio.wait_for(Stage.reached.wait(), PATIENCE_SECONDS)
    await live.until(lambda: name in live.pods)
    return live.pods[name]


async def at_rest(live: Live) -> None:
    scheduler, bindings = live.scheduler, live.core.bindings
    await until(
        lambda: not bindings._tasks and not list(scheduler.queue.in_flight()),
        lambda: f"still under way: {list(bindings._tasks)}",
    )


def cached(live: Live, uid: str) -> tuple[str, str | None]:
    """Where queue and state have the pod."""
    placed = live.scheduler.state.pod(uid)
    return live.scheduler.queue.where(uid), None if placed is None else placed.node


POINTS = [
    {"stop": "permit"},
    {"stop": "pre_bind"},
    {"stop": "unreserve", "refuse": "reserve"},
    {"stop": "unreserve", "cancel": "pre_bind"},
]
at_every_point = pytest.mark.parametrize("labels", POINTS, ids=[" after ".join(point.values()) for point in POINTS])


@at_every_point
async def test_a_pod_deleted_on_its_way_leaves_nothing_behind(server, labels):
    """4.5: a failed binding forgets the pod."""
    async with a_live_scheduler(server, STAGED, [Stage]) as live:
        await live.node("node-1", cpu="1")
        pod = await stopped(live, **labels)
        await live.client.delete(Pod.KIND, "web", "default", grace_seconds=0)
        # Its place is free before its binding has ended.
        await live.pod("next", cpu="1")
        assert await live.bound("next") == ["node-1"]
        Stage.go.set()
        await at_rest(live)
        assert cached(live, pod.uid) == ("absent", None)
        assert all(event["reason"] == "Scheduled" for event in await live.events("web"))


@at_every_point
async def test_a_pod_made_again_on_its_way_is_another_pod(server, labels):
    async with a_live_scheduler(server, STAGED, [Stage]) as live:
        await live.node("node-1", cpu="1")
        first = await stopped(live, **labels)
        await live.client.delete(Pod.KIND, "web", "default", grace_seconds=0)
        await live.pod("web", cpu="1")
        await live.until(lambda: "web" in live.pods and live.pods["web"].uid != first.uid)
        assert await live.bound("web") == ["node-1"]
        Stage.go.set()
        await at_rest(live)
        assert cached(live, first.uid) == ("absent", None)
        assert cached(live, live.pods["web"].uid) == ("absent", "node-1")
        assert live.condition("web").status == "True"


@at_every_point
async def test_a_pod_bound_by_another_scheduler_on_its_way_is_theirs(server, labels):
    """4.5: a failed binding forgets the pod."""
    async with a_live_scheduler(server, STAGED, [Stage]) as live:
        await live.node("node-1", cpu="1")
        pod = await stopped(live, **labels)
        await live.client.bind("default", "web", pod.uid, "other")
        await live.bound("web")
        Stage.go.set()
        # Without waiting for the time-out of its permission.
        await at_rest(live)
        assert "unreserve web" in Stage.calls
        assert cached(live, pod.uid) == ("absent", "other")
        await live.pod("next", cpu="1")
        assert await live.bound("next") == ["node-1"]
        assert live.condition("web").status == "True"


@at_every_point
async def test_a_pod_that_begins_to_go_on_its_way_is_not_bound(server, labels):
    async with a_live_scheduler(server, STAGED, [Stage]) as live:
        await live.node("node-1", cpu="1")
        pod = await stopped(live, **labels)
        hold: dict[str, Any] = {"metadata": {"finalizers": ["example.com/hold"]}}
        await live.client.patch(Pod.KIND, "web", "default", hold, form="merge")
        await live.client.delete(Pod.KIND, "web", "default")
        await live.until(lambda: live.pods["web"].is_terminating)
        Stage.go.set()
        await live.pod("next", cpu="1")
        assert await live.bound("next") == ["node-1"]
        await at_rest(live)
        assert not live.pods["web"].spec.node_name
        assert live.scheduler.state.pod(pod.uid) is None


@at_every_point
async def test_a_pod_updated_on_its_way_goes_on(server, labels):
    """4.1.2: deleted and assumed pods are skipped."""
    async with a_live_scheduler(server, STAGED, [Stage]) as live:
        await live.node("node-1", cpu="1")
        pod = await stopped(live, **labels)
        await live.client.patch(Pod.KIND, "web", "default", {"metadata": {"labels": {"stop": None}}}, form="merge")
        await until(
            lambda: "stop" not in live.scheduler.pods.latest(pod.uid).labels,  # type: ignore[union-attr]
            lambda: "the update did not come",
        )
        Stage.go.set()
        live.core.room.allow(pod.uid, Stage.name)
        await at_rest(live)
        live.scheduler.queue.activate([pod])
        assert await live.bound("web") == ["node-1"]


@at_every_point
async def test_a_node_that_goes_while_a_pod_is_on_its_way_harms_no_other_pod(server, labels):
    async with a_live_scheduler(server, STAGED, [Stage]) as live:
        await live.node("node-1", cpu="1")
        pod = await stopped(live, **labels)
        await live.client.delete(Node.KIND, "node-1")
        state = live.scheduler.state
        await until(lambda: state.node("node-1") is None, lambda: "the node did not go")
        Stage.go.set()
        live.core.room.allow(pod.uid, Stage.name)
        await at_rest(live)
        await live.node("node-2", cpu="1")
        await live.pod("next", cpu="1")
        await until(
            lambda: any(view.pods for view in state.nodes) and not live.core.bindings._tasks,
            lambda: "no pod came to the new node",
        )


async def test_a_slow_unreserve_holds_up_no_other_pod(server):
    async with a_live_scheduler(server, STAGED, [Stage]) as live:
        await live.node("node-1", cpu="4")
        await stopped(live, stop="unreserve", refuse="reserve")
        await live.pod("next")
        assert await live.bound("next") == ["node-1"]
        Stage.go.set()
        assert await live.refused("web") == "0/1 nodes are available: 1 not here."


async def test_something_cancelled_inside_a_plugin_is_the_plugins_fault(server):
    """Isolation: a bad plugin fails only its own pod."""
    async with a_live_scheduler(server, STAGED, [Stage], clock=HurriedClock()) as live:
        await live.node("node-1")
        await live.pod("web", cancel="pre_bind")
        assert await live.refused("web") == 'running PreBind plugin "Stage": CancelledError'
        assert await live.bound("web") == ["node-1"]


async def test_a_state_that_cannot_forget_does_not_cost_the_pod(server, capsys):
    async with a_live_scheduler(server, STAGED, [Stage], clock=HurriedClock()) as live:
        state = live.scheduler.state
        forget, failures = state.forget, [RuntimeError("lost my memory")]

        def forgetful(uid: str) -> Any:
            if failures:
                raise failures.pop()
            return forget(uid)

        state.forget = forgetful  # type: ignore[method-assign]
        await live.node("node-1")
        await live.pod("web", cancel="pre_bind")
        assert await live.bound("web") == ["node-1"]
        assert cached(live, live.pods["web"].uid) == ("absent", "node-1")
    assert "lost my memory" in capsys.readouterr().err


async def test_a_fault_of_ours_in_a_binding_costs_one_attempt(server, capsys):
    async with a_live_scheduler(server, STAGED, [Stage], clock=HurriedClock()) as live:
        reporter = live.scheduler.reporter
        settle, failures = reporter.settle, [RuntimeError("unsettled")]

        async def unsettled(pod: Pod) -> None:
            if failures:
                raise failures.pop()
            await settle(pod)

        reporter.settle = unsettled  # type: ignore[method-assign]
        await live.node("node-1")
        await live.pod("web")
        assert await live.bound("web") == ["node-1"]
        assert "unreserve web" in Stage.calls
    assert "unsettled" in capsys.readouterr().err


async def test_a_fault_of_ours_between_reserve_and_binding_undoes_what_was_reserved(server, capsys):
    async with a_live_scheduler(server, STAGED, [Stage], clock=HurriedClock()) as live:
        bindings = live.core.bindings
        start, failures = bindings.start, [RuntimeError("cannot begin")]

        def hesitant(placement: Any, waits: Any) -> None:
            if failures:
                raise failures.pop()
            start(placement, waits)

        bindings.start = hesitant  # type: ignore[method-assign]
        await live.node("node-1")
        await live.pod("web")
        assert await live.bound("web") == ["node-1"]
        assert Stage.calls[0] == "unreserve web"
    assert "cannot begin" in capsys.readouterr().err


async def test_a_pod_that_is_going_before_its_first_attempt_is_not_scheduled(server):
    """4.1.2: deleted and assumed pods are skipped."""
    async with a_live_scheduler(server, STAGED, [Stage], clock=HurriedClock()) as live:
        await live.pod("web")
        await live.refused("web")
        hold = {"metadata": {"finalizers": ["example.com/hold"]}}
        await live.client.patch(Pod.KIND, "web", "default", hold, form="merge")
        await live.client.delete(Pod.KIND, "web", "default")
        await live.until(lambda: live.pods["web"].is_terminating)
        await live.node("node-1")
        await live.pod("next")
        await live.bound("next")
        queue, uid = live.scheduler.queue, live.pods["web"].uid
        await until(lambda: queue.where(uid) == "absent", lambda: f"the pod is {queue.where(uid)}")
        assert not live.pods["web"].spec.node_name
        assert "skip schedule deleting pod: default/web" in [event["note"] for event in await live.events("web")]


async def test_the_end_waits_for_no_permission_and_gives_back_what_was_reserved(server, monkeypatch):
    monkeypatch.setattr("mooring.scheduler.shutdown.LAST_SECONDS", 10 * PATIENCE_SECONDS)
    async with asyncio.timeout(PATIENCE_SECONDS), a_live_scheduler(server, STAGED, [Stage]) as live:
        await live.node("node-1", cpu="1")
        await stopped(live, stop="permit")
    assert "unreserve web" in Stage.calls
    assert not live.pods["web"].spec.node_name


class Stubborn(Plugin):
    """Fails to start and to stop."""

    trace: list[str] = []

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return 1

    async def start(self) -> None:
        self.trace.append("start")
        raise RuntimeError("cannot start")

    async def stop(self) -> None:
        self.trace.append("stop")
        raise RuntimeError("cannot stop")


async def test_a_plugin_that_can_neither_start_nor_stop_is_logged_and_harms_no_pod(server, capsys):
    Stubborn.trace.clear()
    config = a_configuration(a_profile("default-scheduler", plugins=["Stubborn"]))
    async with a_live_scheduler(server, config, [Stubborn]) as live:
        await live.node("node-1")
        await live.pod("web")
        await live.bound("web")
    assert Stubborn.trace == ["start", "stop"]
    logged = capsys.readouterr().err
    assert "cannot start" in logged
    assert "cannot stop" in logged


class OnlyOne(Plugin):
    """Has one of something, which a pod holds from reserve to unreserve."""

    holder: Pod | None = None
    in_vain = asyncio.Event()
    go = asyncio.Event()

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        holder = self.holder
        if holder is None:
            return None
        if all(placed.uid != holder.uid for placed in node.pods):
            self.in_vain.set()  # the place is free, what was reserved is not
        return Rejection("it is taken")

    def reserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        OnlyOne.holder = pod

    def unreserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        OnlyOne.holder = None

    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        await self.go.wait()

    def events(self) -> list[Hint]:
        return [Hint(Pod, Action.DELETE)]


async def test_what_a_deleted_pod_had_reserved_wakes_others_once_it_is_given_back(server):
    """4.5. The pod's own end, which the watch showed before, came too early for them."""
    OnlyOne.holder, OnlyOne.in_vain, OnlyOne.go = None, asyncio.Event(), asyncio.Event()
    config = a_configuration(a_profile("default-scheduler", plugins=["OnlyOne"]))
    async with a_live_scheduler(server, config, [OnlyOne]) as live:
        await live.node("node-1")
        await live.pod("first")
        await live.until(lambda: "first" in live.pods and live.pods["first"].status.nominated_node_name == "node-1")
        await live.pod("second")
        await live.refused("second", containing="it is taken")
        await live.client.delete(Pod.KIND, "first", "default", grace_seconds=0)
        await asyncio.wait_for(OnlyOne.in_vain.wait(), PATIENCE_SECONDS)
        OnlyOne.go.set()
        assert await live.bound("second") == ["node-1"]
