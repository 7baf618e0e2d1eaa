"""DefaultBinder: bind the pod with a Binding in the API server."""

from __future__ import annotations

import math

from mooring.framework import Binder, Bound, Cycle, Log, NodeView, Plugin, Pod


class DefaultBinder(Plugin):
    """Bind pods through the API server's `pods/binding`."""

    # The binder retries until the outcome is known: to give up earlier would overcommit the node.
    longest_wait_seconds = math.inf

    def __init__(self, binder: Binder, log: Log) -> None:
        self._binder, self._log = binder, log

    async def bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> Bound:
        self._log.v(3).info("Attempting to bind pod to node", pod=pod, node=node.name)
        await self._binder.bind(pod, node.name)
        return Bound()
