"""Pods alike: those of one namespace with the same labels, as all pods of a workload have them.

A selector that is new is asked about each class once, not about each pod: there are thousands of pods, and few classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, Protocol, TypeVar

from mooring.framework import PodsWhere


class Selectable(Protocol):
    """What selecting reads of a pod."""

    @property
    def uid(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def is_terminating(self) -> bool: ...


P = TypeVar("P", bound=Selectable)

_Alike = tuple[tuple[str, str], ...]
"""Labels as a key."""


class PodClasses(Generic[P]):
    """All pods of a sort, by namespace and labels."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[_Alike, dict[str, P]]] = {}

    def put(self, pod: P) -> None:
        """Add it, or replace the record of that uid, which has the same labels."""
        classes = self._by_namespace.get(pod.namespace)
        if classes is None:
            classes = self._by_namespace[pod.namespace] = {}
        alike = tuple(pod.labels.items())
        pods = classes.get(alike)
        if pods is None:
            pods = classes[alike] = {}
        pods[pod.uid] = pod

    def take(self, pod: P) -> None:
        classes = self._by_namespace[pod.namespace]
        alike = tuple(pod.labels.items())
        pods = classes[alike]
        del pods[pod.uid]
        if not pods:
            del classes[alike]
            if not classes:
                del self._by_namespace[pod.namespace]

    def matching(self, where: PodsWhere) -> Iterator[P]:
        """The pods that count."""
        for namespace in self._by_namespace if where.namespaces is None else where.namespaces:
            for alike, pods in self._by_namespace.get(namespace, {}).items():
                if not where.matches(namespace, dict(alike)):
                    continue
                if where.terminating:
                    yield from pods.values()
                else:
                    yield from (pod for pod in pods.values() if not pod.is_terminating)
