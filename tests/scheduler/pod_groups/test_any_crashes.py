"""Whatever a crash between the bindings of gangs leaves: each gang is bound whole in the end, or holds nothing.

Pods of gangs that were complete before are not evicted, no pod is lost, and evicted ones are created again.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import msgspec
import pytest
from tests.scheduler.pod_groups.scene import GANGS, PREEMPTION, TOPOLOGY, Scene, played

from mooring.base.clock import timestamp
from mooring.framework import Pod
from mooring.testing import a_node_object, a_pod, a_pod_group

TIMEOUT_SECONDS = 300
STEP_SECONDS = 20
"""Longer than any pod backs off, so every gang is tried in each step."""
STEPS = 40


@dataclass
class Gang:
    """A gang and its owner, which creates its pods again."""

    name: str
    least: int
    was_complete: bool
    pods: dict[str, Pod] = field(default_factory=dict)
    evicted: int = 0
    partial_since: float | None = None

    def bound(self) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.spec.node_name]


class World:
    """Gangs on nodes after a crash; other pods come and go."""

    def __init__(self, scene: Scene, chance: random.Random) -> None:
        self._scene, self._chance = scene, chance
        self._free = {f"node-{at}": chance.randint(2, 5) for at in range(chance.randint(1, 4))}
        for name, cpu in self._free.items():
            scene.add(a_node_object(name, cpu=cpu, labels={"rack": "r"}))
        self._capacity = dict(self._free)
        self.gangs = [self._a_gang(at) for at in range(chance.randint(1, 5))]
        self._others: list[Pod] = []

    def _a_gang(self, at: int) -> Gang:
        """Pending, bound in part by a crash a moment ago, or complete once and without some of its pods now."""
        chance, now = self._chance, self._scene.clock.now()
        least = chance.randint(2, 4)
        gang = Gang(f"gang-{at}", least, was_complete=chance.random() < 0.4)
        key = "rack" if self._scene.has_placements and chance.random() < 0.5 else None
        self._scene.add(a_pod_group(gang.name, min_count=least, topology_key=key))
        wanted = chance.randint(0, least - 1)
        size = least if gang.was_complete else least + chance.randint(0, 2)
        started = now - 50 if chance.random() < 0.5 or gang.was_complete else None
        for index in range(size):
            node = next((name for name, free in self._free.items() if free), None) if index < wanted else None
            replaces = gang.was_complete and node is None
            pod = a_pod(
                f"{gang.name}-{index}",
                cpu=1,
                group=gang.name,
                node=node or "",
                priority=chance.choice((0, 5)),
                created=now - (20 if replaces else 100),
            )
            if node is not None:
                self._free[node] -= 1
                status = (
                    pod.status
                    if started is None
                    else msgspec.structs.replace(pod.status, start_time=timestamp(started))
                )
                pod = msgspec.structs.replace(pod, status=status)
            gang.pods[pod.name] = pod
        gang.was_complete &= bool(gang.bound())
        self._scene.add(*gang.pods.values())
        return gang

    async def step(self) -> None:
        chance = self._chance
        if chance.random() < 0.4:
            other = a_pod(f"other-{len(self._scene.known)}", cpu=chance.randint(1, 3), priority=9)
            self._others.append(other)
            self._scene.add(other)
        if self._others and chance.random() < 0.3:
            self._scene.delete(self._others.pop(chance.randrange(len(self._others))))
        await self._scene.passes(seconds=STEP_SECONDS)
        self._confirm()
        self._end_evicted()
        self._check()

    def _confirm(self) -> None:
        """The watch shows what was bound."""
        for name, node in self._scene.bound().items():
            pod = self._scene.known[name]
            if pod.spec.node_name:
                continue
            bound = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
            for gang in self.gangs:
                if name in gang.pods:
                    gang.pods[name] = bound
            self._others = [bound if each.name == name else each for each in self._others]
            self._scene.add(bound)

    def _end_evicted(self) -> None:
        """Pods that were evicted are gone, and those of gangs are created again."""
        deleted = {key.partition("/")[2] for key in self._scene.client.deleted}
        self._scene.client.deleted.clear()
        for gang in self.gangs:
            for name in sorted(deleted & gang.pods.keys()):
                if self._scene.client.disrupted[name][1].endswith("pods bound"):
                    gang.evicted += 1
                self._scene.delete(gang.pods.pop(name))
                new = a_pod(f"{name}+", cpu=1, group=gang.name, created=self._scene.clock.now())
                gang.pods[new.name] = new
                self._scene.add(new)

    def _check(self) -> None:
        now = self._scene.clock.monotonic()
        used = Counter[str](each.spec.node_name for each in self._others for _ in range(_cpus(each)))
        for gang in self.gangs:
            bound = gang.bound()
            used.update(pod.spec.node_name for pod in bound)
            for pod in gang.pods.values():
                is_queued = self._scene.where(pod) != "absent"
                assert is_queued != bool(pod.spec.node_name), f"{pod.name} is lost, or queued though it is bound"
            if len(bound) >= gang.least:
                gang.was_complete = True
            if not bound or gang.was_complete:
                gang.partial_since = None
            elif gang.partial_since is None:
                gang.partial_since = now
            else:
                assert now - gang.partial_since <= TIMEOUT_SECONDS + 2 * STEP_SECONDS, (
                    f"{gang.name} stays bound in part"
                )
        for node in self._scene.core.state.nodes:
            assert node.requested("cpu") == 1000 * used[node.name] <= 1000 * self._capacity[node.name]


def _cpus(pod: Pod) -> int:
    return int(str(pod.spec.containers[0].resources.requests["cpu"]))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("gates", [GANGS, TOPOLOGY, PREEMPTION], ids=["gangs", "topology", "preemption"])
def test_no_gang_stays_bound_in_part_after_a_crash(gates, seed):
    """And none that was complete before is evicted for want of a pod."""

    async def story(scene: Scene) -> None:
        world = World(scene, random.Random(seed))
        complete_before = [gang for gang in world.gangs if gang.was_complete]
        await scene.run()
        for _ in range(STEPS):
            await world.step()
        assert [gang.name for gang in complete_before if gang.evicted] == []

    played(gates, story)
