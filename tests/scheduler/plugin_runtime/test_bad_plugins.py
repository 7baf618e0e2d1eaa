"""A plugin that misbehaves costs its own pods an attempt, names itself, and never holds up the others."""

import asyncio
import inspect
import re
from typing import Any

import pytest
from tests.scheduler.conftest import CRDS, Live, a_configuration, a_live_scheduler, a_profile

from mooring.base import log
from mooring.framework import (
    Action,
    Background,
    CustomResource,
    Cycle,
    Hint,
    Node,
    NodeView,
    Objects,
    Plugin,
    Pod,
    QueuedPod,
    Rejection,
)
from mooring.scheduler.plugin_runtime import lifecycle
from mooring.scheduler.plugin_runtime.plugin_errors import NAME

NO_IDEA = RuntimeError("no idea")


def fails_at(point: str, response: Any = NO_IDEA, **more: Any) -> type[Plugin]:
    """A plugin with one extension point, which raises this or returns it."""

    def act(self: Plugin, *_: Any) -> Any:
        if isinstance(response, BaseException):
            raise response
        return response

    async def act_later(self: Plugin, *_: Any) -> Any:
        return act(self)

    is_async = point in ("pre_bind", "bind", "post_bind")
    return type("Bad", (Plugin,), {point: act_later if is_async else act, **more})


async def later_nothing(self: Plugin, *_: Any) -> None:
    return None


AT_THE_GATE = 'running PreEnqueue plugin "Bad": '
RAISED = "RuntimeError: no idea"
CASES = {
    "raises in pre_filter": (fails_at("pre_filter"), "PreFilter", f'running PreFilter plugin "Bad": {RAISED}'),
    "raises in filter": (fails_at("filter"), "Filter", f'running "Bad" filter plugin: {RAISED}'),
    "returns an invalid value in filter": (
        fails_at("filter", True),
        "Filter",
        'running "Bad" filter plugin: filter of node',
    ),
    "raises in pre_score": (
        fails_at("pre_score", score=lambda *_: 1),
        "PreScore",
        f'running PreScore plugin "Bad": {RAISED}',
    ),
    "raises in score": (
        fails_at("score", KeyError("zone")),
        "Score",
        "running Score plugins: plugin \"Bad\" failed with: KeyError: 'zone'",
    ),
    "raises in normalize": (
        fails_at("normalize", score=lambda *_: 1),
        "ScoreExtensionNormalize",
        f'running Normalize on Score plugins: plugin "Bad" failed with: {RAISED}',
    ),
    "scores 101": (
        fails_at("score", 101),
        "Score",
        'applying score defaultWeights on Score plugins: plugin "Bad" returns an invalid score 101, '
        "it should in the range of [0, 100] after normalizing",
    ),
    "scores with a text": (fails_at("score", "high"), "Score", '"Bad"'),
    "raises in reserve": (fails_at("reserve"), "Reserve", f'running Reserve plugin "Bad": {RAISED}'),
    "returns an invalid value in reserve": (
        fails_at("reserve", 1),
        "Reserve",
        'running Reserve plugin "Bad": reserve returned 1; it must return a Refusal or None',
    ),
    "raises in permit": (fails_at("permit"), "Permit", f'running Permit plugin "Bad": {RAISED}'),
    "returns an invalid value in permit": (
        fails_at("permit", True),
        "Permit",
        'running Permit plugin "Bad": permit returned',
    ),
    "raises in needs_pre_bind": (
        fails_at("needs_pre_bind", pre_bind=later_nothing),
        "PreBindPreFlight",
        f'running PreBindPreFlight "Bad": {RAISED}',
    ),
    "raises in pre_bind": (fails_at("pre_bind"), "PreBind", f'running PreBind plugin "Bad": {RAISED}'),
    "returns an invalid value in pre_bind": (
        fails_at("pre_bind", 1),
        "PreBind",
        'running PreBind plugin "Bad": pre_bind returned 1; it must return a Refusal or None',
    ),
    "raises in bind": (fails_at("bind"), "Bind", f'running Bind plugin "Bad": {RAISED}'),
    "returns an invalid value in bind": (
        fails_at("bind", None),
        "Bind",
        'running Bind plugin "Bad": bind returned None; it must return Bound, Skip or a Refusal',
    ),
    "raises in pre_enqueue": (fails_at("pre_enqueue"), "PreEnqueue", AT_THE_GATE + RAISED),
    "returns an invalid value in pre_enqueue": (
        fails_at("pre_enqueue", "no"),
        "PreEnqueue",
        AT_THE_GATE + "pre_enqueue returned 'no', neither None nor a Refusal",
    ),
}


def a_bad_profile(plugin: type[Plugin]) -> str:
    """Where only one plugin binds it must be called first."""
    if not hasattr(plugin, "bind"):
        return a_profile("broken", plugins=["Bad"])
    bind = "bind: {enabled: [{name: Bad}, {name: DefaultBinder}], disabled: [{name: DefaultBinder}]}"
    return f"- schedulerName: broken\n  plugins: {{{bind}}}"


@pytest.mark.parametrize(("plugin", "point", "words"), CASES.values(), ids=CASES.keys())
async def test_a_plugin_that(server, capsys, plugin, point, words):
    """Isolation: named in status, event, log and metric; the loop goes on."""
    config = a_configuration("- schedulerName: default-scheduler", a_bad_profile(plugin))
    async with a_live_scheduler(server, config, [plugin]) as live:
        await live.node("node-1")
        await live.node("node-2")
        await live.pod("theirs", scheduler="broken")
        assert words in await live.refused("theirs")
        assert live.condition("theirs").reason == "SchedulerError"
        [event, *_] = await live.events("theirs")
        assert (event["reason"], words in event["note"]) == ("FailedScheduling", True)
        logged = capsys.readouterr().err.replace("\\", "")
        assert words in logged or ('plugin="Bad"' in logged and words.removeprefix(AT_THE_GATE) in logged)
        assert errors(live) == {("Bad", point)}

        await live.pod("ours")
        await live.bound("ours")
        await live.until(lambda: not live.scheduler.state.is_assumed(live.pods["theirs"].uid))


class RaisesInAHelper(Plugin):
    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        return self._judged(node)

    def _judged(self, node: NodeView) -> Rejection | None:
        return Rejection(node.labels["rack"])


async def test_the_log_names_the_line_at_which_a_plugin_raised(server, capsys):
    """Isolation: a bad plugin fails only its own pod."""
    config = a_configuration(a_profile("default-scheduler", plugins=["RaisesInAHelper"]))
    async with a_live_scheduler(server, config, [RaisesInAHelper]) as live:
        await live.node("node-1")
        await live.pod("web")
        assert "KeyError: 'rack'" in await live.refused("web")
    first = inspect.getsourcelines(RaisesInAHelper._judged)[1]
    assert f'at="{__file__}:{first + 1}"' in capsys.readouterr().err


class RaisesAfterwards(Plugin):
    async def post_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        raise RuntimeError("too late")


@pytest.mark.parametrize("verbosity", [0, 4])
async def test_the_log_names_the_line_of_a_failed_post_bind_and_at_4_its_traceback(verbosity, server, capsys):
    """Isolation: a bad plugin fails only its own pod."""
    log.configure(verbosity=verbosity)
    config = a_configuration(a_profile("default-scheduler", plugins=["RaisesAfterwards"]))
    async with a_live_scheduler(server, config, [RaisesAfterwards]) as live:
        await live.node("node-1")
        await live.pod("web")
        await live.bound("web")
        await live.until(lambda: ("RaisesAfterwards", "PostBind") in errors(live))
    log.configure(verbosity=0)
    first = inspect.getsourcelines(RaisesAfterwards.post_bind)[1]
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "PostBind plugin failed" in line]
    assert f'at="{__file__}:{first + 1}"' in line
    assert ('trace="Traceback' in line) is (verbosity == 4)


def errors(live: Live) -> set[tuple[str, str]]:
    """Which plugins failed at which points, as the metric counts them."""
    text = live.scheduler.metrics.text().decode()
    found = re.findall(rf'^{NAME}{{extension_point="(\w+)",plugin="(\w+)"}}', text, re.MULTILINE)
    return {(plugin, point) for point, plugin in found}


async def refuses(live: Live) -> None:
    await live.pod("full", cpu="100", scheduler="broken")
    await live.refused("full")


async def binds(live: Live) -> None:
    await live.pod("web", scheduler="broken")
    await live.bound("web")


async def fails_to_bind(live: Live) -> None:
    await live.pod("web", scheduler="broken")
    await live.refused("web", containing="so that something must be undone")


async def is_woken(live: Live) -> None:
    await live.pod("picky", scheduler="broken")
    await live.refused("picky")
    await live.node("node-3", cpu="8")
    await live.pod("big", cpu="8")
    await live.bound("big")


async def fail_pre_bind(self: Plugin, *_: Any) -> None:
    raise RuntimeError("so that something must be undone")


class BadHint(Plugin):
    name = "Bad"

    def events(self) -> list[Hint]:
        return [Hint(Node, Action.ADD, self._cannot_report)]

    def _cannot_report(self, pod: Pod, before: Node | None, after: Node) -> bool:
        raise RuntimeError("no idea")

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        return Rejection("node(s) are not good enough") if pod.name == "picky" else None


class BadWork(Plugin):
    name = "Bad"

    def __init__(self, background: Background) -> None:
        self._background = background

    async def start(self) -> None:
        self._background.run(self._work)

    async def _work(self) -> None:
        raise RuntimeError("no idea")

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return 0


QUIET = {
    "raises in post_filter": (fails_at("post_filter"), "PostFilter", refuses),
    "returns an invalid value in post_filter": (fails_at("post_filter", 1), "PostFilter", refuses),
    "raises in unreserve": (fails_at("unreserve", pre_bind=fail_pre_bind), "Unreserve", fails_to_bind),
    "raises in post_bind": (fails_at("post_bind"), "PostBind", binds),
    "raises in a queueing hint": (BadHint, "QueueingHint", is_woken),
    "raises in the background": (BadWork, "Background", binds),
}


@pytest.mark.parametrize(("plugin", "point", "happens"), QUIET.values(), ids=QUIET.keys())
async def test_where_the_pod_gets_no_condition_log_and_metric_name_a_plugin_that(
    server, capsys, plugin, point, happens
):
    """Isolation, Q11, Q30: a bad plugin fails only its own pod; a gated pod records its plugin, without event or
    condition; Queue means activeQ, or backoffQ while backoff lasts.
    """
    config = a_configuration("- schedulerName: default-scheduler", a_profile("broken", plugins=["Bad"]))
    async with a_live_scheduler(server, config, [plugin]) as live:
        await live.node("node-1")
        await live.node("node-2")
        await happens(live)
        await live.pod("ours")
        await live.bound("ours")
        assert ("Bad", point) in errors(live)
    logged = capsys.readouterr().err
    assert "Bad" in logged
    assert "no idea" in logged or "returned 1" in logged


class NeverStarts(Plugin):
    async def start(self) -> None:
        await asyncio.Event().wait()

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return 0


async def test_a_plugin_that_never_starts_is_named_and_not_waited_for(server, capsys, monkeypatch):
    """Isolation: a bad plugin fails only its own pod."""
    monkeypatch.setattr(lifecycle, "MOST_START_SECONDS", 0.05)
    config = a_configuration(a_profile("default-scheduler", plugins=["NeverStarts"]))
    async with a_live_scheduler(server, config, [NeverStarts]) as live:
        await live.node("node-1")
        await live.pod("web")
        assert await live.bound("web") == ["node-1"]
        assert errors(live) == {("NeverStarts", "Start")}
    logged = capsys.readouterr().err
    assert "NeverStarts]" in logged
    assert "it has not started within 0.05 s" in logged


class BadOrder(Plugin):
    def sort_key(self, queued: QueuedPod) -> int:
        raise RuntimeError("no idea")


async def test_a_sort_plugin_that_raises_is_named_and_pods_are_scheduled_all_the_same(server, capsys):
    """Isolation, Q6: a bad plugin fails only its own pod; one queue, ordered by the sort plugin."""
    sort = "queueSort: {enabled: [{name: BadOrder}], disabled: [{name: PrioritySort}]}"
    config = a_configuration(f"- schedulerName: default-scheduler\n  plugins: {{{sort}}}")
    async with a_live_scheduler(server, config, [BadOrder]) as live:
        await live.node("node-1")
        await live.pod("web")
        assert await live.bound("web") == ["node-1"]
        assert errors(live) == {("BadOrder", "QueueSort")}
    assert 'plugin="BadOrder"' in capsys.readouterr().err


class Widget(CustomResource, group="example.com", version="v1", plural="widgets", scope="Cluster"):
    pass


class NeedsWidgets(Plugin):
    def __init__(self, widgets: Objects[Widget]) -> None:
        self._widgets = widgets

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        return None if self._widgets.get(node.name) else Rejection("node(s) had no widget")


WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


async def test_a_kind_that_the_server_lacks_holds_only_the_profile_that_needs_it(server):
    config = a_configuration("- schedulerName: default-scheduler", a_profile("widgets", plugins=["NeedsWidgets"]))
    async with a_live_scheduler(server, config, [NeedsWidgets]) as live:
        await live.node("node-1")
        await live.pod("theirs", scheduler="widgets")
        message = await live.refused("theirs")
        assert "NeedsWidgets" in message
        assert "widgets.example.com" in message
        await live.pod("ours")
        await live.bound("ours")

        await live.client.create(CRDS, WIDGETS)
        assert (await live.refused("theirs", containing="widget.")).startswith(
            "0/1 nodes are available: 1 node(s) had no widget."
        )
        widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "node-1"}}
        await live.client.create(Widget.KIND, widget)
        await live.node("node-2")
        assert await live.bound("theirs") == ["node-1"]
