"""A plugin that misbehaves costs its own pods an attempt, names itself, and never holds up the others."""

import pytest
from tests.scheduler.conftest import CRDS, a_configuration, a_live_scheduler, a_profile

from mooring.framework import CustomResource, Cycle, NodeView, Objects, Plugin, Pod, Rejection


class Raises(Plugin):
    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        zones: dict[str, int] = {}
        return zones["zone"]


class TooHigh(Plugin):
    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return 101


class NoNumber(Plugin):
    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return "high"  # type: ignore[return-value]


class RaisesInFilter(Plugin):
    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        raise RuntimeError("no idea")


class RaisesInPermit(Plugin):
    def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        raise RuntimeError("not today")


class RaisesInBind(Plugin):
    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        raise RuntimeError("the disk is gone")


class PermitsNonsense(Plugin):
    def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> bool:
        return True


CASES = {
    "raises in score": (Raises, "running Score plugins: plugin \"Raises\" failed with: KeyError: 'zone'"),
    "scores 101": (
        TooHigh,
        'applying score defaultWeights on Score plugins: plugin "TooHigh" returns an invalid score 101, '
        "it should in the range of [0, 100] after normalizing",
    ),
    "scores with a text": (NoNumber, '"NoNumber"'),
    "raises in filter": (RaisesInFilter, 'running "RaisesInFilter" filter plugin: RuntimeError: no idea'),
    "raises in permit": (RaisesInPermit, 'running Permit plugin "RaisesInPermit": RuntimeError: not today'),
    "raises in pre_bind": (RaisesInBind, 'running PreBind plugin "RaisesInBind": RuntimeError: the disk is gone'),
    "answers nonsense in permit": (PermitsNonsense, 'running Permit plugin "PermitsNonsense": permit returned True'),
}


@pytest.mark.parametrize(("plugin", "words"), CASES.values(), ids=CASES.keys())
async def test_a_plugin_that(server, plugin, words):
    config = a_configuration("- schedulerName: default-scheduler", a_profile("broken", plugins=[plugin.name]))
    async with a_live_scheduler(server, config, [plugin]) as live:
        await live.node("node-1")
        await live.node("node-2")
        await live.pod("theirs", scheduler="broken")
        assert words in await live.refused("theirs")
        condition = live.pods["theirs"].condition("PodScheduled")
        assert condition is not None
        assert condition.reason == "SchedulerError"
        [event, *_] = await live.events("theirs")
        assert (event["reason"], words in event["note"]) == ("FailedScheduling", True)

        await live.pod("ours")
        await live.bound("ours")
        assert not live.scheduler.state.is_assumed(live.pods["theirs"].uid)


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
        assert await live.refused("theirs", saying="widget.") == "0/1 nodes are available: 1 node(s) had no widget."
        widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "node-1"}}
        await live.client.create(Widget.KIND, widget)
        await live.node("node-2")
        assert await live.bound("theirs") == ["node-1"]
