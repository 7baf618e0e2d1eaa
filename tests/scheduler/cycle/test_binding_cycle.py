"""What can go wrong between a decision and a running pod, and what is left behind: nothing."""

import asyncio

import pytest
from tests.scheduler.conftest import PATIENCE_SECONDS, a_configuration, a_live_scheduler, a_profile

from mooring.base.clock import ManualClock
from mooring.framework import Allow, Bound, Cycle, NodeView, Plugin, Pod, Refusal, Skip, Wait, WaitingPods
from mooring.framework.services import Binder
from mooring.scheduler.cycle.reporting import Reporter


class OtherScheduler(Plugin):
    """Binds the pod elsewhere just before we do, as a second scheduler might."""

    def __init__(self, binder: Binder) -> None:
        self._binder = binder

    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        await self._binder.bind(pod, "other")


async def test_a_pod_that_another_scheduler_bound_first_is_theirs(server):
    """4.5: a failed binding forgets the pod."""
    config = a_configuration(a_profile("default-scheduler", plugins=["OtherScheduler"]))
    async with a_live_scheduler(server, config, [OtherScheduler]) as live:
        await live.node("ours", cpu="2")
        await live.pod("web", cpu="2")
        assert await live.bound("web") == ["other"]
        scheduler = live.scheduler
        await live.pod("second", cpu="2")
        await live.bound("second")
        assert scheduler.queue.where(live.pods["web"].uid) == "absent"
        placed = scheduler.state.pod(live.pods["web"].uid)
        assert placed is not None
        assert placed.node == "other"
        assert live.condition("web").status == "True"


class Reserves(Plugin):
    """Records its calls."""

    calls: list[str] = []

    def reserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        self.calls.append(f"{self.name} reserve")
        return None

    def unreserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        self.calls.append(f"{self.name} unreserve")


class Second(Reserves):
    pass


class Refuses(Reserves):
    def reserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        super().reserve(pod, node, cycle)
        return Refusal("no more of that")


class Third(Reserves):
    pass


async def test_when_one_plugin_cannot_reserve_all_of_them_undo_in_reverse_order(server):
    """4.3.14: a failed Reserve unreserves in reverse order."""
    Reserves.calls.clear()
    config = a_configuration(a_profile("default-scheduler", plugins=["Second", "Refuses", "Third"]))
    async with a_live_scheduler(server, config, [Second, Refuses, Third]) as live:
        await live.node("node-1")
        await live.pod("web")
        assert await live.refused("web") == "0/1 nodes are available: 1 no more of that."
        assert Reserves.calls[:5] == [
            "Second reserve",
            "Refuses reserve",
            "Third unreserve",
            "Refuses unreserve",
            "Second unreserve",
        ]
        await live.until(lambda: not live.scheduler.state.is_assumed(live.pods["web"].uid))


class Door(Plugin):
    """Holds pods labelled so until another comes."""

    is_requested = asyncio.Event()

    def __init__(self, waiting: WaitingPods) -> None:
        self.waiting = waiting

    def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> Allow | Wait:
        self.is_requested.set()
        for other in self.waiting:
            self.waiting.allow(other.pod.uid, self)
        return Wait(600) if pod.labels.get("door") == "closed" else Allow()


async def test_a_pod_that_waits_on_permit_holds_its_place_and_no_other_pod_waits_for_it(server):
    """4.1.4, 4.3.15: binding cycles run concurrently with scheduling; Permit allows, rejects or waits."""
    Door.is_requested = asyncio.Event()
    config = a_configuration(a_profile("default-scheduler", plugins=["Door"]))
    async with a_live_scheduler(server, config, [Door]) as live:
        await live.node("node-1", cpu="2")
        await live.pod("held", cpu="1", door="closed")
        await asyncio.wait_for(Door.is_requested.wait(), PATIENCE_SECONDS)
        await live.pod("big", cpu="2")
        assert (await live.refused("big")).startswith("0/1 nodes are available: 1 Insufficient cpu.")
        await live.pod("opener", cpu="1")
        assert await live.bound("opener", "held") == ["node-1", "node-1"]


async def test_a_pod_that_is_deleted_while_it_waits_on_permit_gives_its_place_back(server):
    """3.2: changed fields decide which events are raised."""
    Door.is_requested = asyncio.Event()
    config = a_configuration(a_profile("default-scheduler", plugins=["Door"]))
    async with a_live_scheduler(server, config, [Door]) as live:
        await live.node("node-1", cpu="1")
        await live.pod("held", cpu="1", door="closed")
        await asyncio.wait_for(Door.is_requested.wait(), PATIENCE_SECONDS)
        await live.client.delete(Pod.KIND, "held", "default")
        await live.pod("next", cpu="1")
        assert await live.bound("next") == ["node-1"]


class Elsewhere(Plugin):
    async def bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> Bound | Skip | Refusal:
        return Skip() if pod.labels.get("mine") != "true" else Refusal("the robot is out of order")


async def test_bind_plugins_are_tried_in_order_until_one_does_not_skip(server):
    """4.4.6, 4.5: an extender or the first Bind plugin binds; a failed binding forgets the pod."""
    config = a_configuration("""
- schedulerName: default-scheduler
  plugins:
    bind: {enabled: [{name: Elsewhere}, {name: DefaultBinder}], disabled: [{name: DefaultBinder}]}
""")
    async with a_live_scheduler(server, config, [Elsewhere], clock=ManualClock()) as live:
        await live.node("node-1")
        await live.pod("theirs")
        assert await live.bound("theirs") == ["node-1"]
        await live.pod("mine", mine="true")
        assert await live.refused("mine") == "the robot is out of order"
        assert live.condition("mine").reason == "Unschedulable"
        assert live.scheduler.queue.where("mine") == "backoff"


class SkipsBind(Plugin):
    async def bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> Bound | Skip | Refusal:
        return Skip()


async def test_a_pod_that_no_bind_plugin_takes_is_requeued_and_its_condition_names_why(server):
    """4.4.6: an extender or the first Bind plugin binds."""
    config = a_configuration("""
- schedulerName: default-scheduler
  plugins:
    bind: {enabled: [{name: SkipsBind}], disabled: [{name: DefaultBinder}]}
""")
    async with a_live_scheduler(server, config, [SkipsBind], clock=ManualClock()) as live:
        await live.node("node-1")
        await live.pod("web")
        assert await live.refused("web") == "no bind plugin took the pod: all of them skipped it"
        assert live.scheduler.queue.where("web") == "backoff"


class After(Plugin):
    reported: list[str] = []

    async def post_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        self.reported.append(f"{pod.name} on {node.name}")
        raise RuntimeError("too late to matter")


async def test_post_bind_is_called_and_cannot_harm(server, capsys):
    """4.4.7: a bound pod stays assumed until the watch shows it."""
    After.reported.clear()
    config = a_configuration(a_profile("default-scheduler", plugins=["After"]))
    async with a_live_scheduler(server, config, [After]) as live:
        await live.node("node-1")
        await live.pod("web")
        await live.bound("web")
    assert After.reported == ["web on node-1"]
    assert "too late to matter" in capsys.readouterr().err


class Chore(Plugin):
    """Has work before pods of one label are bound, and does it when it is let."""

    may_go = asyncio.Event()
    done: list[str] = []

    def needs_pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> bool:
        if (response := pod.labels.get("chore")) == "raises":
            raise RuntimeError("the list is lost")
        return response if response == "perhaps" else response == "true"  # type: ignore[return-value]

    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        self.done.append(pod.name)
        await self.may_go.wait()


async def test_a_pod_names_its_node_while_pre_bind_works_for_it_and_only_then(server, monkeypatch):
    """4.4.1, 4.4.2: PreBindPreFlight returns whether there is work; the node is nominated while the pod waits."""
    Chore.may_go, Chore.done = asyncio.Event(), []
    nominated, nominate = [], Reporter.nominate

    async def noted(reporter: Reporter, pod: Pod, node: str) -> None:
        nominated.append(pod.name)
        await nominate(reporter, pod, node)

    monkeypatch.setattr(Reporter, "nominate", noted)
    config = a_configuration(a_profile("default-scheduler", plugins=["Chore"]))
    async with a_live_scheduler(server, config, [Chore]) as live:
        await live.node("node-1")
        await live.pod("waits", chore="true")
        await live.until(lambda: "waits" in live.pods and live.pods["waits"].status.nominated_node_name == "node-1")
        await live.pod("goes")
        assert await live.bound("goes") == ["node-1"]
        assert not live.pods["waits"].spec.node_name
        Chore.may_go.set()
        assert await live.bound("waits") == ["node-1"]
        assert Chore.done == nominated == ["waits"]


async def test_a_pod_that_another_scheduler_binds_before_its_nomination_is_not_patched(server, monkeypatch):
    """4.4.2: the node is nominated while the pod waits."""
    Chore.may_go, Chore.done = asyncio.Event(), []
    is_reached, may_go_on, settle = asyncio.Event(), asyncio.Event(), Reporter.settle

    async def slowly(reporter: Reporter, pod: Pod) -> None:
        await settle(reporter, pod)
        is_reached.set()
        await may_go_on.wait()

    monkeypatch.setattr(Reporter, "settle", slowly)
    config = a_configuration(a_profile("default-scheduler", plugins=["Chore"]))
    async with a_live_scheduler(server, config, [Chore]) as live:
        await live.node("node-1")
        await live.pod("web", chore="true")
        await asyncio.wait_for(is_reached.wait(), PATIENCE_SECONDS)
        await live.until(lambda: "web" in live.pods)
        scheduler, uid = live.scheduler, live.pods["web"].uid
        await live.client.bind("default", "web", uid, "elsewhere")
        await live.until(lambda: not scheduler.state.is_assumed(uid) and bool(live.pods["web"].spec.node_name))
        may_go_on.set()
        Chore.may_go.set()
        await live.core.bindings.wait_for_current()
        assert uid not in scheduler.reporter._written
        assert not live.pods["web"].status.nominated_node_name


@pytest.mark.parametrize(
    ("chore", "problem"),
    [
        ("raises", "RuntimeError: the list is lost"),
        ("perhaps", "needs_pre_bind returned 'perhaps'; it must return True or False"),
    ],
)
async def test_a_plugin_whose_needs_pre_bind_raises_or_returns_no_bool_fails_the_attempt(server, chore, problem):
    """4.4.1: PreBindPreFlight returns whether there is work."""
    config = a_configuration(a_profile("default-scheduler", plugins=["Chore"]))
    async with a_live_scheduler(server, config, [Chore]) as live:
        await live.node("node-1")
        await live.pod("web", chore=chore)
        assert await live.refused("web") == f'running PreBindPreFlight "Chore": {problem}'
        await live.until(lambda: not live.scheduler.state.is_assumed(live.pods["web"].uid))
