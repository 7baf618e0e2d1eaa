"""Pods and nodes as the API server wrote them, for extenders that are sent whole objects.

What scheduling reads of an object is a part of it; an extender may read any field. Kept only where an extender is
configured that wants it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import msgspec
from msgspec import Raw

from mooring.base.nesting import Decoder
from mooring.config.model import Extender
from mooring.objects.core import Node, Pod
from mooring.objects.meta import KubeObject
from mooring.objects.object_store import Present

T = TypeVar("T", bound=KubeObject)


class DocumentStore(Generic[T]):
    """The documents of one kind; observes its watch, so that it holds what there is."""

    def __init__(
        self,
        key: Callable[[T], str],
        is_wanted: Callable[[T], bool],
        kept: Callable[[Raw], Raw] = Raw.copy,  # the decoded object need not keep the bytes
    ) -> None:
        self._kept = kept
        self._key = key
        self._is_wanted = is_wanted
        self._documents: dict[str, Raw] = {}

    def keep(self, found: T, document: Raw) -> None:
        """Called by the reflector before the feed."""
        if self._is_wanted(found):
            self._documents[self._key(found)] = self._kept(document)
        else:
            self._documents.pop(self._key(found), None)

    def get(self, key: str) -> Raw | None:
        return self._documents.get(key)

    def __len__(self) -> int:
        return len(self._documents)

    def found(self, found: T) -> None:
        """`keep` has its document already."""

    def listed(self, present: Present) -> None:
        for key in self._documents.keys() - present.keys() - set(present.values()):  # nodes by name, pods by uid
            del self._documents[key]

    def changed(self, found: T) -> None:
        """`keep` has its document already."""

    def deleted(self, found: T) -> None:
        self._documents.pop(self._key(found), None)


_fields: Decoder[dict[str, Raw]] = Decoder(dict[str, Raw])


def trimmed(document: Raw) -> Raw:
    """Without the record of who manages which field: of pods, kube-scheduler does not keep it either."""
    whole = _fields.decode(document)
    metadata = _fields.decode(whole.get("metadata", b"{}"))
    if metadata.pop("managedFields", None) is None:
        return document.copy()
    whole["metadata"] = Raw(msgspec.json.encode(metadata))
    return Raw(msgspec.json.encode(whole))


class Documents:
    """What these extenders must be sent: waiting pods always, nodes and pods on nodes where they do not know them.

    Pods that wait for other schedulers too: a profile that is added may make them ours.
    """

    def __init__(self, extenders: Iterable[Extender]) -> None:
        extenders = list(extenders)
        is_any_called = any(each.filter_verb or each.prioritize_verb or each.preempt_verb for each in extenders)
        needy = [each for each in extenders if not each.node_cache_capable]
        wants_nodes = any(each.filter_verb or each.prioritize_verb for each in needy)
        wants_victims = any(each.preempt_verb for each in needy)

        def is_pod_wanted(pod: Pod) -> bool:
            return wants_victims if pod.spec.node_name else is_any_called

        self.pods: DocumentStore[Pod] = DocumentStore(lambda pod: pod.uid, is_pod_wanted, trimmed)
        self.nodes: DocumentStore[Node] = DocumentStore(lambda node: node.name, lambda _: wants_nodes)

    def of_pod(self, pod: Pod) -> Raw:
        return self.pods.get(pod.uid) or Raw(msgspec.json.encode(pod))
