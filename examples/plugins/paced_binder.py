"""PacedBinder: bind pods to a node one after the other, with a pause between them.

Pods labelled `example.com/paced` pull large images; many at once would choke the node's disk. The others are left to
the next bind plugin. Waiting holds up nothing else: the scheduler goes on deciding while a pod is being bound.
"""

from __future__ import annotations

from typing import Annotated

from mooring.framework import Args, Binder, Bound, Clock, Cycle, Meta, NodeView, Plugin, Pod, Skip

from .labels import PACED


class PacedBinderArgs(Args):
    pause_seconds: Annotated[float, Meta(ge=0, description="Between two pods on the same node.")] = 5


class PacedBinder(Plugin):
    """Bind pods to a node one after the other."""

    def __init__(self, args: PacedBinderArgs, binder: Binder, clock: Clock) -> None:
        self._pause, self._binder, self._clock = args.pause_seconds, binder, clock
        self._free_at: dict[str, float] = {}
        """Node → when the next pod may be bound there."""

    async def bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> Bound | Skip:
        if PACED not in pod.labels:
            return Skip()
        now = self._clock.monotonic()
        turn = max(now, self._free_at.get(node.name, now))
        self._free_at[node.name] = turn + self._pause
        if turn > now:
            await self._clock.sleep(turn - now)
        await self._binder.bind(pod, node.name)
        return Bound()
