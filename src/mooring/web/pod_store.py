"""The pods of the mirrored cluster, and what the watch shows of decisions about them.

A scheduler's own state keeps short records of placed pods; the page explains any pod, so it keeps the objects.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from mooring.base.clock import timestamp
from mooring.framework import Pod
from mooring.objects.object_store import Present
from mooring.why.pending import refusal

MOST_EVENTS = 2_000
"""So many decisions are known, of all pods together."""
MOST_MESSAGE = 2_048


class PodEvent(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Something that became of a pod: what the page shows as it happens."""

    time: str
    kind: str
    """bound, refused, preempted, arrived or deleted."""
    pod: str
    node: str | None = None
    message: str | None = None

    @property
    def namespace(self) -> str:
        return self.pod.partition("/")[0]


OnEvent = Callable[[PodEvent], None]


class PodStore:
    """A `Feed` of pods. Listeners get what changed after the first list."""

    def __init__(self, now: Callable[[], float], pods: Iterable[Pod] = ()) -> None:
        self._now = now
        self._pods: dict[str, Pod] = {}
        self._by_uid: dict[str, Pod] = {}
        self._pending: dict[str, Pod] = {}
        self.namespaces: Counter[str] = Counter()
        """How many pods each has."""
        self.revision = 0
        self.pending_revision = 0
        """Changes when a pending pod comes, goes or changes."""
        self.events: deque[PodEvent] = deque(maxlen=MOST_EVENTS)
        self.on_event: OnEvent = lambda _event: None
        self._is_listed = False
        for pod in pods:
            self._put(pod)

    # What is read

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[Pod]:
        return iter(self._pods.values())

    def get(self, namespace: str, name: str) -> Pod | None:
        return self._pods.get(f"{namespace}/{name}")

    @property
    def by_uid(self) -> Mapping[str, Pod]:
        return self._by_uid

    @property
    def pending(self) -> Mapping[str, Pod]:
        """Those without a node, by key, the oldest first."""
        return self._pending

    # The feed

    def found(self, pod: Pod) -> None:
        self.changed(pod) if self._is_listed else self._put(pod)

    def listed(self, present: Present) -> None:
        for key in self._pods.keys() - present.keys():
            self.deleted(self._pods[key])
        self._is_listed = True

    def changed(self, pod: Pod) -> None:
        before = self._pods.get(pod.key)
        if before is not None and before.metadata.resource_version == pod.metadata.resource_version:
            return
        if before is not None and before.uid != pod.uid:
            self.deleted(before)
            before = None
        self._put(pod)
        self._note(before, pod)

    def deleted(self, pod: Pod) -> None:
        known = self._pods.pop(pod.key, None)
        if known is None:
            return
        self._by_uid.pop(known.uid, None)
        if self._pending.pop(pod.key, None) is not None:
            self.pending_revision += 1
        self.namespaces[pod.namespace] -= 1
        if not self.namespaces[pod.namespace]:
            del self.namespaces[pod.namespace]
        self.revision += 1
        self._emit("deleted", known, node=known.spec.node_name or None)

    def _put(self, pod: Pod) -> None:
        before = self._pods.get(pod.key)
        if before is None:
            self.namespaces[pod.namespace] += 1
        elif before.uid != pod.uid:
            self._by_uid.pop(before.uid, None)
        self._pods[pod.key] = pod
        self._by_uid[pod.uid] = pod
        if not pod.spec.node_name:
            self._pending[pod.key] = pod
            self.pending_revision += 1
        elif self._pending.pop(pod.key, None) is not None:
            self.pending_revision += 1
        self.revision += 1

    def _note(self, before: Pod | None, pod: Pod) -> None:
        """Which decision the change shows."""
        if before is None:
            self._emit("arrived", pod)
        was_bound = before is not None and bool(before.spec.node_name)
        if pod.spec.node_name and not was_bound:
            self._emit("bound", pod, node=pod.spec.node_name)
        message = refusal(pod)
        if message and (before is None or refusal(before) != message):
            self._emit("refused", pod, message=message)
        if is_preempted(pod) and not (before is not None and is_preempted(before)):
            condition = pod.condition("DisruptionTarget")
            note = condition.message if condition is not None else ""
            self._emit("preempted", pod, node=pod.spec.node_name or None, message=note)

    def _emit(self, kind: str, pod: Pod, **more: Any) -> None:
        if not self._is_listed:
            return
        if more.get("message"):
            more["message"] = more["message"][:MOST_MESSAGE]
        event = PodEvent(timestamp(self._now()), kind, pod.key, **more)
        self.events.append(event)
        self.on_event(event)


def is_preempted(pod: Pod) -> bool:
    condition = pod.condition("DisruptionTarget")
    return condition is not None and (condition.status, condition.reason) == ("True", "PreemptionByScheduler")
