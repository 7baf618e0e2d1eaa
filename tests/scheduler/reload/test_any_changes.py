"""Whatever configurations come, good and broken, while pods come: no pod is lost, and one version decides each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.scheduler.churn import HurriedClock, Witness
from tests.scheduler.conftest import Live, a_configuration, a_live_scheduler, a_profile
from tests.scheduler.reload.changes import reloaded

from mooring.apiserver import EmbeddedApiServer
from mooring.base.errors import MooringError
from mooring.client import Reflector
from mooring.framework import Allow, Args, Cycle, NodeView, Plugin, Pod, Refusal, Rejection, Wait, WaitingPods

NAMES = ("red", "green", "blue")
MOODS = ("places", "refuses", "gates", "waits", "dawdles")
BROKEN = ("raises when built", "raises when started", "changes who leads")


class StampArgs(Args):
    version: int = 0
    mood: str = "places"


class Stamp(Plugin):
    """Writes into each cycle which version called it there."""

    seen: dict[Cycle, list[int]] = {}
    alive: list[int] = []

    def __init__(self, args: StampArgs, waiting: WaitingPods) -> None:
        self.version, self.mood = args.version, args.mood
        self._waiting = waiting
        if self.mood == "raises when built":
            raise KeyError(self.mood)

    async def start(self) -> None:
        Stamp.alive.append(self.version)
        if self.mood == "raises when started":
            raise KeyError(self.mood)

    async def stop(self) -> None:
        Stamp.alive.remove(self.version)

    def _stamp(self, cycle: Cycle) -> None:
        Stamp.seen.setdefault(cycle, []).append(self.version)

    def events(self) -> list[object]:  # type: ignore[override]
        return []

    def pre_enqueue(self, pod: Pod) -> Refusal | None:
        return Refusal("not yet") if self.mood == "gates" else None

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        self._stamp(cycle)
        return Rejection("no") if self.mood == "refuses" else None

    def reserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        self._stamp(cycle)

    def unreserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        self._stamp(cycle)

    def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> Allow | Wait:
        self._stamp(cycle)
        return Wait(100_000) if self.mood == "waits" else Allow()

    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        if self.mood == "dawdles":
            for _ in range(100):
                await asyncio.sleep(0)
        self._stamp(cycle)

    async def post_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        self._stamp(cycle)


@dataclass(frozen=True)
class NewPod:
    scheduler: str


@dataclass(frozen=True)
class NewVersion:
    moods: dict[str, str]
    """Profile → what its plugin does."""


@dataclass(frozen=True)
class BrokenVersion:
    how: str


@dataclass(frozen=True)
class TimePasses:
    steps: int


Step = NewPod | NewVersion | BrokenVersion | TimePasses

STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(NewPod, st.sampled_from(NAMES)),
    st.builds(NewVersion, st.dictionaries(st.sampled_from(NAMES), st.sampled_from(MOODS), min_size=1)),
    st.builds(BrokenVersion, st.sampled_from(BROKEN)),
    st.builds(TimePasses, st.integers(1, 300)),
)


def profiles(version: int, moods: dict[str, str]) -> list[str]:
    return [
        a_profile(name, plugins=["Stamp"], args=f"[{{name: Stamp, args: {{version: {version}, mood: {mood}}}}}]")
        for name, mood in moods.items()
    ]


async def take(live: Live, number: int, step: Step) -> None:
    match step:
        case NewPod(scheduler):
            await live.pod(f"pod-{number}", scheduler=scheduler)
        case NewVersion(moods):
            assert (await reloaded(live, *profiles(number, moods), plugins=[Stamp])).is_news
        case BrokenVersion("changes who leads"):
            await fails(live, -number, "places", more="clientConnection: {qps: 3}")
        case BrokenVersion(how):
            await fails(live, -number, how)
        case TimePasses(steps):
            for _ in range(steps):
                await asyncio.sleep(0)


async def fails(live: Live, version: int, mood: str, more: str = "") -> None:
    before = live.scheduler.version
    try:
        await reloaded(live, *profiles(version, dict.fromkeys(NAMES, mood)), plugins=[Stamp], more=more)
    except MooringError:
        assert live.scheduler.version == before
        return
    raise AssertionError("a broken version was adopted")


@settings(max_examples=8, deadline=None)
@given(st.lists(STEPS, min_size=5, max_size=25))
async def test_no_pod_is_lost_and_each_decision_is_made_by_one_version(steps: Sequence[Step]):
    Stamp.seen.clear()
    Stamp.alive.clear()
    server = EmbeddedApiServer()
    await server.start()
    first = a_configuration(*profiles(1, dict.fromkeys(NAMES[:2], "places")))
    # No flush of the unschedulable: it would hide a pod that no event requeues.
    options: dict[str, Any] = {"clock": HurriedClock(), "max_unschedulable_seconds": 1e9}
    async with a_live_scheduler(server, first, [Stamp], **options) as live:
        witness = Witness()
        watching = asyncio.create_task(Reflector(live.client, Pod, witness).run())
        for name in ("one", "two"):
            await live.node(name, cpu="100")
        for number, step in enumerate(steps, start=2):
            await take(live, number, step)
        last = len(steps) + 2
        await reloaded(live, *profiles(last, dict.fromkeys(NAMES, "places")), plugins=[Stamp])
        await live.bound(*(f"pod-{number}" for number, step in enumerate(steps, start=2) if isinstance(step, NewPod)))
        watching.cancel()
        await asyncio.wait([watching])
        assert witness.wrongs == []
    await server.stop()
    assert all(len(set(versions)) == 1 for versions in Stamp.seen.values())
    assert all(versions[0] > 0 for versions in Stamp.seen.values()), "a broken version decided"
    assert Stamp.alive == []
