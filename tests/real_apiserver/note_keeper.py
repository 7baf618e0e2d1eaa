"""A plugin for tests that writes to pods: with the binding, and before it."""

from __future__ import annotations

from mooring.framework import Cycle, NodeView, Plugin, Pod, PodWriter


class NoteKeeper(Plugin):
    """The node's name as annotation and label of the binding; and by a patch of the pod before that."""

    def __init__(self, pods: PodWriter) -> None:
        self._pods = pods

    def reserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        cycle.add_to_binding(self, annotations={"example.com/bound-to": node.name}, labels={"bound-to": node.name})

    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        changes = {"example.com/patched-for": node.name, "example.com/removed": None}
        await self._pods.patch(pod, annotations=changes, labels={"patched-for": node.name})
