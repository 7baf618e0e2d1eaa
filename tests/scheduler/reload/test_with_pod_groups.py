"""While the members of a gang are tried, plugins are awaited: the next version waits for the end of the trial."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from tests.scheduler.pod_groups.scene import GANGS, Scene, members, played

from mooring.config import load_configuration
from mooring.framework import Cycle, NodeView, Plugin, Pod
from mooring.plugins.catalogue import catalogue
from mooring.testing import a_node_object, a_pod_group

WITHOUT_PLUGIN = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: default-scheduler}, {schedulerName: other}]
"""


class SlowUnreserve(Plugin):
    """Its `unreserve` waits, as one that writes to a server does."""

    begun: ClassVar[asyncio.Event]
    may_end: ClassVar[asyncio.Event]
    seen: ClassVar[list[str]]

    def reserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None: ...

    async def unreserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        self.begun.set()
        await self.may_end.wait()
        self.seen.append(f"unreserve {pod.name}")

    async def stop(self) -> None:
        self.seen.append("stop")


async def _at_once(_seconds: float) -> None: ...


def test_a_plugin_at_work_in_the_trial_of_a_gang_is_stopped_after_its_end(monkeypatch):
    async def story(scene: Scene) -> None:
        monkeypatch.setattr(scene.core.informers, "follow", lambda: None)  # there is no server to watch
        monkeypatch.setattr(scene.core.informers, "settled", _at_once)
        SlowUnreserve.begun, SlowUnreserve.may_end, SlowUnreserve.seen = asyncio.Event(), asyncio.Event(), []
        scene.add(a_node_object("a", cpu="3"), a_pod_group("gang", min_count=2), *members(2))
        for instance in scene.core.assembly.current.instances.values():
            await scene.scheduler.lifecycle.start(instance)
        trying = asyncio.create_task(scene.run_one())
        await SlowUnreserve.begun.wait()
        registry = catalogue()
        after = load_configuration(WITHOUT_PLUGIN, source="after", registry=registry).configuration
        adopting = asyncio.create_task(scene.scheduler.adopt(after, registry))
        for _ in range(100):
            await asyncio.sleep(0)
        assert (scene.scheduler.version, SlowUnreserve.seen) == (1, [])
        SlowUnreserve.may_end.set()
        await asyncio.gather(trying, adopting)
        await scene.run()
        for _ in range(100):
            await asyncio.sleep(0)
        assert scene.scheduler.version == 2
        assert SlowUnreserve.seen == ["unreserve gang-1", "unreserve gang-0", "stop"]
        assert sorted(scene.bound()) == ["gang-0", "gang-1"]

    played(GANGS, story, SlowUnreserve)
