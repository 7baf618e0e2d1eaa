"""Pods alike: those of one namespace with the same labels, as all pods of a workload have them.

A new selector is matched against each class once, not against each pod: there are thousands of pods, and few classes.
Where many selectors are new at once, the rows of a namespace's pods are kept as an array until a pod comes or goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress
from typing import Generic, Protocol, TypeVar

import numpy as np

from mooring.framework import BoolArray, IntArray, PodsWhere
from mooring.framework.label_columns import LabelColumns


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

MOST_INDEXED = 64
"""A class with more labels than this is not in the index: an entry costs more memory than the label itself."""


FEW_CLASSES = 32
"""More classes than this are matched at once."""
NO_ROW = -1
"""The row of a pod whose node is not known."""


class PodClass(Generic[P]):
    """The pods of one namespace with the same labels."""

    __slots__ = ("labels", "place", "pods")

    def __init__(self, labels: Mapping[str, str]) -> None:
        self.labels = labels
        self.pods: dict[str, P] = {}
        self.place = 0
        """Its number among those of the namespace, while the rows are kept."""


class _Namespace(Generic[P]):
    """The classes of one namespace, and the rows of its pods, class by class."""

    __slots__ = ("_columns", "_is_terminating", "_keys", "_place_of", "_rows", "_version", "classes", "pods", "read")

    def __init__(self) -> None:
        self.classes: dict[_Alike, PodClass[P]] = {}
        self._keys: Counter[str] = Counter()
        """How many classes have a label of this key."""
        self._columns: LabelColumns | None = None
        """The classes' labels; until a class comes or goes."""
        self.pods = 0
        self.read = 0
        """How many pods were gone through one by one since the array was made or had to go."""
        self._rows: IntArray | None = None
        self._is_terminating: BoolArray | None = None
        self._place_of: IntArray | None = None
        self._version = 0

    def add(self, alike: _Alike, labels: Mapping[str, str]) -> PodClass[P]:
        found = self.classes[alike] = PodClass(labels)
        self._keys.update(labels.keys())
        self._columns = None
        return found

    def remove(self, alike: _Alike) -> None:
        for key in self.classes.pop(alike).labels:
            self._keys[key] -= 1
            if not self._keys[key]:
                del self._keys[key]
        self._columns = None

    def matching(self, name: str, where: PodsWhere) -> list[PodClass[P]]:
        """The classes that match. Many are matched at once: users choose selectors, and their number."""
        classes = self.classes.values()
        if len(classes) <= FEW_CLASSES:
            return [each for each in classes if where.matches(name, each.labels)]
        if self._columns is None:
            self._columns = LabelColumns([each.labels for each in classes], self._keys)
        return list(compress(classes, self._columns.matching(chain.from_iterable(where.selectors)).tolist()))

    def changed(self, pods: int) -> None:
        self.pods += pods
        self._rows = None
        self.read = 0

    def rows(
        self, classes: Sequence[PodClass[P]], where: PodsWhere, row_of: Callable[[P], int], version: int
    ) -> IntArray:
        """The rows of these classes' pods that count, from arrays that hold as long as nodes keep their rows."""
        if self._rows is None or self._version != version:
            pods = [pod for each in self.classes.values() for pod in each.pods.values()]
            for place, each in enumerate(self.classes.values()):
                each.place = place
            self._rows = np.fromiter((row_of(pod) for pod in pods), np.intp, len(pods))
            self._is_terminating = np.fromiter((pod.is_terminating for pod in pods), np.bool_, len(pods))
            self._place_of = np.repeat(np.arange(len(self.classes)), [len(each.pods) for each in self.classes.values()])
            self._version = version
        assert self._is_terminating is not None
        assert self._place_of is not None
        is_counted = np.ones(len(self._rows), np.bool_) if where.terminating else ~self._is_terminating
        if len(classes) < len(self.classes):
            is_chosen = np.zeros(len(self.classes), np.bool_)
            is_chosen[[each.place for each in classes]] = True
            is_counted &= is_chosen.take(self._place_of)
        rows: IntArray = self._rows[is_counted]
        return rows

    def has_rows(self, version: int) -> bool:
        return self._rows is not None and self._version == version


_Classes = dict[str, dict[_Alike, PodClass[P]]]
"""Namespace → labels → the class."""


class PodClasses(Generic[P]):
    """All pods of a sort, by namespace and labels."""

    def __init__(self) -> None:
        self._namespaces: dict[str, _Namespace[P]] = {}
        self._by_label: dict[tuple[str, str], _Classes[P]] = {}
        """The classes with a label of this key and value, as far as they are indexed."""
        self._not_indexed: _Classes[P] = {}

    def put(self, pod: P) -> PodClass[P]:
        """Add it, or replace the record of that uid, which has the same labels. Returns its class."""
        namespace = self._namespaces.get(pod.namespace)
        if namespace is None:
            namespace = self._namespaces[pod.namespace] = _Namespace()
        alike = tuple(pod.labels.items())
        found = namespace.classes.get(alike)
        if found is None:
            found = namespace.add(alike, pod.labels)
            for index in self._indexes(alike):
                index.setdefault(pod.namespace, {})[alike] = found
        namespace.changed(pod.uid not in found.pods)
        found.pods[pod.uid] = pod
        return found

    def take(self, pod: P) -> None:
        namespace = self._namespaces[pod.namespace]
        alike = tuple(pod.labels.items())
        pods = namespace.classes[alike].pods
        del pods[pod.uid]
        namespace.changed(-1)
        if pods:
            return
        namespace.remove(alike)
        if not namespace.classes:
            del self._namespaces[pod.namespace]
        for index in self._indexes(alike):
            del index[pod.namespace][alike]
            if not index[pod.namespace]:
                del index[pod.namespace]
        for label in alike:
            if label in self._by_label and not self._by_label[label]:
                del self._by_label[label]

    def _indexes(self, alike: _Alike) -> list[_Classes[P]]:
        """Where a class with these labels is found besides under its namespace."""
        if len(alike) > MOST_INDEXED:
            return [self._not_indexed]
        return [self._by_label.setdefault(label, {}) for label in alike]

    def matching(self, where: PodsWhere) -> Iterator[P]:
        """The pods that count."""
        for _, classes in self._matching(where):
            for each in classes:
                yield from _counted(each, where)

    def rows(self, where: PodsWhere, row_of: Callable[[P], int], version: int) -> IntArray:
        """The rows of the pods that count, one for each pod that has one. `version` changes when nodes' rows do."""
        parts: list[IntArray] = []
        for namespace, classes in self._matching(where):
            size = sum(len(each.pods) for each in classes)
            if not namespace.has_rows(version) and namespace.read + size <= namespace.pods:
                namespace.read += size
                pods = [pod for each in classes for pod in _counted(each, where)]
                parts.append(np.fromiter(map(row_of, pods), np.intp, len(pods)))
                continue
            parts.append(namespace.rows(classes, where, row_of, version))
        if not parts:
            return np.empty(0, np.intp)
        found = parts[0] if len(parts) == 1 else np.concatenate(parts)
        known: IntArray = found[found != NO_ROW]
        return known

    def _matching(self, where: PodsWhere) -> Iterator[tuple[_Namespace[P], list[PodClass[P]]]]:
        """The classes that match, by namespace; each namespace with any, once."""
        if where.none:
            return
        labels = where.some_label()
        for name in list(self._namespaces) if where.namespaces is None else where.namespaces:
            namespace = self._namespaces.get(name)
            if namespace is None:
                continue
            if labels is None:
                found = namespace.matching(name, where)
            else:
                indexes = [*(index for label in labels if (index := self._by_label.get(label))), self._not_indexed]
                candidates = (each for index in indexes if (some := index.get(name)) for each in some.values())
                found = [each for each in candidates if where.matches(name, each.labels)]
            if found:
                yield namespace, found


def _counted(each: PodClass[P], where: PodsWhere) -> Iterable[P]:
    if where.terminating:
        return each.pods.values()
    return (pod for pod in each.pods.values() if not pod.is_terminating)
