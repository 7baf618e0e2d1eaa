"""What can go wrong between a decision and a running pod, and what is left behind: nothing."""

import asyncio

from tests.scheduler.conftest import PATIENCE_SECONDS, a_configuration, a_live_scheduler, a_profile

from mooring.framework import Allow, Bound, Cycle, NodeView, Plugin, Pod, Refusal, Skip, Wait, WaitingPods
from mooring.framework.services import Binder


class SomebodyElse(Plugin):
    """Binds the pod elsewhere just before we do, as a second scheduler might."""

    def __init__(self, binder: Binder) -> None:
        self._binder = binder

    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        await self._binder.bind(pod, "other")


async def test_a_pod_that_somebody_else_bound_first_is_theirs(server):
    config = a_configuration(a_profile("default-scheduler", plugins=["SomebodyElse"]))
    async with a_live_scheduler(server, config, [SomebodyElse]) as live:
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
        condition = live.pods["web"].condition("PodScheduled")
        assert condition is not None
        assert condition.status == "True"


class Reserves(Plugin):
    """Remembers who asked it what."""

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
        assert not live.scheduler.state.is_assumed(live.pods["web"].uid)


class Door(Plugin):
    """Holds pods labelled so until another comes."""

    is_asked = asyncio.Event()

    def __init__(self, waiting: WaitingPods) -> None:
        self.waiting = waiting

    def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> Allow | Wait:
        self.is_asked.set()
        for other in self.waiting:
            self.waiting.allow(other.pod.uid, self.name)
        return Wait(600) if pod.labels.get("door") == "closed" else Allow()


async def test_a_pod_that_waits_on_permit_holds_its_place_and_nobody_else_waits_for_it(server):
    Door.is_asked = asyncio.Event()
    config = a_configuration(a_profile("default-scheduler", plugins=["Door"]))
    async with a_live_scheduler(server, config, [Door]) as live:
        await live.node("node-1", cpu="2")
        await live.pod("held", cpu="1", door="closed")
        await asyncio.wait_for(Door.is_asked.wait(), PATIENCE_SECONDS)
        await live.pod("big", cpu="2")
        assert await live.refused("big") == "0/1 nodes are available: 1 Insufficient cpu."
        await live.pod("opener", cpu="1")
        assert await live.bound("opener", "held") == ["node-1", "node-1"]


async def test_a_pod_that_is_deleted_while_it_waits_on_permit_gives_its_place_back(server):
    Door.is_asked = asyncio.Event()
    config = a_configuration(a_profile("default-scheduler", plugins=["Door"]))
    async with a_live_scheduler(server, config, [Door]) as live:
        await live.node("node-1", cpu="1")
        await live.pod("held", cpu="1", door="closed")
        await asyncio.wait_for(Door.is_asked.wait(), PATIENCE_SECONDS)
        await live.client.delete(Pod.KIND, "held", "default")
        await live.pod("next", cpu="1")
        assert await live.bound("next") == ["node-1"]


class Elsewhere(Plugin):
    async def bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> Bound | Skip | Refusal:
        return Skip() if pod.labels.get("mine") != "true" else Refusal("the robot is out of order")


async def test_bind_plugins_are_tried_in_order_until_one_does_not_skip(server):
    config = a_configuration("""
- schedulerName: default-scheduler
  plugins:
    bind: {enabled: [{name: Elsewhere}, {name: DefaultBinder}], disabled: [{name: DefaultBinder}]}
""")
    async with a_live_scheduler(server, config, [Elsewhere]) as live:
        await live.node("node-1")
        await live.pod("theirs")
        assert await live.bound("theirs") == ["node-1"]
        await live.pod("mine", mine="true")
        assert await live.refused("mine") == 'running Bind plugin "Elsewhere": the robot is out of order'


class After(Plugin):
    told: list[str] = []

    async def post_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        self.told.append(f"{pod.name} on {node.name}")
        raise RuntimeError("too late to matter")


async def test_post_bind_is_told_and_cannot_harm(server, capsys):
    After.told.clear()
    config = a_configuration(a_profile("default-scheduler", plugins=["After"]))
    async with a_live_scheduler(server, config, [After]) as live:
        await live.node("node-1")
        await live.pod("web")
        await live.bound("web")
    assert After.told == ["web on node-1"]
    assert "too late to matter" in capsys.readouterr().err
