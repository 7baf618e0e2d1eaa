"""The work before a binding: in order, side by side where plugins allow it, undone when one of them fails."""

import asyncio

import pytest
from tests.scheduler.conftest import PATIENCE_SECONDS, Live, a_configuration, a_live_scheduler, a_profile

from mooring.base.clock import ManualClock
from mooring.framework import Cycle, NodeView, Plugin, Pod, Refusal, Skip
from mooring.scheduler.plugin_runtime.plugin_timeouts import parallel_groups


class Together(Plugin):
    """Does its work when all of its kind have begun theirs."""

    pre_bind_in_parallel = True
    logged: list[str] = []
    all_there = asyncio.Event()

    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        self.logged.append(self.name)
        if len(self.logged) == 2:
            self.all_there.set()
        await self.all_there.wait()
        return None


class Also(Together):
    pass


async def test_neighbours_that_allow_it_are_at_work_at_the_same_time(server):
    """4.4.5: PreBind plugins run in order or in parallel."""
    Together.logged, Together.all_there = [], asyncio.Event()
    config = a_configuration(a_profile("default-scheduler", plugins=["Together", "Also"]))
    async with a_live_scheduler(server, config, [Together, Also]) as live:
        await live.node("node-1")
        await live.pod("web")
        assert await live.bound("web") == ["node-1"]
    assert Together.logged == ["Together", "Also"]


class Alone(Plugin):
    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        return None


TOGETHER, ALSO, THIRD, ALONE, OTHER = Together(), Also(), Together(), Alone(), Alone()

GROUPS = {
    "none": ([], [], []),
    "one": ([ALONE], [ALONE], [[ALONE]]),
    "each alone": ([ALONE, OTHER], [ALONE, OTHER], [[ALONE], [OTHER]]),
    "two together": ([TOGETHER, ALSO], [TOGETHER, ALSO], [[TOGETHER, ALSO]]),
    "one alone between two that need not be": (
        [TOGETHER, ALONE, ALSO],
        [TOGETHER, ALONE, ALSO],
        [[TOGETHER], [ALONE], [ALSO]],
    ),
    "one alone that has nothing to do still separates": (
        [TOGETHER, ALONE, ALSO],
        [TOGETHER, ALSO],
        [[TOGETHER], [ALSO]],
    ),
    "one of three that has nothing to do separates none": (
        [TOGETHER, ALSO, THIRD],
        [TOGETHER, THIRD],
        [[TOGETHER, THIRD]],
    ),
    "before and after": (
        [ALONE, TOGETHER, ALSO, OTHER],
        [ALONE, TOGETHER, ALSO, OTHER],
        [[ALONE], [TOGETHER, ALSO], [OTHER]],
    ),
}


@pytest.mark.parametrize(("plugins", "needed", "groups"), GROUPS.values(), ids=GROUPS.keys())
def test_which_plugins_run_at_the_same_time(plugins, needed, groups):
    """4.4.5: PreBind plugins run in order or in parallel."""
    assert parallel_groups(plugins, needed) == groups


class Reported(Plugin):
    """Writes down what happens to it."""

    logged: list[str] = []
    pre_bind_in_parallel = True

    def unreserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        self.logged.append(f"{self.name} undoes")


class WorksOn(Reported):
    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # tidying up may wait as well
            self.logged.append(f"{self.name} ends")
        return None


class Fails(Reported):
    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        raise RuntimeError("the disk is gone")


class Refuses(Reported):
    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        return Refusal("no disk today", "nor tomorrow")


class Numbers(Reported):
    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        return Refusal(7)  # type: ignore[arg-type]


class Invalid(Reported):
    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        return "done"  # type: ignore[return-value]


ENDS = {
    "an error": (Fails, "SchedulerError", 'running PreBind plugin "Fails": RuntimeError: the disk is gone'),
    "a refusal": (Refuses, "Unschedulable", "no disk today, nor tomorrow"),
    "a refusal without words": (
        Numbers,
        "SchedulerError",
        'running PreBind plugin "Numbers": a reason is 7 (int); it must be text',
    ),
    "invalid": (
        Invalid,
        "SchedulerError",
        "running PreBind plugin \"Invalid\": pre_bind returned 'done'; it must return a Refusal or None",
    ),
}


@pytest.mark.parametrize(("failing", "reason", "message"), ENDS.values(), ids=ENDS.keys())
async def test_the_first_failure_ends_the_others_and_then_all_is_undone(server, capsys, failing, reason, message):
    """4.4.5, 4.5, Q26: without plugins that refused, so events cannot wake it, and the error backoff holds."""
    Reported.logged = []
    config = a_configuration(a_profile("default-scheduler", plugins=["WorksOn", failing.name]))
    async with a_live_scheduler(server, config, [WorksOn, failing], clock=ManualClock()) as live:
        await live.node("node-1")
        await live.pod("web")
        assert await live.refused("web") == message
        assert Reported.logged[:3] == ["WorksOn ends", f"{failing.name} undoes", "WorksOn undoes"]
        assert logged_of(live, "web") == reason
        uid = live.pods["web"].uid
        waiting = live.scheduler.queue.find(uid)
        assert waiting is not None
        assert (waiting.rejectors, waiting.consecutive_errors) == (set(), 1)
        assert live.scheduler.queue.where(uid) == "backoff"
        assert not live.scheduler.state.is_assumed(uid)
        [event, *_] = await live.events("web")
        assert (event["reason"], event["note"]) == ("FailedScheduling", message)
    assert failing.name in capsys.readouterr().err


def logged_of(live: Live, name: str) -> str:
    condition = live.pods[name].condition("PodScheduled")
    return "" if condition is None else condition.reason


class Overtaken(Plugin):
    """Ends its work in the very moment in which its pod is preempted."""

    live: Live

    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        if cycle.attempt == 1:
            loop, bindings = asyncio.get_running_loop(), self.live.core.bindings
            loop.call_soon(bindings.preempt, pod.uid)
        return None


async def test_a_pod_whose_place_was_promised_when_its_work_had_just_ended_is_not_bound_there(server):
    """4.4.5, 4.7.b: preemptors count the place as free."""
    config = a_configuration(a_profile("default-scheduler", plugins=["Overtaken"]))
    async with a_live_scheduler(server, config, [Overtaken]) as live:
        Overtaken.live = live
        await live.node("node-1")
        await live.pod("web")
        assert "preempted by a pod of higher priority" in await live.refused("web")


class WorksToo(WorksOn):
    """Its neighbour has begun before it."""

    is_at_work = asyncio.Event()

    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        self.is_at_work.set()
        return await super().pre_bind(pod, node, cycle)


async def test_a_pod_that_is_preempted_ends_the_work_of_all_who_work_for_it(server):
    """4.4.5, 4.7.b: PreBind plugins run in order or in parallel; victims are evicted concurrently."""
    Reported.logged, WorksToo.is_at_work = [], asyncio.Event()
    config = a_configuration(a_profile("default-scheduler", plugins=["WorksOn", "WorksToo"]))
    async with a_live_scheduler(server, config, [WorksOn, WorksToo]) as live:
        await live.node("node-1")
        await live.pod("web")
        await asyncio.wait_for(WorksToo.is_at_work.wait(), PATIENCE_SECONDS)
        await live.until(lambda: "web" in live.pods)
        assert live.core.bindings.preempt(live.pods["web"].uid)
        assert "preempted by a pod of higher priority" in await live.refused("web")
        assert sorted(Reported.logged[:2]) == ["WorksOn ends", "WorksToo ends"]
        assert Reported.logged[2:4] == ["WorksToo undoes", "WorksOn undoes"]


class Hangs(Plugin):
    """Does not come back from one of its points."""

    longest_wait_seconds = 0.01
    at = ""

    async def _hang(self, point: str) -> None:
        if point == type(self).at:
            await asyncio.Event().wait()

    async def unreserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        await self._hang("unreserve")

    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        await self._hang("pre_bind")
        if type(self).at == "unreserve":
            raise RuntimeError("so that something must be undone")

    async def bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> Skip:
        await self._hang("bind")
        return Skip()

    async def post_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        await self._hang("post_bind")


HANGING = {
    "unreserve": "so that something must be undone",
    "pre_bind": 'running PreBind plugin "Hangs": it did not end within 10ms',
    "bind": 'running Bind plugin "Hangs": it did not end within 10ms',
}
CONFIG = a_configuration("""
- schedulerName: default-scheduler
- schedulerName: hangs
  plugins:
    reserve: {enabled: [{name: Hangs}]}
    preBind: {enabled: [{name: Hangs}]}
    bind: {enabled: [{name: Hangs}, {name: DefaultBinder}], disabled: [{name: DefaultBinder}]}
    postBind: {enabled: [{name: Hangs}]}
""")


@pytest.mark.parametrize(("point", "message"), HANGING.items(), ids=HANGING.keys())
async def test_a_plugin_that_does_not_come_back_from(server, capsys, monkeypatch, point, message):
    """Isolation: its own pod fails in time, the others are scheduled meanwhile."""
    monkeypatch.setattr(Hangs, "at", point)
    async with a_live_scheduler(server, CONFIG, [Hangs]) as live:
        await live.node("node-1")
        await live.pod("theirs", scheduler="hangs")
        await live.pod("ours")
        assert await live.bound("ours") == ["node-1"]
        assert message in await live.refused("theirs")
        await live.until(lambda: not live.scheduler.state.is_assumed(live.pods["theirs"].uid))
    if point == "unreserve":
        assert 'running Unreserve plugin \\"Hangs\\": it did not end within 10ms' in capsys.readouterr().err


async def test_a_plugin_that_does_not_come_back_from_post_bind(server, capsys, monkeypatch):
    """Isolation: the pod is bound; the scheduler ends without waiting for it."""
    monkeypatch.setattr(Hangs, "at", "post_bind")
    async with a_live_scheduler(server, CONFIG, [Hangs]) as live:
        await live.node("node-1")
        await live.pod("theirs", scheduler="hangs")
        assert await live.bound("theirs") == ["node-1"]
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.gather(*live.core.bindings._tasks.values())
    assert 'running PostBind plugin \\"Hangs\\": it did not end within 10ms' in capsys.readouterr().err
