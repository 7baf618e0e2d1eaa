"""The `Pods` and `PodGroups` services: a plugin's view of the pods in the state, and of nothing else there."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.framework import Objects, Pod, PodsWhere
from mooring.objects.placed import PlacedPod
from mooring.objects.pod_groups import PodGroup
from mooring.state.pod_groups import PodGroupMembers
from mooring.state.state import State


class StatePods:
    """The `Pods` service."""

    def __init__(self, state: State) -> None:
        self._state = state

    def placed(self, where: PodsWhere) -> list[PlacedPod]:
        return self._state.placed(where)

    def pending(self, where: PodsWhere) -> list[Pod]:
        return self._state.pending(where)

    def nominated(self) -> dict[str, Sequence[PlacedPod]]:
        nominations, exists = self._state.nominations, self._state.node
        return {node: nominations.at(node) for node in nominations.nodes if exists(node) is not None}


class StatePodGroups:
    """The `PodGroups` service."""

    def __init__(self, state: State, objects: Objects[PodGroup] | None) -> None:
        """Without `objects` pods are scheduled one by one, whatever group they name."""
        self._state = state
        self._objects = objects

    def get(self, namespace: str, name: str) -> PodGroup | None:
        return None if self._objects is None else self._objects.get(name, namespace)

    def members(self, namespace: str, name: str) -> PodGroupMembers | None:
        return None if self._objects is None else self._state.pod_group(namespace, name)
