"""A plugin file that changed, in a running scheduler: the new code decides, and nothing is left of the old."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

from tests.scheduler.churn import until
from tests.scheduler.conftest import Live, a_configuration, a_live_scheduler, a_profile
from tests.scheduler.reload.changes import the

from mooring.config import load_configuration
from mooring.plugins.catalogue import catalogue

CODE = """
from mooring.framework import Args, Background, Cycle, NodeView, Objects, Plugin, Pod, Rejection
from mooring.objects.storage import PersistentVolume

class PinnedArgs(Args):
    reason: str = "node(s) were not the one"

class Pinned(Plugin):
    def __init__(self, args: PinnedArgs, volumes: Objects[PersistentVolume], background: Background) -> None:
        self._reason = args.reason
        self._by_name = volumes.indexed(lambda volume: [volume.name])
        self._background = background

    async def start(self) -> None:
        self._background.every(1, self._look)

    async def _look(self) -> None:
        self._by_name.at("x")

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        return None if node.name == "NODE" else Rejection(self._reason)
"""
CONFIG = a_configuration(a_profile("default-scheduler", plugins=["Pinned", "Steady"]))


async def reloaded(live: Live, folder: Path) -> None:
    registry = catalogue()
    registry.add_path(str(folder))
    configuration = load_configuration(CONFIG, source="new.yaml", registry=registry).configuration
    await live.scheduler.adopt(configuration, registry)


async def test_the_new_code_decides_the_other_files_plugins_stay_and_the_old_class_goes(server, tmp_path):
    (tmp_path / "pinned_here.py").write_text(CODE.replace("NODE", "one"))
    (tmp_path / "steady_here.py").write_text(CODE.replace("Pinned", "Steady").replace('== "NODE"', "!= ''"))
    async with a_live_scheduler(server, CONFIG, [str(tmp_path)]) as live:
        await live.node("one")
        await live.node("two")
        await live.pod("first")
        assert await live.bound("first") == ["one"]
        steady = the(live, "Steady")

        (tmp_path / "pinned_here.py").write_text(CODE.replace("NODE", "two"))
        await reloaded(live, tmp_path)
        await live.pod("second")
        assert await live.bound("second") == ["two"]
        assert the(live, "Steady") is steady

        # Of the first version, the code that started the scheduler may still hold the registry.
        old = weakref.ref(type(the(live, "Pinned")))
        (tmp_path / "pinned_here.py").write_text(CODE.replace("NODE", "one"))
        await reloaded(live, tmp_path)
        await live.pod("third")
        assert await live.bound("third") == ["one"]

        counted = (
            'scheduler_plugin_evaluation_total{extension_point="Filter",plugin="Pinned",profile="default-scheduler"}'
        )
        [line] = [line for line in live.scheduler.metrics.text().decode().splitlines() if line.startswith(counted)]
        assert line.endswith(" 3.0")

        def is_gone() -> bool:
            gc.collect()
            return old() is None

        await until(is_gone, lambda: f"still held by {[type(each) for each in gc.get_referrers(old())]}")
