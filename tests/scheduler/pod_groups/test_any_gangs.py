"""Whatever gangs come and go: none is bound in part, no pod is lost, and what failed holds nothing."""

from __future__ import annotations

import random
from collections import Counter
from typing import ClassVar

import pytest
from tests.scheduler.pod_groups.scene import GANGS, PREEMPTION, TOPOLOGY, Scene, played

from mooring.framework import Cycle, NodeView, Plugin, Refusal
from mooring.objects import Pod
from mooring.objects.pod_groups import PodGroup
from mooring.plugins.default.gang_scheduling import WAIT_SECONDS
from mooring.testing import a_node_object, a_pod, a_pod_group

STEPS = 25


class Unlucky(Plugin):
    """Refuses some pods at Reserve, though they fitted when they were tried."""

    chance: ClassVar[random.Random]
    share: ClassVar[float]

    def reserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        is_refused = not cycle.is_trial and self.chance.random() < self.share
        return Refusal("taken by another pod meanwhile") if is_refused else None


async def history(scene: Scene, chance: random.Random, *, is_waiting_allowed: bool = False) -> None:
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
        await scene.passes(seconds=chance.choice((1, 30)))
        check(scene, gangs, is_waiting_allowed=is_waiting_allowed)
    if is_waiting_allowed:
        Unlucky.share = 0.0
        await scene.passes(seconds=WAIT_SECONDS + 1)
        check(scene, gangs)


def delete_one(scene: Scene, gangs: dict[str, tuple[int, list[Pod]]], chance: random.Random) -> None:
    """A whole gang goes: deleting one pod of it leaves a gang that was bound whole and is smaller now."""
    _, pods = gangs.pop(chance.choice(sorted(gangs)))
    scene.delete(*pods)


def check(scene: Scene, gangs: dict[str, tuple[int, list[Pod]]], *, is_waiting_allowed: bool = False) -> None:
    used: Counter[str] = Counter()
    for least, pods in gangs.values():
        bound = [pod for pod in pods if pod.key in scene.client.bound]
        assert not bound or len(bound) >= least, "a gang is bound in part"
        used.update(scene.client.bound[pod.key] for pod in bound)
        for pod in pods:
            assert (pod in bound) != (scene.where(pod) != "absent"), f"{pod.key} is lost, or queued though it is bound"
    waiting = {each.pod.uid: each.node for each in scene.core.room}
    assert is_waiting_allowed or not waiting, "a gang that failed holds nodes"
    used.update(waiting.values())
    for node in scene.core.state.nodes:
        assert node.requested("cpu") == 1000 * used[node.name], "a pod that is not bound holds resources"


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("gates", [GANGS, TOPOLOGY, PREEMPTION], ids=["gangs", "topology", "preemption"])
def test_gangs_are_bound_whole_or_hold_nothing(gates, seed):
    """G18, G21: over random arrivals, deletions and retries."""

    async def story(scene: Scene) -> None:
        await history(scene, random.Random(seed))

    played(gates, story)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("releases", [True, False], ids=["released", "as upstream"])
def test_gangs_of_which_pods_fail_at_reserve_are_bound_whole_or_hold_nothing(releases, seed):
    """G23, G29: pods that wait are released with the one that fails; as upstream when their time is up."""

    async def story(scene: Scene) -> None:
        Unlucky.chance, Unlucky.share = random.Random(seed), 0.3
        await history(scene, random.Random(seed), is_waiting_allowed=not releases)

    played(GANGS, story, Unlucky, args={"GangScheduling": {"releaseWaitingPods": releases}})
