"""Whatever gangs come and go: none is bound in part, no pod is lost, and what failed holds nothing."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest
from tests.scheduler.pod_groups.scene import GANGS, PREEMPTION, TOPOLOGY, Scene

from mooring.objects import Pod
from mooring.objects.pod_groups import PodGroup
from mooring.testing import a_node_object, a_pod, a_pod_group

STEPS = 25


async def history(scene: Scene, chance: random.Random) -> None:
    gangs: dict[str, tuple[int, list[Pod]]] = {}
    for at in range(chance.randint(1, 5)):
        scene.add(a_node_object(f"node-{at}", cpu=chance.randint(1, 6), labels={"rack": f"r{at % 2}"}))
    for step in range(STEPS):
        name, size = f"gang-{step}", chance.randint(1, 5)
        least = chance.randint(1, size)
        key = "rack" if scene.has_placements and chance.random() < 0.5 else None
        pods = [a_pod(f"{name}-{at}", cpu=1, group=name, priority=chance.randint(0, 9)) for at in range(size)]
        group = a_pod_group(name, min_count=least, topology_key=key, priority=chance.randint(0, 9))
        objects: list[PodGroup | Pod] = [group, *pods]
        chance.shuffle(objects)
        gangs[name] = (least, pods)
        for each in objects:
            scene.add(each)
            if chance.random() < 0.3:
                await scene.run()
        await scene.run()
        if chance.random() < 0.4:
            delete_one(scene, gangs, chance)
        scene.clock.advance(seconds=chance.choice((1, 30)))
        scene.core.queue.flush()
        await scene.run()
        check(scene, gangs)


def delete_one(scene: Scene, gangs: dict[str, tuple[int, list[Pod]]], chance: random.Random) -> None:
    """A whole gang goes: deleting one pod of it leaves a gang that was bound whole and is smaller now."""
    _, pods = gangs.pop(chance.choice(sorted(gangs)))
    for pod in pods:
        scene.core.pods.deleted(pod)
        scene.client.bound.pop(pod.key, None)


def check(scene: Scene, gangs: dict[str, tuple[int, list[Pod]]]) -> None:
    used: Counter[str] = Counter()
    for least, pods in gangs.values():
        bound = [pod for pod in pods if pod.key in scene.client.bound]
        assert not bound or len(bound) >= least, "a gang is bound in part"
        used.update(scene.client.bound[pod.key] for pod in bound)
        for pod in pods:
            assert (pod in bound) != (scene.where(pod) != "absent"), f"{pod.key} is lost, or queued though it is bound"
    assert not list(scene.core.room)
    for node in scene.core.state.nodes:
        assert node.requested("cpu") == 1000 * used[node.name], "a pod that is not bound holds resources"


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("gates", [GANGS, TOPOLOGY, PREEMPTION], ids=["gangs", "topology", "preemption"])
def test_gangs_are_bound_whole_or_hold_nothing(gates, seed):
    """G18, G21: over random arrivals, deletions and retries."""

    async def run() -> None:
        scene = Scene(gates)
        try:
            await history(scene, random.Random(seed))
        finally:
            await scene.close()

    asyncio.run(run())
