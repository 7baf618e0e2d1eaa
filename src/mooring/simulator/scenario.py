"""What is simulated: a cluster as it is at the beginning, and the pods that arrive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from mooring.objects import Node, Pod
from mooring.objects.meta import KubeObject

KindKey = tuple[str, str]
"""apiVersion and kind."""


class Cluster(msgspec.Struct, frozen=True):
    """Nodes, the pods on them, pending pods, and the other objects that plugins read."""

    nodes: Sequence[Node]
    pods: Sequence[Pod] = ()
    objects: Sequence[KubeObject] = ()
    documents: Mapping[KindKey, Sequence[Mapping[str, Any]]] = {}
    """Further objects, decoded only where a plugin reads their kind."""

    def with_documents(self, other: Cluster) -> Cluster:
        """The same nodes and pods, with the further objects of another cluster."""
        return msgspec.structs.replace(self, documents=other.documents)

    def objects_of(self, kind: type[KubeObject]) -> list[KubeObject]:
        """All objects of a kind."""
        found = [each for each in self.objects if type(each) is kind]
        for document in self.documents.get((kind.KIND.api_version, kind.KIND.kind), ()):
            found.append(msgspec.convert(document, kind, strict=False))
        return found


class Arrival(msgspec.Struct, frozen=True, gc=False):
    """A pod that is created at a moment, in seconds from the beginning."""

    at: float
    pod: Pod
    duration: float | None = None
    """How long it runs once it is bound; None: for ever."""


Workload = Sequence[Arrival]
"""Arrivals in any order."""
