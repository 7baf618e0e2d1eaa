"""A scheduler that is killed between the bindings of a gang: after a restart the gang is whole, or holds nothing.

No pod is lost, none is bound twice, and what the gang does not use is free for others.
"""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.clusters import Placed, a_server, create_node
from tests.cli.held_bindings import HeldBindings
from tests.cli.programs import Program, private_home

from mooring.client import ApiClient
from mooring.framework.definitions import definition_of
from mooring.objects import Kind, Pod
from mooring.objects.pod_groups import PodGroup
from mooring.plugins.community.coscheduling.pod_groups import GROUP_LABEL, CoschedulingGroup

DEFINITION = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
NODES = ("one", "two")
SIZE = 4
"""Pods of a gang: as many as run on a node."""
FEATURES = ("GenericWorkload", "GangScheduling")
GATES = "--feature-gates=" + ",".join(f"{name}=true" for name in FEATURES)
CONFIGURATION = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": False},
    "clientConnection": {"kubeconfig": "k"},
}
POINTS = {
    "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
    "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
    "postFilter": {
        "enabled": [{"name": "Coscheduling"}, {"name": "DefaultPreemption"}],
        "disabled": [{"name": "*"}],
    },
}
IMPATIENT = [{"name": "GangScheduling", "args": {"partialGroupTimeoutSeconds": 1}}]


class World:
    """A cluster of two nodes, and a scheduler that is connected to it by a proxy."""

    def __init__(self, client: ApiClient, placed: Placed, bindings: HeldBindings, home: Path, is_in_tree: bool) -> None:
        self.client, self.placed, self.bindings = client, placed, bindings
        self._home, self._is_in_tree = home, is_in_tree

    def scheduler(self, *, is_impatient: bool = False) -> Program:
        """`is_impatient`: a gang that is bound in part is evicted after a second. One of Coscheduling always is."""
        if not self._is_in_tree:
            return Program("run", "--config=coscheduling.yaml", home=self._home)
        configuration = "impatient.yaml" if is_impatient else "in-tree.yaml"
        return Program("run", f"--config={configuration}", GATES, home=self._home)

    async def create_gang(self) -> None:
        spec: dict[str, Any]
        if self._is_in_tree:
            spec = {"schedulingPolicy": {"gang": {"minCount": SIZE}}}
            await self.client.create(PodGroup.KIND, {"metadata": {"name": "gang"}, "spec": spec}, "default")
        else:
            spec = {"minMember": SIZE, "scheduleTimeoutSeconds": 1}
            await self.client.create(CoschedulingGroup.KIND, {"metadata": {"name": "gang"}, "spec": spec}, "default")
        for at in range(SIZE):
            await self.create_pod(f"gang-{at}", in_gang=True)

    async def create_pod(self, name: str, *, cpu: str = "1", in_gang: bool = False, node: str = "") -> None:
        resources = {"requests": {"cpu": cpu}}
        containers = [{"name": "main", "image": "pause", "resources": resources}]
        spec: dict[str, Any] = {"containers": containers, "terminationGracePeriodSeconds": 0}  # there is no kubelet
        labels = {}
        if node:
            spec["nodeName"] = node
        if in_gang and self._is_in_tree:
            spec["schedulingGroup"] = {"podGroupName": "gang"}
        elif in_gang:
            labels[GROUP_LABEL] = "gang"
        await self.client.create(Pod.KIND, {"metadata": {"name": name, "labels": labels}, "spec": spec}, "default")

    async def killed_after(self, bound: int) -> None:
        """A scheduler binds so many pods of the gang, does not learn of the last one, and is killed."""
        self.bindings.execute_only(bound)
        with self.scheduler() as scheduler:
            await asyncio.to_thread(scheduler.ready)
            await self.create_gang()
            await self.bindings.until_held(executed=bound, held=SIZE - max(0, bound - 1))
            assert await asyncio.to_thread(scheduler.end, signal.SIGKILL) == -signal.SIGKILL
        self.bindings.execute_all()
        assert len(self.bindings.executed) == bound

    async def until_bound(self) -> None:
        for name in await self.pods():
            await self.placed.on(name)

    async def left(self) -> dict[str, int]:
        """CPUs of each node that no pod requests."""
        used: Counter[str] = Counter()
        for pod in (await self.pods()).values():
            requests = pod["spec"]["containers"][0]["resources"]["requests"]
            used[pod["spec"].get("nodeName", "")] += int(requests["cpu"])
        return {name: SIZE - used[name] for name in NODES if used[name] < SIZE}

    async def pods(self) -> dict[str, dict[str, Any]]:
        return {pod["metadata"]["name"]: pod for pod in await self.client.list(Pod.KIND, "default")}


@asynccontextmanager
async def a_world(*, in_tree: bool) -> AsyncIterator[World]:
    async with a_server(FEATURES) as (server, client, placed), HeldBindings(server) as bindings:
        with private_home() as home:
            (home / "k").write_text(bindings.kubeconfig_text(), encoding="utf-8")
            (home / "in-tree.yaml").write_text(yaml.safe_dump(CONFIGURATION), encoding="utf-8")
            for name, profile in (("coscheduling", {"plugins": POINTS}), ("impatient", {"pluginConfig": IMPATIENT})):
                profiles = [{"schedulerName": "default-scheduler", **profile}]
                text = yaml.safe_dump(CONFIGURATION | {"profiles": profiles})
                (home / f"{name}.yaml").write_text(text, encoding="utf-8")
            await client.create(DEFINITION, definition_of(CoschedulingGroup))
            for name in NODES:
                await create_node(client, name)
            yield World(client, placed, bindings, home, in_tree)


@pytest.mark.parametrize("bound", [0, 1, SIZE - 1])
@pytest.mark.parametrize("in_tree", [True, False], ids=["PodGroup", "Coscheduling"])
async def test_a_gang_is_completed_after_a_crash_between_its_bindings(in_tree, bound):
    async with a_world(in_tree=in_tree) as world:
        await world.killed_after(bound)
        with world.scheduler() as scheduler:
            await asyncio.to_thread(scheduler.ready)
            await world.until_bound()
            # The gang holds what its pods request, and nothing else: pods fit that fill the nodes to the last CPU.
            for left in sorted((await world.left()).values(), reverse=True):
                await world.create_pod(f"rest-{left}-{len(await world.pods())}", cpu=str(left))
                await world.until_bound()
            assert await world.left() == {}
            assert await asyncio.to_thread(scheduler.end) == 0
        assert max(Counter(world.bindings.executed).values()) == 1, "no pod is bound twice"
        assert len(await world.pods()) == len(world.bindings.executed), "no pod is lost"


@pytest.mark.parametrize("in_tree", [True, False], ids=["PodGroup", "Coscheduling"])
async def test_a_gang_that_cannot_be_completed_after_a_crash_is_released(in_tree):
    """Its room was taken meanwhile: after the time-out the bound pods are evicted, and the gang is tried as a whole."""
    async with a_world(in_tree=in_tree) as world:
        await world.killed_after(2)
        bound = set(world.bindings.executed)
        for name, left in (await world.left()).items():
            await world.create_pod(f"other-{name}", cpu=str(left), node=name)
        with world.scheduler(is_impatient=True) as scheduler:
            await asyncio.to_thread(scheduler.ready)
            await world.placed.without(bound)
            pods = await world.pods()
            others = {f"gang-{at}" for at in range(SIZE)} - bound
            assert others == {name for name in pods if name.startswith("gang-")}, "those not bound are not lost"
            assert not any(pods[name]["spec"].get("nodeName") for name in others), "none of them is bound alone"
            # The owner of the gang creates its pods again. Once there is room, all of it is bound.
            for name in bound:
                await world.create_pod(f"{name}-again", in_gang=True)
            for name in pods.keys() - others:
                await world.client.delete(Pod.KIND, name, "default", grace_seconds=0)
            await world.until_bound()
            assert await asyncio.to_thread(scheduler.end) == 0
        assert len(await world.pods()) == SIZE


async def test_the_rest_of_a_gang_waits_for_room_after_a_crash():
    """Until the time-out bound pods stay. The others are not bound in part, and complete the gang when they fit."""
    async with a_world(in_tree=True) as world:
        await world.killed_after(2)
        for name, left in (await world.left()).items():
            await world.create_pod(f"other-{name}", cpu=str(left), node=name)
        with world.scheduler() as scheduler:
            await asyncio.to_thread(scheduler.ready)
            await world.placed.refused({f"gang-{at}" for at in range(SIZE)} - set(world.bindings.executed))
            assert len(world.bindings.executed) == 2
            for name in NODES:
                if f"other-{name}" in await world.pods():
                    await world.client.delete(Pod.KIND, f"other-{name}", "default", grace_seconds=0)
            await world.until_bound()
            assert await asyncio.to_thread(scheduler.end) == 0
        assert sorted(world.bindings.executed) == [f"gang-{at}" for at in range(SIZE)]
