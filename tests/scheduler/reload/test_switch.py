"""What becomes of pods, plugins and kinds when another configuration takes over."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from tests.scheduler.churn import until
from tests.scheduler.conftest import CRDS, PATIENCE_SECONDS, a_configuration, a_live_scheduler, a_profile
from tests.scheduler.plugin_runtime.test_bad_plugins import WIDGETS, Widget
from tests.scheduler.reload.changes import reloaded, the

from mooring.framework import (
    Allow,
    Args,
    Background,
    Cycle,
    NodeView,
    Objects,
    Plugin,
    Pod,
    Refusal,
    Rejection,
    Wait,
    WaitingPods,
)
from mooring.scheduler.reload.versions import NotNow


class RefuserArgs(Args):
    refuses: bool = True


class Refuser(Plugin):
    """No node will do, and no event helps."""

    def __init__(self, args: RefuserArgs) -> None:
        self._refuses = args.refuses

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        return Rejection("node(s) were refused") if self._refuses else None

    def events(self) -> list[object]:  # type: ignore[override]
        return []


class Gatekeeper(Plugin):
    """Keeps pods out of the queue, and no event helps."""

    def pre_enqueue(self, pod: Pod) -> Refusal | None:
        return Refusal("not yet")

    def events(self) -> list[object]:  # type: ignore[override]
        return []


class CounterArgs(Args):
    step: int = 1


class Counter(Plugin):
    """Has a state, a beginning, work in the background, and an end."""

    trace: list[str] = []

    def __init__(self, args: CounterArgs, background: Background) -> None:
        self.step, self.decided = args.step, 0
        self._background = background

    async def start(self) -> None:
        Counter.trace.append(f"start {self.step}")
        self._background.run(self._work)

    async def stop(self) -> None:
        Counter.trace.append(f"stop {self.step}")

    async def _work(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            Counter.trace.append(f"work of {self.step} ended")

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        self.decided += 1
        return 0


class AskerArgs(Args):
    seconds: int = 600


class Asker(Plugin):
    """Lets pods wait on permit."""

    def __init__(self, args: AskerArgs, waiting: WaitingPods) -> None:
        self._seconds = args.seconds
        self._waiting = waiting

    def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> Allow | Wait:
        return Wait(self._seconds) if self._seconds else Allow()

    def allow_all(self) -> None:
        for each in self._waiting:
            self._waiting.allow(each.pod.uid, self)


class BinderArgs(Args):
    name: str = "first"


class SlowBinder(Plugin):
    """Takes as long as the test wants to prepare a binding, and records which version did it."""

    trace: list[str] = []
    begun = asyncio.Event()
    may_go_on = asyncio.Event()

    def __init__(self, args: BinderArgs) -> None:
        self.who = args.name

    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        SlowBinder.trace.append(f"{self.who} prepares {pod.name}")
        SlowBinder.begun.set()
        await SlowBinder.may_go_on.wait()

    async def post_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        SlowBinder.trace.append(f"{self.who} bound {pod.name}")

    async def stop(self) -> None:
        SlowBinder.trace.append(f"{self.who} stops")


class ReadsWidgets(Plugin):
    def __init__(self, widgets: Objects[Widget]) -> None:
        self._widgets = widgets

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        return None if self._widgets.get(node.name) else Rejection("node(s) had no widget")


class CannotStart(Plugin):
    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return 0

    async def start(self) -> None:
        raise RuntimeError("no key")


class CannotBeBuilt(Plugin):
    def __init__(self) -> None:
        raise KeyError("zone")

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return 0


ALL = (Refuser, Gatekeeper, Counter, Asker, SlowBinder, ReadsWidgets, CannotStart, CannotBeBuilt)


@pytest.fixture(autouse=True)
def clean() -> None:
    Counter.trace.clear()
    SlowBinder.trace.clear()
    SlowBinder.begun, SlowBinder.may_go_on = asyncio.Event(), asyncio.Event()


def ours(*plugins: str, args: str = "", name: str = "default-scheduler") -> str:
    return a_profile(name, plugins=plugins, args=args)


def argued(plugin: str, **args: object) -> str:
    logged = ", ".join(f"{name}: {value}" for name, value in args.items())
    return f"[{{name: {plugin}, args: {{{logged}}}}}]"


def trace() -> str:
    return f"{Counter.trace} {SlowBinder.trace}"


async def test_a_pod_that_a_plugin_refused_is_placed_once_the_plugin_is_switched_off(server):
    async with a_live_scheduler(server, a_configuration(ours("Refuser")), ALL) as live:
        await live.node("only")
        await live.pod("mine")
        await live.refused("mine", containing="were refused")
        adopted = await reloaded(live, ours(), plugins=ALL)
        assert adopted.retired == ["Refuser"]
        assert await live.bound("mine") == ["only"]
        assert live.scheduler.version == 2


async def test_a_pod_that_a_gate_kept_out_enters_when_the_gate_goes(server):
    async with a_live_scheduler(server, a_configuration(ours("Gatekeeper")), ALL) as live:
        await live.node("only")
        await live.pod("mine")
        await until(lambda: live.scheduler.queue.where("mine") == "gated", trace)
        await reloaded(live, ours(), plugins=ALL)
        assert await live.bound("mine") == ["only"]


async def test_a_pod_that_backs_off_meets_the_new_gate(server):
    async with a_live_scheduler(server, a_configuration(ours("Refuser")), ALL) as live:
        await live.node("only")
        await live.pod("mine")
        await live.refused("mine")
        live.scheduler.queue.activate([live.pods["mine"]])
        await reloaded(live, ours("Gatekeeper"), plugins=ALL)
        assert live.scheduler.queue.where("mine") == "gated"


async def test_an_instance_that_is_configured_alike_is_kept_with_its_state(server):
    async with a_live_scheduler(server, a_configuration(ours("Counter")), ALL) as live:
        await live.node("one")
        await live.node("two")
        await live.pod("first")
        await live.bound("first")
        before = the(live, "Counter")
        decided = before.decided
        assert decided
        adopted = await reloaded(live, ours("Counter", "Refuser", args=argued("Refuser", refuses="false")), plugins=ALL)
        assert (adopted.built, adopted.retired) == (["Refuser"], [])
        assert the(live, "Counter") is before
        await live.pod("second")
        await live.bound("second")
        assert before.decided == 2 * decided
        assert Counter.trace == ["start 1"]


async def test_the_new_one_starts_before_the_switch_and_the_old_one_ends_with_its_work_after_it(server):
    async with a_live_scheduler(server, a_configuration(ours("Counter")), ALL) as live:
        await reloaded(live, ours("Counter", args=argued("Counter", step=2)), plugins=ALL)
        assert the(live, "Counter").step == 2
        await until(lambda: len(Counter.trace) == 4, trace)
        assert Counter.trace == ["start 1", "start 2", "stop 1", "work of 1 ended"]


async def test_a_pod_that_waits_for_a_plugin_that_stays_goes_on_waiting(server):
    async with a_live_scheduler(server, a_configuration(ours("Asker")), ALL) as live:
        await live.node("only")
        await live.pod("mine")
        await until(lambda: bool(list(live.core.room)), trace)
        await reloaded(live, ours("Asker", "Counter"), plugins=ALL)
        assert [each.pod.name for each in live.core.room] == ["mine"]
        the(live, "Asker").allow_all()
        assert await live.bound("mine") == ["only"]


@pytest.mark.parametrize(
    "profile",
    [ours(), ours("Asker", args=argued("Asker", seconds=0))],
    ids=["is switched off", "is configured otherwise"],
)
async def test_a_pod_that_waits_for_a_plugin_is_decided_again_if_the_plugin(server, profile):
    async with a_live_scheduler(server, a_configuration(ours("Asker")), ALL) as live:
        await live.node("only")
        await live.pod("mine")
        await until(lambda: bool(list(live.core.room)), trace)
        await reloaded(live, profile, plugins=ALL)
        assert await live.bound("mine") == ["only"]
        notes = [event["note"] for event in await live.events("mine")]
        assert any("the configuration was reloaded while the pod waited for plugin Asker" in note for note in notes)


async def test_a_binding_ends_with_the_version_that_decided_it_and_its_plugin_lives_until_then(server):
    async with a_live_scheduler(server, a_configuration(ours("SlowBinder")), ALL) as live:
        await live.node("only")
        await live.pod("early")
        async with asyncio.timeout(PATIENCE_SECONDS):
            await SlowBinder.begun.wait()
        await reloaded(live, ours("SlowBinder", args=argued("SlowBinder", name="second")), plugins=ALL)
        await live.pod("late")
        await until(lambda: "second prepares late" in SlowBinder.trace, trace)
        SlowBinder.may_go_on.set()
        await live.bound("early", "late")
        await until(lambda: "first stops" in SlowBinder.trace, trace)
        first = [line for line in SlowBinder.trace if line.startswith("first")]
        assert first == ["first prepares early", "first bound early", "first stops"]
        assert "second bound late" in SlowBinder.trace


async def test_pods_of_a_removed_profile_are_left_alone_and_those_of_an_added_one_taken_up(server, capsys):
    async with a_live_scheduler(server, a_configuration(ours(), ours("Refuser", name="old")), ALL) as live:
        await live.node("only")
        await live.pod("before", scheduler="new")
        await live.pod("theirs", scheduler="old")
        await live.refused("theirs")
        adopted = await reloaded(live, ours(), ours(name="new"), plugins=ALL)
        assert (adopted.added, adopted.removed) == (["new"], ["old"])
        await live.pod("after", scheduler="new")
        assert await live.bound("before", "after") == ["only", "only"]
        assert live.scheduler.queue.where("theirs") == "absent"
        assert "Ignoring the pod" in capsys.readouterr().err
        assert not live.pods["theirs"].spec.node_name

        await reloaded(live, ours(), ours(name="old"), plugins=ALL)
        assert await live.bound("theirs") == ["only"]


async def test_a_pod_of_a_removed_profile_that_waits_on_permit_is_taken_back_and_left(server):
    async with a_live_scheduler(server, a_configuration(ours(), ours("Asker", name="old")), ALL) as live:
        await live.node("only")
        await live.pod("theirs", scheduler="old")
        await until(lambda: bool(list(live.core.room)), trace)
        await reloaded(live, ours(), plugins=ALL)
        await until(lambda: live.scheduler.queue.where("theirs") == "absent" and not list(live.core.room), trace)
        await live.until(lambda: "theirs" in live.pods and not live.scheduler.state.is_assumed(live.pods["theirs"].uid))
        await live.pod("mine")
        await live.bound("mine")


async def test_a_pod_of_a_removed_profile_that_is_being_bound_is_bound(server):
    async with a_live_scheduler(server, a_configuration(ours(), ours("SlowBinder", name="old")), ALL) as live:
        await live.node("only")
        await live.pod("theirs", scheduler="old")
        async with asyncio.timeout(PATIENCE_SECONDS):
            await SlowBinder.begun.wait()
        await reloaded(live, ours(), plugins=ALL)
        SlowBinder.may_go_on.set()
        assert await live.bound("theirs") == ["only"]
        await until(lambda: "first stops" in SlowBinder.trace, trace)


async def test_a_new_kind_is_watched_before_the_switch_and_no_longer_than_it_is_read(server):
    async with a_live_scheduler(server, a_configuration(ours()), ALL) as live:
        await live.node("only")
        await live.client.create(CRDS, WIDGETS)
        await until_served(live)
        await live.client.create(
            Widget.KIND, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "only"}}
        )
        await reloaded(live, ours("ReadsWidgets"), plugins=ALL)
        assert the(live, "ReadsWidgets")._widgets.get("only") is not None
        await live.pod("mine")
        await live.bound("mine")
        informers = live.scheduler.informers
        assert Widget in informers._stores
        await reloaded(live, ours(), plugins=ALL)
        await until(lambda: Widget not in informers._stores, trace)
        assert Widget not in informers._watches


async def until_served(live) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            with contextlib.suppress(Exception):
                await live.client.list(Widget.KIND)
                return


async def test_a_kind_that_cannot_be_watched_leaves_the_old_version_in_force(server):
    async with a_live_scheduler(server, a_configuration(ours()), ALL) as live:
        await live.node("only")
        with pytest.raises(NotNow, match=r"plugin ReadsWidgets reads: the server has no widgets.example.com"):
            await reloaded(live, ours("ReadsWidgets"), plugins=ALL)
        assert Widget not in live.scheduler.informers._stores
        await live.pod("mine")
        await live.bound("mine")
        assert live.scheduler.version == 1


BROKEN = {
    "cannot be started": ("CannotStart", "plugin CannotStart cannot be started: RuntimeError: no key"),
    "cannot be built": ("CannotBeBuilt", r"(?s)plugin CannotBeBuilt .*cannot be built.*KeyError: 'zone'"),
}


@pytest.mark.parametrize(("plugin", "words"), BROKEN.values(), ids=BROKEN.keys())
async def test_the_old_version_goes_on_whole_if_a_plugin(server, plugin, words):
    async with a_live_scheduler(server, a_configuration(ours("Counter")), ALL) as live:
        await live.node("only")
        kept = the(live, "Counter")
        with pytest.raises(Exception, match=words):
            await reloaded(live, ours("Counter", plugin, args=argued("Counter", step=2)), plugins=ALL)
        assert live.scheduler.version == 1
        assert the(live, "Counter") is kept
        await live.pod("mine")
        await live.bound("mine")
        assert "stop 1" not in Counter.trace
        assert Counter.trace.count("start 2") == Counter.trace.count("stop 2") == Counter.trace.count("work of 2 ended")


async def test_the_same_configuration_again_changes_nothing(server):
    async with a_live_scheduler(server, a_configuration(ours("Counter")), ALL) as live:
        adopted = await reloaded(live, ours("Counter"), plugins=ALL)
        assert not adopted.is_news
        assert live.scheduler.version == 1
        assert Counter.trace == ["start 1"]


async def test_backoffs_can_change(server):
    async with a_live_scheduler(server, a_configuration(ours()), ALL) as live:
        await reloaded(live, ours(), plugins=ALL, more="podInitialBackoffSeconds: 3\npodMaxBackoffSeconds: 30")
        assert live.scheduler.configuration.pod_max_backoff_seconds == 30
        assert live.scheduler.configuration.pod_initial_backoff_seconds == 3
