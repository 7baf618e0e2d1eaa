"""The `Pods` service: a plugin's view of the pods in the state, and of nothing else there."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.framework import Pod, PodsWhere
from mooring.objects.placed import PlacedPod
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
        nominations = self._state.nominations
        return {node: nominations.at(node) for node in nominations.nodes}
