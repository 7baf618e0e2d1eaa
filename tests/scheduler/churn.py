"""A scheduler under churn: pods and nodes change while its plugins reject, raise and wait at every point.

`churn(server, seed=…, count=…)` runs it and checks, in the end, what must hold whatever happened: every pod of ours is
bound once or waits with a reason, no node is overcommitted, state and queue hold what the API server holds, nothing is
left running. What is done and what goes wrong follows from the seed; how it interleaves does not.
"""

from __future__ import annotations

import asyncio
import random
import time
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from tests.scheduler.conftest import PATIENCE_SECONDS, Live, a_configuration, a_live_scheduler, a_profile

from mooring.apiserver import EmbeddedApiServer
from mooring.base.errors import ApiError
from mooring.client import ApiClient, Connection, Reflector
from mooring.framework import Allow, Cycle, NodeView, Plugin, Pod, Refusal, Wait, WaitingPods
from mooring.objects import Kind, Node
from mooring.objects.object_store import Present
from mooring.objects.placed import placed
from mooring.recording import Recorder

ELSEWHERE = "elsewhere"
"""Where another scheduler binds pods; no node has the name, so no node's room is taken."""
ACTORS = 4
NAMES = 40
NODES = 5
NODE_MILLI_CPU = 2_000
PRIORITIES = {"urgent": 10, "vital": 20}
PRIORITY_CLASSES = Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", False)
IN_TIME_OF_NEED = 30
"""How many of a hundred calls of a troubled point go wrong."""


class HurriedClock:
    """The machine's time, but faster: backoffs and permit time-outs pass in milliseconds."""

    SPEED = 50.0

    def __init__(self) -> None:
        self._began, self._then = time.monotonic(), time.time()

    def now(self) -> float:
        return self._then + self.monotonic()

    def monotonic(self) -> float:
        return (time.monotonic() - self._began) * self.SPEED

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self.SPEED)


class Troublemaker(Plugin):
    """Refuses, raises, or waits, as the pod's name and the attempt decide; uids would not follow from the seed."""

    seed = 0
    is_calm = False

    def __init__(self, waiting: WaitingPods) -> None:
        self._waiting = waiting

    def _draw(self, point: str, pod: Pod, cycle: Cycle) -> int:
        """0 … 99; high numbers mean success."""
        if Troublemaker.is_calm:
            return 99
        return zlib.crc32(f"{self.seed}/{pod.name}/{cycle.attempt}/{point}".encode()) % 100

    def _goes_wrong(self, point: str, pod: Pod, cycle: Cycle) -> Refusal | None:
        drawn = self._draw(point, pod, cycle)
        if drawn < IN_TIME_OF_NEED // 3:
            raise RuntimeError(f"{point} broke")
        return Refusal(f"{point} refused") if drawn < IN_TIME_OF_NEED else None

    def reserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        return self._goes_wrong("reserve", pod, cycle)

    async def unreserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        await self._dawdle("unreserve", pod, cycle)
        self._goes_wrong("unreserve", pod, cycle)

    def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> Allow | Wait | Refusal:
        for other in self._waiting:
            drawn = self._draw(f"let in {other.pod.name}", pod, cycle)
            if drawn < 20:
                self._waiting.reject(other.pod.uid, self, "thrown out")
            elif drawn > 60:
                self._waiting.allow(other.pod.uid, self)
        if refusal := self._goes_wrong("permit", pod, cycle):
            return refusal
        drawn = self._draw("wait", pod, cycle)
        return Wait(drawn / 10) if drawn < 50 else Allow()

    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        await self._dawdle("pre_bind", pod, cycle)
        assert node.free("cpu") is not None  # also of a node that is gone
        if self._draw("cancelled", pod, cycle) < 10:
            raise asyncio.CancelledError
        return self._goes_wrong("pre_bind", pod, cycle)

    async def post_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        self._goes_wrong("post_bind", pod, cycle)

    async def _dawdle(self, point: str, pod: Pod, cycle: Cycle) -> None:
        for _ in range(self._draw(f"dawdle in {point}", pod, cycle) % 20):
            await asyncio.sleep(0)


class Witness:
    """Sees every change of a pod: where it was bound, and whether that was right at that moment."""

    def __init__(self) -> None:
        self.nodes: dict[str, set[str]] = {}
        self.wrongs: list[str] = []
        self._pods: dict[str, Pod] = {}

    def found(self, pod: Pod) -> None:
        self.changed(pod)

    def listed(self, present: Present) -> None:
        for uid in self._pods.keys() - set(present.values()):
            del self._pods[uid]

    def changed(self, pod: Pod) -> None:
        before = self._pods.get(pod.uid)
        self._pods[pod.uid] = pod
        node = pod.spec.node_name
        if not node:
            return
        self.nodes.setdefault(pod.uid, set()).add(node)
        if before is not None and not before.spec.node_name and before.is_terminating:
            self.wrongs.append(f"{pod.key} was bound while it was going")
        if node != ELSEWHERE and len(self.nodes[pod.uid]) > 1:
            self.wrongs.append(f"{pod.key} was bound twice: {sorted(self.nodes[pod.uid])}")

    def deleted(self, pod: Pod) -> None:
        self._pods.pop(pod.uid, None)


class Actor:
    """A user of the cluster, acting in no particular order."""

    def __init__(self, client: ApiClient, seed: str) -> None:
        self._client = client
        self._random = random.Random(seed)
        self._actions: dict[Callable[[], Awaitable[Any]], int] = {
            self._create: 40,
            self._label: 15,
            self._open_gate: 8,
            self._delete: 15,
            self._recreate: 8,
            self._bind_elsewhere: 6,
            self._let_go: 4,
            self._add_node: 6,
            self._remove_node: 3,
            self._change_node: 8,
        }

    async def act(self, count: int) -> None:
        for _ in range(count):
            [action] = self._random.choices(list(self._actions), weights=list(self._actions.values()))
            try:
                await action()
            except ApiError as error:
                if error.code not in (404, 409):  # it came or went before us
                    raise
            for _ in range(self._random.randrange(30)):
                await asyncio.sleep(0)

    def _name(self) -> str:
        return f"pod-{self._random.randrange(NAMES)}"

    async def _create(self, name: str | None = None) -> None:
        cpu = f"{self._random.choice([100, 250, 400, 700])}m"
        container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
        spec: dict[str, Any] = {"containers": [container]}
        metadata: dict[str, Any] = {"name": name or self._name()}
        if self._random.random() < 0.3:
            spec["priorityClassName"] = self._random.choice(list(PRIORITIES))
            spec["terminationGracePeriodSeconds"] = self._random.choice([0, 30])
        if self._random.random() < 0.1:
            spec["schedulingGates"] = [{"name": "later"}]
        if self._random.random() < 0.1:
            metadata["finalizers"] = ["example.com/hold"]
        await self._client.create(Pod.KIND, {"metadata": metadata, "spec": spec}, "default")

    async def _label(self) -> None:
        label = {"metadata": {"labels": {"turn": str(self._random.randrange(5))}}}
        await self._client.patch(Pod.KIND, self._name(), "default", label, form="merge")

    async def _open_gate(self) -> None:
        await self._client.patch(Pod.KIND, self._name(), "default", {"spec": {"schedulingGates": None}}, form="merge")

    async def _let_go(self) -> None:
        held = {"metadata": {"finalizers": None}}
        await self._client.patch(Pod.KIND, self._name(), "default", held, form="merge")

    async def _delete(self) -> None:
        grace = 0 if self._random.random() < 0.8 else None
        await self._client.delete(Pod.KIND, self._name(), "default", grace_seconds=grace)

    async def _recreate(self) -> None:
        name = self._name()
        await self._client.delete(Pod.KIND, name, "default", grace_seconds=0)
        await self._create(name)

    async def _bind_elsewhere(self) -> None:
        pod = await self._client.get_as(Pod, self._name(), "default")
        if not pod.spec.node_name:
            await self._client.bind("default", pod.name, pod.uid, ELSEWHERE)

    async def _add_node(self) -> None:
        await self._client.create(Node.KIND, a_node(f"node-{self._random.randrange(NODES)}"))

    async def _remove_node(self) -> None:
        await self._client.delete(Node.KIND, f"node-{self._random.randrange(NODES)}")

    async def _change_node(self) -> None:
        name = f"node-{self._random.randrange(NODES)}"
        change = {
            "metadata": {"labels": {"turn": str(self._random.randrange(5))}},
            "spec": {"unschedulable": self._random.random() < 0.3},
        }
        await self._client.patch(Node.KIND, name, None, change, form="merge")


def a_node(name: str, milli_cpu: int = NODE_MILLI_CPU) -> dict[str, Any]:
    resources = {"cpu": f"{milli_cpu}m", "memory": "64Gi", "pods": "1000"}
    return {"metadata": {"name": name}, "status": {"capacity": resources, "allocatable": resources}}


async def churn(
    server: EmbeddedApiServer, *, seed: int, count: int, lives: int = 2, recorder: Recorder | None = None
) -> None:
    """So many actions, spread over so many lives of the scheduler; the last one is examined. One life is recorded."""
    Troublemaker.seed = seed
    others = asyncio.all_tasks()
    config = a_configuration(a_profile("default-scheduler", plugins=["Troublemaker"]))
    await _make_priorities(server)
    for life in range(1, lives + 1):
        Troublemaker.is_calm = False
        # No flush of the unschedulable: it would hide a pod that no event requeues.
        options: dict[str, Any] = {"clock": HurriedClock(), "max_unschedulable_seconds": 1e9, "recorder": recorder}
        async with a_live_scheduler(server, config, [Troublemaker], **options) as live:
            witness = Witness()
            watching = asyncio.create_task(Reflector(live.client, Pod, witness).run())
            actors = [Actor(live.client, f"{seed}/{life}/{number}") for number in range(ACTORS)]
            share = max(1, count // (lives * ACTORS))
            await asyncio.gather(*(actor.act(share) for actor in actors))
            if life == lives:
                await _calm_down(live, life)
                await Examination(live, witness).passes()
            watching.cancel()
            assert not witness.wrongs, witness.wrongs
    await until(lambda: not _working(asyncio.all_tasks() - others), lambda: f"left: {asyncio.all_tasks() - others}")


async def _make_priorities(server: EmbeddedApiServer) -> None:
    connection = Connection(server=server.url, source="the test", ca_data=server.ca_pem.encode(), token=server.token)
    async with ApiClient(connection) as client:
        for name, value in PRIORITIES.items():
            await client.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})


def _working(tasks: set[asyncio.Task[Any]]) -> list[asyncio.Task[Any]]:
    """Without the server's own, which serve our closed connections for a moment."""
    return [task for task in tasks if "mooring/apiserver" not in repr(task) and "aiohttp/web" not in repr(task)]


async def _calm_down(live: Live, life: int) -> None:
    """Until the plugins do no harm any more, and the scheduler has seen all that the actors did."""
    Troublemaker.is_calm = True
    for entry in live.core.room:
        live.core.room.allow(entry.pod.uid, Troublemaker.name)
    # What the watches bring last comes after all the rest.
    await live.client.create(Node.KIND, a_node(f"last-{life}", milli_cpu=0))
    spec = {"containers": [{"name": "main", "image": "pause"}], "nodeName": ELSEWHERE}
    last = await live.client.create(Pod.KIND, {"metadata": {"name": f"last-{life}"}, "spec": spec}, "default")
    state, uid = live.scheduler.state, last["metadata"]["uid"]
    await until(
        lambda: state.node(f"last-{life}") is not None and state.pod(uid) is not None,
        lambda: "the watches did not bring the last node and the last pod",
    )


async def until(happened: Callable[[], bool], otherwise: Callable[[], str]) -> None:
    """Wait for what no watch shows; time decides only when to lose patience."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        assert time.monotonic() < deadline, otherwise()
        await asyncio.sleep(0.005)


class Examination:
    """What must hold when everything has come to rest."""

    def __init__(self, live: Live, witness: Witness) -> None:
        self._live = live
        self._core = live.core
        self._scheduler = live.scheduler
        self._witness = witness
        self._pods: list[Pod] = []

    async def passes(self) -> None:
        await until(self._is_at_rest, self._restless)
        await self._nothing_drifted()
        self._waits_with_a_reason()
        await self._live.client.create(Node.KIND, a_node("ample", milli_cpu=1_000_000))
        await until(self._all_are_bound, self._restless)
        await until(self._is_at_rest, self._restless)
        await self._nothing_drifted()
        self._waits_with_a_reason()

    def _is_at_rest(self) -> bool:
        scheduler = self._scheduler
        counts = scheduler.queue.counts()
        return not (
            counts["active"]
            or counts["backoff"]
            or list(scheduler.queue.in_flight())
            or len(self._core.bindings)
            or any(True for _ in self._core.room)
            or scheduler.reporter._writers
            or scheduler.reporter._retry_queue
            or len(self._core.preemption)
            or any(pod.assumed_at is not None for pod in scheduler.state._pods.values())
        )

    def _restless(self) -> str:
        scheduler = self._scheduler
        assumed = [pod.key for pod in scheduler.state._pods.values() if pod.assumed_at is not None]
        places = {waiting.pod.key: waiting.place.value for waiting in scheduler.queue.pending()}
        return f"never came to rest: {places}, assumed: {assumed}, under way: {list(self._core.bindings._tasks)}"

    def _all_are_bound(self) -> bool:
        waiting = (waiting.pod for waiting in self._scheduler.queue.pending())
        return all(pod.spec.scheduling_gates or pod.is_terminating for pod in waiting)

    def _nominations_are_theirs(self) -> None:
        """A place is held for waiting pods whose status names it, and for no others."""
        held = self._scheduler.state.nominations
        waiting = {
            pod.uid: pod.status.nominated_node_name or None
            for pod in self._pods
            if not pod.spec.node_name and not pod.spec.scheduling_gates
        }
        assert {uid: held.node_of(uid) for uid in waiting} == waiting
        assert {pod.uid for node in held.nodes for pod in held.at(node)} <= waiting.keys()

    async def _nothing_drifted(self) -> None:
        """State and queue against the API server's lists."""
        scheduler, client = self._scheduler, self._live.client
        nodes = [msgspec.convert(found, Node) for found in await client.list(Node.KIND)]
        self._pods = [msgspec.convert(found, Pod) for found in await client.list(Pod.KIND)]
        self._nominations_are_theirs()
        on_nodes = [pod for pod in self._pods if pod.spec.node_name]
        assert scheduler.state.compare(nodes, map(placed, on_nodes)) == []
        pending = {pod.uid for pod in self._pods if not pod.spec.node_name}
        assert scheduler.state._waiting.keys() == pending
        assert scheduler.pods._waiting.keys() == pending
        assert scheduler.pods._uids == {pod.key: pod.uid for pod in self._pods}
        going = {pod.uid for pod in self._pods if pod.is_terminating}
        assert {waiting.pod.uid for waiting in scheduler.queue.pending()} - going == pending - going
        assert scheduler.reporter._written.keys() <= pending
        assert not self._core.awaiting_kinds
        used: Counter[str] = Counter()
        for pod in on_nodes:
            used[pod.spec.node_name] += pod.requests.amounts.get("cpu", 0)
        too_full = {name: used[name] for name in used if name.startswith("node-") and used[name] > NODE_MILLI_CPU}
        assert not too_full

    def _waits_with_a_reason(self) -> None:
        for pod in self._pods:
            condition = pod.condition("PodScheduled")
            if pod.is_terminating or pod.name.startswith("last-"):
                continue
            assert condition is not None, f"there is no condition on {pod.key}"
            if not pod.spec.node_name:
                assert (condition.status, bool(condition.message)) == ("False", True), pod.key
            elif pod.spec.node_name != ELSEWHERE:
                assert condition.status == "True", f"{pod.key} is bound and its condition is {condition.message}"
