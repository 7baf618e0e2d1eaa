"""The page follows the configuration of the scheduler, or of its file, and shows which one is in force."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.web.pages import Page, served
from tests.web.test_actions import connection_to
from tests.web.test_stream import NODE, a_document, events

from mooring.config import default_configuration, load_configuration
from mooring.framework import FeatureGates
from mooring.plugins.catalogue import catalogue
from mooring.web.mirror import Mirror, live_mirror
from mooring.web.used_configuration import ConfigurationFollower, ReadConfiguration

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
HEAVY = HEAD + "profiles: [{plugins: {score: {enabled: [{name: NodeResourcesFit, weight: 7}]}}}]\n"
WITHOUT_FIT = HEAD + "profiles: [{plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}}]\n"
UNKNOWN = HEAD + "profiles: [{plugins: {score: {enabled: [{name: NoSuchPlugin}]}}}]\n"
ELSEWHERE = (
    HEAD + "leaderElection: {resourceName: other}\nextenders: [{urlPrefix: 'http://127.0.0.1:1', filterVerb: f}]\n"
)


class Configurations:
    """What is read next."""

    def __init__(self) -> None:
        self.text: str | None = None
        self.code = 1
        """Another number: the scheduler has run its plugin files again."""
        self.plugins: list[str] = []
        self.loads = 0

    def read(self) -> ReadConfiguration | None:
        if self.text is None:
            return None
        text = self.text
        return ReadConfiguration("scheduler", (text, self.code), lambda: self._loaded(text))

    def _loaded(self, text: str) -> Any:
        self.loads += 1
        registry = catalogue()
        for path in self.plugins:
            registry.add_path(path)
        return load_configuration(text, source="test", registry=registry, gates=FeatureGates()).configuration, registry


@pytest.fixture
async def mirror(server) -> AsyncIterator[Mirror]:
    server.load([NODE, a_document("waiting", cpu="64")])
    registry = catalogue()
    arguments = (connection_to(server), default_configuration(registry), registry, FeatureGates())
    async with live_mirror(*arguments) as mirror:
        yield mirror


@pytest.fixture
async def page(mirror: Mirror) -> AsyncIterator[Page]:
    async with served(mirror) as page:
        yield page


@pytest.fixture
def configurations() -> Configurations:
    return Configurations()


@pytest.fixture
def follower(mirror: Mirror, page: Page, configurations: Configurations) -> ConfigurationFollower:
    return ConfigurationFollower(mirror, configurations.read, lambda: 86_400.0)


async def weight_of(page: Page, plugin: str) -> int | None:
    [profile] = (await page.get("cluster"))["profiles"]
    return next((each["weight"] for each in profile["plugins"] if each["name"] == plugin), None)


async def test_without_a_scheduler_the_default_configuration_is_named(page, follower):
    await follower.look()
    found = (await page.get("cluster"))["configuration"]
    assert found["origin"] == "default"


async def test_a_reload_of_the_scheduler_takes_over(page, follower, configurations):
    assert await weight_of(page, "NodeResourcesFit") == 1
    configurations.text = HEAVY
    await follower.look()
    assert await weight_of(page, "NodeResourcesFit") == 7
    assert (await page.get("cluster"))["configuration"] == {"origin": "scheduler", "since": "1970-01-02T00:00:00Z"}


async def test_pending_pods_are_decided_again_by_the_new_one(page, follower, configurations):
    [group] = (await page.get("queue"))["groups"]
    assert group["reason"] == "the only node has too little cpu"
    configurations.text = WITHOUT_FIT
    await follower.look()
    [group] = (await page.get("queue"))["groups"]
    assert group["reason"] == "it fits, and waits for its turn"
    pod = await page.get("pods/default/waiting")
    assert pod["recomputed"]["decision"]["node"] == "node-1"
    what_if = await page.post("what-if", {"counts": {}})
    assert what_if["pending"] == {"before": 1, "after": 0}


PLUGIN = """
from mooring.framework import Plugin, Rejection

class Tiers(Plugin):
    def filter(self, pod, node, cycle):
        return Rejection("node(s) %s")
"""
WITH_TIERS = (
    HEAD + "profiles: [{plugins: {multiPoint: {enabled: [{name: Tiers}], disabled: [{name: NodeResourcesFit}]}}}]\n"
)


async def test_changed_code_of_a_plugin_takes_over(page, follower, configurations, tmp_path):
    file = tmp_path / "tiers.py"
    file.write_text(PLUGIN % "are of the old tier", encoding="utf-8")
    configurations.text, configurations.plugins = WITH_TIERS, [str(file)]
    await follower.look()
    file.write_text(PLUGIN % "are of the new tier", encoding="utf-8")
    await follower.look()
    assert (await page.get("queue"))["groups"][0]["reason"] == "the only node is of the old tier"
    configurations.code += 1
    await follower.look()
    assert (await page.get("queue"))["groups"][0]["reason"] == "the only node is of the new tier"
    pod = await page.get("pods/default/waiting")
    assert pod["recomputed"]["nearest"][0]["reasons"] == ["node(s) are of the new tier"]
    what_if = await page.post("what-if", {"reschedule": True, "compare": {"config": WITH_TIERS}})
    for found in (what_if, what_if["compare"]):
        assert "node(s) are of the new tier" in found["placements"][0]["message"]


async def test_changed_code_that_cannot_be_run_changes_nothing(page, follower, configurations, tmp_path):
    file = tmp_path / "tiers.py"
    file.write_text(PLUGIN % "are of the old tier", encoding="utf-8")
    configurations.text, configurations.plugins = WITH_TIERS, [str(file)]
    await follower.look()
    file.write_text("def broken(:", encoding="utf-8")
    configurations.code += 1
    await follower.look()
    cluster = await page.get("cluster")
    assert (
        "invalid syntax" in cluster["configuration"]["problem"] or "SyntaxError" in cluster["configuration"]["problem"]
    )
    assert (await page.get("queue"))["groups"][0]["reason"] == "the only node is of the old tier"
    what_if = await page.post("what-if", {"reschedule": True})
    assert "node(s) are of the old tier" in what_if["placements"][0]["message"]


async def test_open_pages_are_notified(page, follower, configurations):
    async with asyncio.timeout(20):
        async for kind, data in events(page):
            if kind == "cluster":
                configurations.text = HEAVY
                await follower.look()
            if kind == "configuration":
                assert data == {"refetch": True}
                break


async def test_the_same_configuration_is_not_loaded_again(follower, configurations):
    configurations.text = HEAVY
    await follower.look()
    await follower.look()
    assert configurations.loads == 1


async def test_a_configuration_that_cannot_be_used_leaves_the_earlier_one(page, follower, configurations):
    configurations.text = HEAVY
    await follower.look()
    configurations.text = UNKNOWN
    await follower.look()
    assert await weight_of(page, "NodeResourcesFit") == 7
    cluster = await page.get("cluster")
    assert "NoSuchPlugin" in cluster["configuration"]["problem"]
    assert any("NoSuchPlugin" in note for note in cluster["notes"])
    configurations.text = HEAD
    await follower.look()
    assert "problem" not in (await page.get("cluster"))["configuration"]
    assert await weight_of(page, "NodeResourcesFit") == 1


async def test_a_scheduler_that_has_gone_leaves_its_configuration(page, follower, configurations):
    configurations.text = HEAVY
    await follower.look()
    configurations.text = None
    await follower.look()
    assert await weight_of(page, "NodeResourcesFit") == 7


async def test_how_a_scheduler_leads_and_which_extenders_it_calls_does_not_matter_here(page, follower, configurations):
    """A scheduler cannot change these while it runs; one that was restarted with others is followed, too."""
    configurations.text = ELSEWHERE
    await follower.look()
    cluster = await page.get("cluster")
    assert "problem" not in cluster["configuration"]
    assert any("extenders" in note for note in cluster["notes"])


async def test_a_scheduler_that_decides_alike_is_named_and_nothing_is_decided_again(page, follower, configurations):
    """As when a page was started before its scheduler."""
    configurations.text = HEAD
    async with asyncio.timeout(20):
        async for kind, data in events(page):
            assert kind != "configuration"
            if kind == "decisions":
                await follower.look()
            if kind == "cluster" and data["configuration"]["origin"] == "scheduler":
                break
