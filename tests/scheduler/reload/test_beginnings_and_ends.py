"""A new version on a scheduler that stands by, and one that comes while the scheduler ends."""

from __future__ import annotations

import asyncio

from tests.scheduler.churn import until
from tests.scheduler.conftest import a_configuration, a_live_scheduler, a_profile
from tests.scheduler.reload.changes import reloaded

from mooring.framework import Args, Cycle, NodeView, Plugin, Pod


class LivelyArgs(Args):
    number: int = 1


class Lively(Plugin):
    """Records when it lives, and holds a binding up for as long as the test wants."""

    alive: list[int] = []
    may_go_on = asyncio.Event()

    def __init__(self, args: LivelyArgs) -> None:
        self._number = args.number

    async def start(self) -> None:
        Lively.alive.append(self._number)

    async def stop(self) -> None:
        Lively.alive.remove(self._number)

    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        await Lively.may_go_on.wait()


def numbered(number: int) -> str:
    return a_profile("default-scheduler", plugins=["Lively"], args=f"[{{name: Lively, args: {{number: {number}}}}}]")


async def test_who_stands_by_follows_too_and_leads_with_the_newest_version(server):
    Lively.alive, Lively.may_go_on = [], asyncio.Event()
    Lively.may_go_on.set()
    leads = asyncio.Event()

    async def wait() -> None:
        await leads.wait()

    async with a_live_scheduler(server, a_configuration(numbered(1)), [Lively], may_schedule=wait) as live:
        await live.node("only")
        await live.pod("early")
        await reloaded(live, numbered(2), plugins=[Lively])
        await until(lambda: Lively.alive == [2], lambda: str(Lively.alive))
        assert not live.pods["early"].spec.node_name
        leads.set()
        assert await live.bound("early") == ["only"]
    assert Lively.alive == []


async def test_plugins_that_were_about_to_retire_are_stopped_with_the_scheduler(server):
    Lively.alive, Lively.may_go_on = [], asyncio.Event()
    async with a_live_scheduler(server, a_configuration(numbered(1)), [Lively]) as live:
        await live.node("only")
        await live.pod("mine")
        await until(lambda: bool(live.core.bindings._tasks), lambda: "no binding began")
        await reloaded(live, numbered(2), plugins=[Lively])
        await reloaded(live, numbered(3), plugins=[Lively])
        assert Lively.alive == [1, 2, 3]
        Lively.may_go_on.set()
    assert Lively.alive == []
