"""A shadow beside a live scheduler, on the embedded API server: what it reports, and that it only reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.scheduler.conftest import HEAD, PATIENCE_SECONDS, a_configuration, a_live_scheduler, a_profile

from mooring.apiserver import EmbeddedApiServer
from mooring.apiserver.handlers import Handler
from mooring.client import Connection
from mooring.config import load_configuration
from mooring.framework import Cycle, NodeView, Plugin, Pod, Refusal, Rejection
from mooring.objects import Kind
from mooring.plugins.catalogue import catalogue
from mooring.scheduler.shadow import Comparison, ReadOnlyClient, ShadowRun, Subject, build_shadow, deciding_for

ONLY_READS = "a shadow only reads"
PRIORITIES = Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False)
CONTAINER = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": "1"}}}


class NotA(Plugin):
    """Refuses node a."""

    name = "NotA"

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        return Rejection("node(s) called a") if node.name == "a" else None


class Mondays(Plugin):
    """Lets no pod in."""

    name = "Mondays"

    def pre_enqueue(self, pod: Pod) -> Refusal | None:
        return Refusal("only on Mondays")


class Watching:
    """A shadow; what it reported, and waiting for more."""

    def __init__(self) -> None:
        self.reported: list[Comparison] = []
        self._news = asyncio.Event()
        self.run: ShadowRun

    def report(self, comparison: Comparison) -> None:
        self.reported.append(comparison)
        self._news.set()

    async def of(self, pod: str, subject: Subject = Subject.BINDING) -> Comparison:
        """Wait until it has reported this pod."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                for reported in self.reported:
                    if reported.pod == f"default/{pod}" and reported.subject is subject:
                        return reported
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def a_shadow(
    server: EmbeddedApiServer,
    config: str = HEAD,
    plugins: Sequence[type[Plugin]] = (),
    scheduler_name: str | None = None,
    **options: Any,
) -> AsyncIterator[Watching]:
    registry = catalogue()
    for plugin in plugins:
        registry.add(plugin, "test")
    configuration = load_configuration(config, source="test.yaml", registry=registry).configuration
    if scheduler_name is not None:
        configuration = deciding_for(configuration, scheduler_name)
    connection = Connection(server=server.url, source="the test", ca_data=server.ca_pem.encode(), token=server.token)
    watching = Watching()
    async with ReadOnlyClient(connection) as client:
        watching.run = build_shadow(client, configuration, registry, report=watching.report, **options)
        scheduler = watching.run.scheduler
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(scheduler.run())
            await scheduler.ready.wait()
            try:
                yield watching
            finally:
                scheduler.stop()


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Every request that reaches the server: who sent it, and the method."""
    seen: list[tuple[str, str]] = []
    handle = Handler.__call__

    def recorded(self: Handler, request: Any) -> Any:
        seen.append((request.headers.get("User-Agent", ""), request.method))
        return handle(self, request)

    monkeypatch.setattr(Handler, "__call__", recorded)
    return seen


async def test_it_agrees_with_a_scheduler_of_the_same_rules_and_only_reads(
    server: EmbeddedApiServer, requests: list[tuple[str, str]], capfd: pytest.CaptureFixture[str]
):
    async with a_live_scheduler(server) as live, a_shadow(server) as watching:
        await live.node("a", cpu="1")
        await live.node("b", cpu="2")
        names = [f"pod-{number}" for number in range(8)]
        for name in names:
            await live.pod(name)
        await live.pod("huge", cpu="64")
        await live.pod("of-another-scheduler", scheduler="another-scheduler")
        reported = [await watching.of(name) for name in names]
        refusal = await watching.of("huge", Subject.REFUSAL)
        assert {each.result for each in reported} == {"agree"}
        assert (refusal.result, refusal.theirs["message"]) == ("agree", await live.refused("huge"))
        assert watching.run.shadow.waiting == 1
    assert not [each for each in watching.reported if each.pod == "default/of-another-scheduler"]
    assert {method for agent, method in requests if agent == "mooring-shadow"} == {"GET"}
    assert {method for agent, method in requests if agent != "mooring-shadow"} > {"GET", "POST"}
    assert ONLY_READS not in capfd.readouterr().err, "nothing even tried to write"


async def test_a_filter_that_only_we_have_is_named(server: EmbeddedApiServer):
    ours = a_configuration(a_profile("default-scheduler", plugins=["NotA"]))
    async with a_live_scheduler(server) as live, a_shadow(server, ours, [NotA]) as watching:
        await live.node("a")
        await live.pod("web")
        reported = await watching.of("web")
    assert (reported.result, reported.judgement.plugin) == ("differ", "NotA")
    assert reported.judgement.why == "NotA refuses a: node(s) called a"
    assert reported.ours["rejections"][0]["plugin"] == "NotA"


async def test_a_score_that_only_we_give_is_named(server: EmbeddedApiServer):
    packing = "[{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu}]}}}]"
    ours = a_configuration(a_profile("default-scheduler", args=packing))
    async with a_live_scheduler(server) as live, a_shadow(server, ours) as watching:
        await live.node("a")
        await live.node("b")
        await live.pod("first", cpu="1")
        await live.bound("first")
        await live.pod("second", cpu="1")
        reported = await watching.of("second")
    assert (reported.result, reported.judgement.plugin) == ("differ", "NodeResourcesFit")
    gaps = {row["plugin"]: row["gap"] for row in reported.judgement.evidence["scores"]}
    assert gaps["NodeResourcesFit"] == max(gaps.values()) > 0


async def test_a_gate_that_only_we_have_is_named(server: EmbeddedApiServer):
    ours = a_configuration(a_profile("default-scheduler", plugins=["Mondays"]))
    async with a_live_scheduler(server) as live, a_shadow(server, ours, [Mondays]) as watching:
        await live.node("a")
        await live.pod("web")
        reported = await watching.of("web")
    assert (reported.result, reported.judgement.cause, reported.judgement.plugin) == ("differ", "gate", "Mondays")


async def test_room_is_made_where_we_would_make_it(server: EmbeddedApiServer, requests: list[tuple[str, str]]):
    async with a_live_scheduler(server) as live, a_shadow(server) as watching:
        await live.node("a", cpu="1")
        await live.pod("low", cpu="1")
        await live.bound("low")
        await live.client.create(PRIORITIES, {"metadata": {"name": "urgent"}, "value": 1000})
        urgent = {"metadata": {"name": "urgent"}, "spec": {"priorityClassName": "urgent", "containers": [CONTAINER]}}
        await live.client.create(Pod.KIND, urgent, "default")
        reported = await watching.of("urgent", Subject.PREEMPTION)
        assert (reported.result, reported.theirs["nominated"]) == ("agree", "a")
        assert reported.judgement.evidence["evict"] == ["default/low"]
        # There is no kubelet that would end it.
        await live.client.delete(Pod.KIND, "low", "default", grace_seconds=0)
        assert (await watching.of("urgent")).result == "agree"
    assert {method for agent, method in requests if agent == "mooring-shadow"} == {"GET"}


async def test_pods_of_another_name_are_decided_with_the_first_profile(server: EmbeddedApiServer):
    theirs = a_configuration(a_profile("theirs"))
    async with a_live_scheduler(server, theirs) as live, a_shadow(server, scheduler_name="theirs") as watching:
        await live.node("a")
        await live.pod("web", scheduler="theirs")
        reported = await watching.of("web")
    assert (reported.result, reported.profile) == ("agree", "theirs")


async def test_everything_is_counted(server: EmbeddedApiServer):
    ours = a_configuration(a_profile("default-scheduler", plugins=["NotA"]))
    async with a_live_scheduler(server) as live, a_shadow(server, ours, [NotA]) as watching:
        await live.node("a")
        await live.pod("web")
        await watching.of("web")
        served = watching.run.scheduler.metrics.text().decode()
        summary = "\n".join(watching.run.summary.lines())
    decisions = 'mooring_shadow_decisions_total{profile="default-scheduler",result="%s",subject="binding"} %s\n'
    assert decisions % ("differ", "1.0") in served
    assert decisions % ("agree", "0.0") in served
    differences = 'mooring_shadow_differences_total{cause="verdict",plugin="NotA",profile="default-scheduler"} 1.0\n'
    assert differences in served
    assert "Compared 1: 0 agree" in summary
    assert "1 differ," in summary
    assert "differences by NotA (verdict): 1" in summary


def test_the_profile_of_the_same_name_decides_else_the_first():
    text = a_configuration(a_profile("one"), a_profile("two"))
    configuration = load_configuration(text, source="test.yaml", registry=catalogue()).configuration
    assert deciding_for(configuration, "two").profiles == configuration.profiles[1:]
    [renamed] = deciding_for(configuration, "three").profiles
    assert (renamed.scheduler_name, renamed.points) == ("three", configuration.profiles[0].points)
