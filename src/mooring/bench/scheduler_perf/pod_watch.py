"""The pods of the cluster as a watch brings them: which are scheduled, and which were attempted at least once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from typing import Literal

import msgspec

from mooring.client import ApiClient, Reflector
from mooring.objects.meta import KubeObject
from mooring.objects.object_store import Present
from mooring.objects.wire import Wire

Stage = Literal["scheduled", "attempted"]


class _Spec(Wire):
    node_name: str = ""


class _Condition(Wire):
    type: str = ""


class _Status(Wire):
    conditions: list[_Condition] = []


class WatchedPod(KubeObject, version="v1", kind="Pod", plural="pods"):
    """The few fields that are read here."""

    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def is_scheduled(self) -> bool:
        return bool(self.spec.node_name)

    @property
    def is_attempted(self) -> bool:
        """A scheduler has looked at it: it has a node or a condition about scheduling."""
        return self.is_scheduled or any(each.type == "PodScheduled" for each in self.status.conditions)


_HAS_REACHED: dict[Stage, Callable[[WatchedPod], bool]] = {
    "scheduled": attrgetter("is_scheduled"),
    "attempted": attrgetter("is_attempted"),
}


class StageCount:
    """How many pods of a namespace have reached a stage, and when so many have as are wanted."""

    def __init__(self, namespace: str, selector: Mapping[str, str], stage: Stage, wanted: int) -> None:
        self._namespace, self._selector, self._has_reached = namespace, selector, _HAS_REACHED[stage]
        self._wanted = wanted
        self.reached = 0
        self.all: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done once all of them have."""

    def update(self, before: WatchedPod | None, after: WatchedPod | None) -> None:
        """The pod was as `before` and is as `after`; None: it was not or is not there."""
        self.reached += self._counts(after) - self._counts(before)
        if self.reached >= self._wanted and not self.all.done():
            self.all.set_result(None)

    def _counts(self, pod: WatchedPod | None) -> bool:
        return (
            pod is not None
            and pod.namespace == self._namespace
            and self._has_reached(pod)
            and self._selector.items() <= pod.labels.items()
        )


class PodWatch:
    """Pods by namespace, counts of them, and functions that are called with every pod that gets its node.

    `is_of_scheduled`: the watch brings no pod before it has a node. The API server sends half as many events then, and
    the benchmark takes less CPU time from the scheduler.
    """

    def __init__(self, *, is_of_scheduled: bool = False) -> None:
        self._field_selector = "spec.nodeName!=" if is_of_scheduled else ""
        self._pods: dict[str, dict[str, WatchedPod]] = {}
        self._handlers: list[Callable[[WatchedPod], None]] = []
        self._counts: list[StageCount] = []

    def reflector(self, client: ApiClient) -> Reflector[WatchedPod]:
        return Reflector(client, WatchedPod, self, field_selector=self._field_selector)

    def on_scheduled(self, handler: Callable[[WatchedPod], None]) -> Callable[[], None]:
        """Call it with every pod that gets a node from now on. Returns what ends that."""
        self._handlers.append(handler)
        return lambda: self._handlers.remove(handler)

    @contextmanager
    def counting(self, namespace: str, selector: Mapping[str, str], stage: Stage, wanted: int) -> Iterator[StageCount]:
        """A count that is kept up to date within the block."""
        count = StageCount(namespace, selector, stage, wanted)
        count.update(None, None)
        for pod in self._pods.get(namespace, {}).values():
            count.update(None, pod)
        self._counts.append(count)
        try:
            yield count
        finally:
            self._counts.remove(count)

    # The feed of the reflector

    def found(self, pod: WatchedPod, /) -> None:
        self.changed(pod)

    def listed(self, present: Present, /) -> None:
        for pod in [pod for pods in self._pods.values() for pod in pods.values() if pod.key not in present]:
            self.deleted(pod)

    def changed(self, pod: WatchedPod, /) -> None:
        pods = self._pods.setdefault(pod.namespace, {})
        before = pods.get(pod.name)
        pods[pod.name] = pod
        if pod.is_scheduled and (before is None or before.uid != pod.uid or not before.is_scheduled):
            for handler in self._handlers:
                handler(pod)
        for count in self._counts:
            count.update(before, pod)

    def deleted(self, pod: WatchedPod, /) -> None:
        before = self._pods.get(pod.namespace, {}).pop(pod.name, None)
        for count in self._counts:
            count.update(before, None)


class ScheduledCounter:
    """How many pods of some namespaces got a node, and when the first and the last of them did."""

    def __init__(self, namespaces: Collection[str], selector: Mapping[str, str], now: Callable[[], float]) -> None:
        self._namespaces, self._selector, self._now = frozenset(namespaces), dict(selector), now
        self.count = 0
        self.first = self.last = 0.0

    def __call__(self, pod: WatchedPod) -> None:
        if pod.namespace in self._namespaces and self._selector.items() <= pod.labels.items():
            self.last = self._now()
            self.first = self.first or self.last
            self.count += 1
