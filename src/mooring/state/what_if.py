"""A supposition about one node: some of its pods are away, others are there. Undone exactly when it ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from mooring.base.errors import Fault
from mooring.objects.placed import PlacedPod
from mooring.state.views import RowView

if TYPE_CHECKING:
    from mooring.state.state import State


class WhatIfNode:
    """`with` it, columns, tallies, sums and terms are as they would be. May be nested.

    The state's own verbs are not used: nothing is logged as a change, and nothing that stands is dropped meanwhile.
    """

    __slots__ = ("_added", "_before", "_gone", "_is_outermost", "_ports_before", "_state", "_view")

    def __init__(
        self, state: State, node: str, without: Iterable[PlacedPod] = (), adding: Iterable[PlacedPod] = ()
    ) -> None:
        view = state.node(node)
        if view is None:
            raise Fault(f"there is no node {node} to suppose anything about")
        self._state = state
        self._view: RowView = view
        self._gone = {pod.uid: self._on_node(pod) for pod in without}
        self._added = [msgspec.structs.replace(pod, node=node) for pod in adding]
        self._before: dict[str, PlacedPod] = view.placed
        self._is_outermost = False

    def _on_node(self, pod: PlacedPod) -> PlacedPod:
        try:
            return self._view.placed[pod.uid]
        except KeyError:
            raise Fault(f"pod {pod.key} is not on node {self._view.name}, so it cannot be supposed away") from None

    def __enter__(self) -> WhatIfNode:
        state, view = self._state, self._view
        self._is_outermost = state.begin_supposing()
        self._before = view.placed
        self._ports_before = state.ports.supposed_free_at(view.row)
        view.placed = dict(self._before)
        if self._gone:
            state.hide(view, self._gone.values())
        for pod in self._added:
            state.suppose(view, pod)
        return self

    def reprieve(self, pod: PlacedPod) -> None:
        self._state.show(self._view, (self._gone.pop(pod.uid),))

    def evict(self, pod: PlacedPod) -> None:
        gone = self._gone[pod.uid] = self._on_node(pod)
        self._state.hide(self._view, (gone,))

    def __exit__(self, *_: object) -> None:
        state, view = self._state, self._view
        for pod in reversed(self._added):
            state.unsuppose(view, pod)
        if self._gone:
            state.show(view, self._gone.values())
        view.placed = self._before
        state.ports.restore(view.row, self._ports_before)
        state.end_supposing(self._is_outermost)
