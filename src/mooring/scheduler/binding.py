"""What follows a decision: wait for permission, pre_bind, bind, post_bind. Runs beside the next decisions.

Any failure undoes everything: unreserve of all reserve plugins in reverse order, the assumed pod forgotten, the pods
that waited for its place woken, the pod put back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from mooring.base.errors import PluginFault
from mooring.base.log import Log
from mooring.engine import Decision, Profile, Refused, asking, unreserve
from mooring.engine.asking import BIND, POST_BIND, PRE_BIND, fault
from mooring.framework import Bound, Pod, Point, Refusal, Skip
from mooring.framework.events import ASSIGNED_POD_DELETED
from mooring.framework.nodes import NodeView
from mooring.queue import SchedulingQueue, Waiting
from mooring.scheduler.failures import Failures
from mooring.scheduler.journal import Journal
from mooring.scheduler.reporting import Reporter
from mooring.scheduler.waiting import PermitRoom
from mooring.state import State

_log = Log("scheduler")


@dataclass(slots=True)
class Placement:
    """A pod on its way to a node."""

    waiting: Waiting
    pod: Pod
    profile: Profile
    decision: Decision
    node: NodeView
    waits: Mapping[str, float]
    """Permit plugins that asked to wait, and how long."""


class Bindings:
    """The binding cycles in flight."""

    def __init__(
        self,
        state: State,
        queue: SchedulingQueue,
        room: PermitRoom,
        failures: Failures,
        reporter: Reporter,
        journal: Journal,
    ) -> None:
        self._state = state
        self._queue = queue
        self._room = room
        self._failures = failures
        self._reporter = reporter
        self._journal = journal
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, placement: Placement) -> None:
        """Bind it, without holding up the next decision."""
        if placement.waits:
            self._room.enter(placement.pod, placement.node.name, placement.waits)
        task = asyncio.get_running_loop().create_task(self._run(placement), name=f"bind {placement.pod.key}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self, seconds: float) -> None:
        """At shutdown: let those that are at the API server end; give up the rest."""
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=seconds)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, placement: Placement) -> None:
        pod = placement.pod
        if placement.waits:
            verdict = await self._room.wait(pod, placement.waits)
            if verdict.refusal is not None:
                await self.refused(placement, Refused(verdict.plugin, verdict.refusal))
                return
        # From here on a failure can only mean another try with the error backoff: events are no longer kept for it.
        self._queue.done(pod.uid)
        try:
            await self._pre_bind(placement)
            await self._reporter.settle(pod)
            await self._bind(placement)
        except PluginFault as problem:
            _log.v(1).info("Failed to bind pod", pod=pod)
            await self.broken(placement, problem)
            return
        self._bound(placement)
        await self._post_bind(placement)

    async def _pre_bind(self, placement: Placement) -> None:
        for plugin in placement.profile.at(Point.PRE_BIND):
            with asking(placement.decision.cycle, plugin, PRE_BIND):
                answer = await plugin.pre_bind(placement.pod, placement.node, placement.decision.cycle)
            if isinstance(answer, Refusal):
                raise fault(plugin, PRE_BIND, ", ".join(answer.reasons))
            if answer is not None:
                raise fault(plugin, PRE_BIND, f"pre_bind returned {answer!r}; it must return a Refusal or None")

    async def _bind(self, placement: Placement) -> None:
        for plugin in placement.profile.at(Point.BIND):
            with asking(placement.decision.cycle, plugin, BIND):
                answer = await plugin.bind(placement.pod, placement.node, placement.decision.cycle)
            if isinstance(answer, Bound):
                return
            if isinstance(answer, Refusal):
                raise fault(plugin, BIND, ", ".join(answer.reasons))
            if not isinstance(answer, Skip):
                raise fault(plugin, BIND, f"bind returned {answer!r}; it must return Bound, Skip or a Refusal")
        raise PluginFault("", "no bind plugin took the pod: all of them skipped it")

    def _bound(self, placement: Placement) -> None:
        decision = placement.decision
        _log.v(2).info(
            "Successfully bound pod to node",
            pod=placement.pod,
            node=placement.node.name,
            evaluatedNodes=decision.evaluated_nodes,
            feasibleNodes=decision.feasible_nodes,
        )
        self._journal.note(placement.pod, bound=True)
        self._reporter.scheduled(placement.pod, placement.node.name)

    async def _post_bind(self, placement: Placement) -> None:
        for plugin in placement.profile.at(Point.POST_BIND):
            try:
                with asking(placement.decision.cycle, plugin, POST_BIND):
                    await plugin.post_bind(placement.pod, placement.node, placement.decision.cycle)
            except PluginFault as problem:
                # The pod is bound: nothing is left to undo.
                Log(plugin.name).error("PostBind plugin failed", pod=placement.pod, error=problem)

    async def broken(self, placement: Placement, problem: PluginFault) -> None:
        """A plugin failed after the decision: undo, wake those who wanted the place, try again later."""
        await self._undo(placement)
        self._queue.on(ASSIGNED_POD_DELETED, self._forget(placement.pod), None)
        self._journal.note(placement.pod, node=None, error=str(problem))
        self._failures.broken(placement.waiting, str(problem))

    async def refused(self, placement: Placement, refused: Refused) -> None:
        """A reserve or permit plugin said no: undo, and count it as a refusal of this one node."""
        await self._undo(placement)
        forgotten = self._forget(placement.pod)
        unschedulable, pending = refused.rejectors
        self._journal.note(placement.pod, node=None, message=refused.message, refusedBy=[refused.plugin])
        self._failures.refused(
            placement.waiting, refused.message, unschedulable=unschedulable, pending=pending, nominate=""
        )
        # After the pod is back and without it, so that it does not wake itself.
        uid = placement.pod.uid
        self._queue.on(ASSIGNED_POD_DELETED, forgotten, None, only=lambda pod: pod.uid != uid)

    async def _undo(self, placement: Placement) -> None:
        for problem in await unreserve(placement.profile, placement.decision):
            Log(problem.plugin).error("Unreserve failed", pod=placement.pod, error=problem)

    def _forget(self, pod: Pod) -> object:
        return self._state.forget(pod.uid) if self._state.is_assumed(pod.uid) else self._state.pod(pod.uid)
