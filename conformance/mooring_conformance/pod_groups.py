"""Cases of pod groups: the whole scheduler, with its queue and its cycles, against a cluster that only records.

All objects are there from the start; then cycles run until the active queue is empty. Of what the scheduler writes only
a PodGroup's condition comes back to it: an evicted pod stays, and a bound one stays assumed. Backoff never ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from mooring.base.clock import ManualClock
from mooring.base.log import configure, settings
from mooring.client import ApiClient, Connection
from mooring.client.api import Document, PatchForm
from mooring.config import load_configuration
from mooring.framework import Cycle, NodeView, Plugin, Pod
from mooring.framework.gates import read_gates
from mooring.framework.registry import Registry
from mooring.objects import Kind
from mooring.objects.core import ObjectReference
from mooring.objects.pod_groups import POD_GROUP_SCHEDULED, Condition, PodGroup
from mooring.plugins.catalogue import catalogue
from mooring.queue import Place
from mooring.scheduler.cycle.reporting import Reporter
from mooring.scheduler.watching.feeds import NodeFeed
from mooring.scheduler.wiring import Core, build_core, cluster_executor, complete
from mooring_conformance.cases import Case
from mooring_conformance.comparing import Difference
from mooring_conformance.situation import parts_of

MOST_CYCLES = 20
HIGHEST = 100
PARTS = ("gated", "cycles", "bound", "failed", "deleted", "waiting", "groups", "backoff", "unschedulable")

Json = dict[str, Any]


class NodeOrder(Plugin):
    """The first node by name gets 100, the second 99: so that no choice is left to chance."""

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return HIGHEST - sum(other.name < node.name for other in cycle.nodes)


class RecordingClient(ApiClient):
    """Records writes. Only what is written to PodGroups comes back."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(Connection(server="https://recorded.invalid", source="a recorded case"), clock=clock)
        self.bound: dict[str, str] = {}
        self.deleted: list[str] = []
        self.failed: dict[str, Json] = {}
        self.groups: dict[str, Json] = {}
        self.nominated: list[str] = []
        """Pods whose nomination alone was patched."""
        self.core: Core | None = None

    async def bind(
        self,
        namespace: str,
        name: str,
        uid: str,
        node: str,
        *,
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        self.bound[f"{namespace}/{name}"] = node

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        grace_seconds: int | None = None,
        uid: str | None = None,
    ) -> None:
        self.deleted.append(f"{namespace}/{name}")

    async def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str | None,
        body: Any,
        *,
        subresource: str | None = None,
        form: PatchForm = "strategic",
    ) -> Document:
        status = body["status"]
        if "conditions" not in status:
            self.nominated.append(f"{namespace}/{name}")
        for condition in status.get("conditions", ()):
            what = {each: condition[each] for each in ("status", "reason", "message")}
            if kind == PodGroup.KIND and condition["type"] == POD_GROUP_SCHEDULED:
                self.groups[f"{namespace}/{name}"] = what
                self._show(name, namespace or "", condition)
            elif condition["type"] == "PodScheduled" and what.pop("status") == "False":
                self.failed[f"{namespace}/{name}"] = what | {"nominatedNode": status.get("nominatedNodeName")}
        return {}

    def _show(self, name: str, namespace: str, condition: Json) -> None:
        assert self.core is not None
        store = self.core.informers.store(PodGroup)
        group = store.get(name, namespace)
        assert group is not None
        written = Condition(
            type=condition["type"],
            status=condition["status"],
            reason=condition["reason"],
            message=condition["message"],
        )
        version = str(int(group.metadata.resource_version or "0") + 1)
        metadata = msgspec.structs.replace(group.metadata, resource_version=version)
        others = [each for each in group.status.conditions if each.type != written.type]
        group_status = msgspec.structs.replace(group.status, conditions=(*others, written))
        store.changed(msgspec.structs.replace(group, metadata=metadata, status=group_status))


class ConditionReporter(Reporter):
    """Writes conditions, and no events."""

    def scheduled(self, pod: Pod, node: str) -> None: ...

    def failed(self, pod: Pod, message: str) -> None: ...

    def preempted(self, victim: ObjectReference, note: str, *, scheduler_name: str) -> None: ...


def pod_group_differences(case: Case, expect: Json) -> Iterator[Difference]:
    """Where our outcome differs from each that was recorded; from the nearest of them."""
    ours = our_outcome(case)
    by_outcome = [list(_differences(ours, theirs)) for theirs in expect["outcomes"]]
    yield from min(by_outcome, key=len)


def _differences(ours: Json, theirs: Json) -> Iterator[Difference]:
    for part in PARTS:
        mine, other = ours[part], theirs.get(part) or type(ours[part])()
        if part == "deleted":
            other = sorted(set(other))
        elif part in ("backoff", "unschedulable") and ours["deleted"]:
            continue  # while evictions run, PreEnqueue gates the pods they are for: when they end is chance
        if isinstance(mine, dict) and isinstance(other, dict):
            for key in sorted({*mine, *other}):
                if mine.get(key) != other.get(key):
                    yield Difference(part, key, mine.get(key), other.get(key))
        elif mine != other:
            yield Difference(part, "", mine, other)


def our_outcome(case: Case) -> Json:
    """What our scheduler does with the case."""
    before = settings().verbosity
    configure(verbosity=-1)
    try:
        return asyncio.run(_run(case))
    finally:
        configure(verbosity=before)


def _registry() -> Registry:
    registry = catalogue()
    registry.add(NodeOrder, "example")
    return registry


async def _run(case: Case) -> Json:
    gates = read_gates(f"{name}={str(value).lower()}" for name, value in (case.feature_gates or {}).items()).gates
    registry, clock = _registry(), ManualClock()
    text = bytes(case.config).decode()
    configuration = load_configuration(text, source=case.name, registry=registry, gates=gates).configuration
    client = RecordingClient(clock)
    names = [profile.scheduler_name for profile in configuration.profiles]
    core = build_core(
        client, configuration, registry, clock=clock, gates=gates, reporter=ConditionReporter(client, clock, names)
    )
    core.queue.set_profiles(core.assembly.current.rules, initial_backoff_seconds=1000.0, max_backoff_seconds=1000.0)
    client.core = core
    scheduler = complete(core, cluster_executor(core), is_explained=False)
    try:
        _load(core, case)
        gated = _keys(core, Place.GATED)
        cycles = 0
        while core.queue.counts()["active"] and cycles < MOST_CYCLES:
            queued = core.queue.pop()
            assert queued is not None
            await scheduler.cycle.schedule_one(queued)
            cycles += 1
            await settle()
        outcome = {
            "gated": gated,
            "cycles": cycles,
            "bound": client.bound,
            "failed": client.failed,
            "deleted": sorted(set(client.deleted)),
            "waiting": sorted(waiting.pod.key for waiting in core.room),
            "groups": client.groups,
            "backoff": _keys(core, Place.BACKOFF),
            "unschedulable": _keys(core, Place.UNSCHEDULABLE, Place.GATED),
        }
    finally:
        await scheduler.shutdown.run()
    return outcome


def _load(core: Core, case: Case) -> None:
    parts = parts_of(case)
    nodes = NodeFeed(core.state, core.queue)
    for node in parts.nodes:
        nodes.found(node)
    core.informers.preload(lambda kind: [item for item in parts.others if isinstance(item, kind)])
    for pod in parts.pods:
        core.pods.found(pod)


def _keys(core: Core, *places: Place) -> list[str]:
    return sorted(queued.pod.key for queued in core.queue.pending() if queued.place in places)


async def settle() -> None:
    """Until everything that was started beside the loop has run: nothing here takes time."""
    for _ in range(50):
        await asyncio.sleep(0)
