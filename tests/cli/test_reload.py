"""`mooring run` takes on changed files while it runs: a mounted ConfigMap, a file that is edited, a signal."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.cli.clusters import Placed, a_server, create_node, create_pod
from tests.cli.conftest import Mooring
from tests.cli.programs import Program, private_home

from mooring.client import ApiClient
from mooring.objects import Kind

EVENTS = Kind("events.k8s.io", "v1", "Event", "events")

HEAD = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
"""
PINNED = HEAD + "profiles: [{schedulerName: default-scheduler, plugins: {multiPoint: {enabled: [{name: Pin}]}}}]\n"
PIN = """
from mooring.framework import Cycle, NodeView, Plugin, Pod, Rejection

class Pin(Plugin):
    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        return None if node.name == "%s" else Rejection("node(s) were not the one")
"""


class Mount:
    """A ConfigMap as kubelet mounts it: files are links through `..data`, and that link is what changes."""

    def __init__(self, folder: Path, files: Mapping[str, str]) -> None:
        self.folder = folder
        folder.mkdir()
        self._swaps = 0
        self.show(**{name.replace(".", "__"): text for name, text in files.items()})
        for name in files:
            (folder / name).symlink_to(f"..data/{name}")

    def show(self, **files: str) -> None:
        """What the ConfigMap holds now, all of it at once; `__` stands for a dot."""
        self._swaps += 1
        version = self.folder / f"..2026_11_16_{self._swaps}"
        version.mkdir()
        for name, text in files.items():
            (version / name.replace("__", ".")).write_text(text, encoding="utf-8")
        fresh = self.folder / "..data_tmp"
        fresh.symlink_to(version.name)
        os.replace(fresh, self.folder / "..data")


class Cluster:
    def __init__(self, client: ApiClient, placed: Placed, home: Path) -> None:
        self.client, self.placed, self.home = client, placed, home

    def scheduler(self, *flags: str) -> Program:
        return Program("run", "--kubeconfig=k", *flags, home=self.home)

    async def lands_on(self, pod: str) -> str:
        await create_pod(self.client, pod)
        return await self.placed.on(pod)

    async def events(self) -> list[tuple[str, str]]:
        found: list[dict[str, Any]] = await self.client.list(EVENTS, "kube-system")
        return [
            (event["reason"], event["note"])
            for event in sorted(found, key=lambda event: str(event["eventTime"]))
            if event["regarding"]["kind"] == "Lease" and event["regarding"]["name"] == "kube-scheduler"
        ]


@asynccontextmanager
async def a_cluster() -> AsyncIterator[Cluster]:
    async with a_server() as (server, client, placed):
        with private_home() as home:
            server.write_kubeconfig(home / "k")
            await create_node(client, "one")
            await create_node(client, "two")
            yield Cluster(client, placed, home)


async def test_a_mounted_config_map_is_followed_and_what_is_broken_changes_nothing():
    async with a_cluster() as cluster:
        mount = Mount(cluster.home / "mount", {"scheduler.yaml": PINNED, "pin.py": PIN % "one"})
        flags = ("--config=mount/scheduler.yaml", "--plugins=mount", "--watch-config", "--reload-plugins")
        with cluster.scheduler(*flags) as scheduler:
            await asyncio.to_thread(scheduler.ready)
            assert await cluster.lands_on("first") == "one"

            mount.show(scheduler__yaml=PINNED, pin__py=PIN % "two")
            line = await asyncio.to_thread(scheduler.mentions, '"Configuration reloaded" version=2')
            assert 'built="Pin" retired="Pin"' in line
            assert await cluster.lands_on("second") == "two"

            mount.show(scheduler__yaml=PINNED, pin__py="def broken(:")
            line = await asyncio.to_thread(
                scheduler.mentions, "Configuration not reloaded; keeping the last good version"
            )
            assert "mount/pin.py:1" in line
            assert "SyntaxError" in line
            assert await cluster.lands_on("third") == "two"

            mount.show(scheduler__yaml=PINNED.replace("Pin", "Pim"), pin__py=PIN % "two")
            line = await asyncio.to_thread(scheduler.mentions, "not a known plugin")
            assert 'Did you mean \\"Pin\\"?' in line
            assert await cluster.lands_on("fourth") == "two"

            mount.show(scheduler__yaml=HEAD, pin__py=PIN % "two")
            line = await asyncio.to_thread(scheduler.mentions, '"Configuration reloaded" version=3')
            assert 'retired="Pin"' in line

            mount.show(scheduler__yaml=PINNED, pin__py=PIN % "one")
            await asyncio.to_thread(scheduler.mentions, '"Configuration reloaded" version=4')
            assert await cluster.lands_on("fifth") == "one"
            assert await asyncio.to_thread(scheduler.end) == 0

        events = await cluster.events()
        assert [reason for reason, _ in events] == [
            "ConfigurationReloaded",
            "ConfigurationReloadFailed",
            "ConfigurationReloadFailed",
            "ConfigurationReloaded",
            "ConfigurationReloaded",
        ]
        assert "SyntaxError" in events[1][1]
        assert "not a known plugin" in events[2][1]


async def test_a_changed_helper_of_a_plugin_is_noticed_and_what_is_broken_changes_nothing():
    async with a_cluster() as cluster:
        mine = cluster.home / "mine"
        mine.mkdir()
        (mine / "pin.py").write_text("from .helpers import NODE\n" + PIN.replace('"%s"', "NODE"))
        (mine / "helpers.py").write_text('NODE = "one"\n')
        (cluster.home / "scheduler.yaml").write_text(PINNED)
        flags = ("--config=scheduler.yaml", "--plugins=mine/pin.py", "--watch-config", "--reload-plugins")
        with cluster.scheduler(*flags) as scheduler:
            await asyncio.to_thread(scheduler.ready)
            assert await cluster.lands_on("first") == "one"

            (mine / "helpers.py").write_text('NODE = "two"\n')
            line = await asyncio.to_thread(scheduler.mentions, '"Configuration reloaded" version=2')
            assert 'built="Pin" retired="Pin"' in line
            assert await cluster.lands_on("second") == "two"

            (mine / "helpers.py").write_text("\nNODE = \n")
            line = await asyncio.to_thread(
                scheduler.mentions, "Configuration not reloaded; keeping the last good version"
            )
            assert "mine/helpers.py:2" in line
            assert await cluster.lands_on("third") == "two"

            (mine / "helpers.py").write_text('NODE = "one"\n')
            await asyncio.to_thread(scheduler.mentions, '"Configuration reloaded" version=3')
            assert await cluster.lands_on("fourth") == "one"


async def test_a_signal_reloads_the_configuration_once_and_plugin_files_only_if_they_may_be():
    async with a_cluster() as cluster:
        config, plugin = cluster.home / "scheduler.yaml", cluster.home / "pin.py"
        config.write_text(PINNED, encoding="utf-8")
        plugin.write_text(PIN % "one", encoding="utf-8")
        with cluster.scheduler("--config=scheduler.yaml", "--plugins=pin.py") as scheduler:
            await asyncio.to_thread(scheduler.ready)
            plugin.write_text(PIN % "two", encoding="utf-8")
            scheduler.process.send_signal(signal.SIGHUP)
            await asyncio.to_thread(scheduler.mentions, "nothing in it has changed")
            assert await cluster.lands_on("first") == "one"

            config.write_text(HEAD + "profiles: [{schedulerName: default-scheduler}, {schedulerName: extra}]\n")
            scheduler.process.send_signal(signal.SIGHUP)
            line = await asyncio.to_thread(scheduler.mentions, '"Configuration reloaded" version=2')
            assert 'retired="Pin" profilesAdded="extra"' in line

            config.write_text(HEAD.replace("leaderElect: false", "leaderElect: true"))
            scheduler.process.send_signal(signal.SIGHUP)
            line = await asyncio.to_thread(scheduler.mentions, "Configuration not reloaded")
            assert "leaderElection.leaderElect" in line
            assert "restart it" in line
            await cluster.lands_on("second")
            assert await asyncio.to_thread(scheduler.end) == 0


def test_up_follows_its_files_too_and_ends_when_its_terminal_does():
    with private_home() as home:
        (home / "scheduler.yaml").write_text(PINNED, encoding="utf-8")
        (home / "pin.py").write_text(PIN % "node-1", encoding="utf-8")
        flags = ("--config=scheduler.yaml", "--plugins=pin.py", "--watch-config", "--reload-plugins", "--nodes=1")
        with Program("up", *flags, home=home) as up:
            up.ready()
            (home / "pin.py").write_text(PIN % "node-2", encoding="utf-8")
            assert 'built="Pin" retired="Pin"' in up.mentions('"Configuration reloaded" version=2')
            up.process.send_signal(signal.SIGHUP)
            up.ended()


def test_up_reloads_plugins_only_while_it_watches(mooring: Mooring):
    result = mooring("up", "--reload-plugins", "--plugins=pin.py")
    assert result.code == 2
    assert "--reload-plugins\n    needs --watch-config" in result.err


def test_there_must_be_something_to_watch(mooring: Mooring):
    result = mooring("run", "--watch-config")
    assert result.code == 2
    assert "--watch-config\n    there is no file to watch; name one with --config" in result.err


def test_there_must_be_plugin_files_to_reload(mooring: Mooring):
    result = mooring("run", "--watch-config", "--reload-plugins")
    assert result.code == 2
    assert "--reload-plugins\n    there are no plugin files to reload; name them with --plugins" in result.err
