"""The pods of the cluster as a watch brings them: which are scheduled, and which were attempted at least once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

import msgspec

from mooring.client import ApiClient, Reflector
from mooring.objects.meta import KubeObject
from mooring.objects.object_store import Present
from mooring.objects.wire import Wire


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


class PodWatch:
    """Pods by namespace, and functions that are called with every pod that gets its node."""

    def __init__(self) -> None:
        self._pods: dict[str, dict[str, WatchedPod]] = {}
        self._handlers: list[Callable[[WatchedPod], None]] = []

    def reflector(self, client: ApiClient) -> Reflector[WatchedPod]:
        return Reflector(client, WatchedPod, self)

    def on_scheduled(self, handler: Callable[[WatchedPod], None]) -> Callable[[], None]:
        """Call it with every pod that gets a node from now on. Returns what ends that."""
        self._handlers.append(handler)
        return lambda: self._handlers.remove(handler)

    def matching(self, namespace: str, selector: Mapping[str, str]) -> Iterator[WatchedPod]:
        for pod in self._pods.get(namespace, {}).values():
            if selector.items() <= pod.labels.items():
                yield pod

    def scheduled(self, namespace: str, selector: Mapping[str, str]) -> int:
        return sum(pod.is_scheduled for pod in self.matching(namespace, selector))

    def attempted(self, namespace: str, selector: Mapping[str, str]) -> int:
        return sum(pod.is_attempted for pod in self.matching(namespace, selector))

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

    def deleted(self, pod: WatchedPod, /) -> None:
        self._pods.get(pod.namespace, {}).pop(pod.name, None)


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
