"""What follows a decision: wait for permission, pre_bind, bind, post_bind. Runs beside the next decisions.

Any failure undoes everything: unreserve of all reserve plugins in reverse order, the assumed pod forgotten, the pods
that waited for its place woken, the pod put back. Undoing may wait too, so it never runs inside the loop. Meanwhile
the watch goes on: after every await the pod may be gone, on another node, or somebody else's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from mooring.base.errors import PluginFault
from mooring.base.log import Log
from mooring.engine import Decision, Profile, Refused, asking, unreserve
from mooring.engine.asking import BIND, POST_BIND, PRE_BIND, described, fault
from mooring.framework import Bound, Pod, Point, Refusal, Skip
from mooring.framework.events import ASSIGNED_POD_DELETED
from mooring.framework.nodes import NodeView
from mooring.objects.placed import PlacedPod
from mooring.queue import SchedulingQueue, Waiting
from mooring.scheduler.failures import Failures
from mooring.scheduler.journal import Journal
from mooring.scheduler.reporting import Reporter
from mooring.scheduler.waiting import PermitRoom
from mooring.state import State

CANCELLATION_SECONDS = 1.0

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
    is_bound: bool = False
    """From here on there is nothing to undo."""


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
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """By the pod's uid."""

    def is_under_way(self, uid: str) -> bool:
        return uid in self._tasks

    def begin(self, placement: Placement) -> None:
        """Bind it, without holding up the next decision."""
        if placement.waits:
            self._room.enter(placement.pod, placement.node.name, placement.waits)
        self._spawn(placement, None)

    def give_up(self, placement: Placement, why: Refused | PluginFault) -> None:
        """Undo a placement whose binding did not even begin."""
        self._spawn(placement, why)

    async def finish(self, seconds: float) -> None:
        """At shutdown: let those that are at the API server end; those that wait for permission wait no longer."""
        self._room.close()
        if tasks := list(self._tasks.values()):
            _, late = await asyncio.wait(tasks, timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.wait(tasks, timeout=CANCELLATION_SECONDS)

    def _spawn(self, placement: Placement, why_not: Refused | PluginFault | None) -> None:
        pod = placement.pod
        self._tasks[pod.uid] = asyncio.get_running_loop().create_task(
            self._see_through(placement, why_not), name=f"bind {pod.key}"
        )

    async def _see_through(self, placement: Placement, why_not: Refused | PluginFault | None) -> None:
        """Bind or undo. A bug of ours costs one attempt, never the pod."""
        try:
            match why_not:
                case None:
                    await self._run(placement)
                case Refused():
                    await self._refused(placement, why_not)
                case PluginFault():
                    await self._broken(placement, why_not)
        except Exception as error:
            _log.error("Unexpected fault while binding", pod=placement.pod, err=described(error))
            if not placement.is_bound:
                await self._broken(placement, internal(error))
        finally:
            # In the very step that put the pod back: its next attempt must not find this one still under way.
            del self._tasks[placement.pod.uid]

    async def _run(self, placement: Placement) -> None:
        pod = placement.pod
        if placement.waits:
            verdict = await self._room.wait(pod, placement.waits)
            if verdict.is_closed:
                await self._undo(placement)
                return
            if verdict.refusal is not None:
                await self._refused(placement, Refused(verdict.plugin, verdict.refusal))
                return
        # From here on a failure can only mean another try with the error backoff: events are no longer kept for it.
        self._queue.done(pod.uid)
        try:
            await self._pre_bind(placement)
            await self._reporter.settle(pod)
            await self._bind(placement)
        except PluginFault as problem:
            await self._broken(placement, problem)
            return
        placement.is_bound = True
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
        try:
            await self._ask_binders(placement)
        except PluginFault:
            _log.v(1).info("Failed to bind pod", pod=placement.pod)
            raise

    async def _ask_binders(self, placement: Placement) -> None:
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
        _log.v(5).info("Finished binding for pod, can be expired", pod=placement.pod)
        _log.v(2).info(
            "Successfully bound pod to node",
            pod=placement.pod,
            node=placement.node.name,
            evaluatedNodes=decision.evaluated_nodes,
            feasibleNodes=decision.feasible_nodes,
        )
        if placement.waiting.was_flushed:
            _log.v(4).info(
                "Pod scheduled after flush from unschedulablePods",
                pod=placement.pod,
                unschedulablePlugins=sorted(placement.waiting.unschedulable_plugins),
                pendingPlugins=sorted(placement.waiting.pending_plugins),
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
                Log(plugin.name).error("PostBind plugin failed", pod=placement.pod, err=problem)

    async def _broken(self, placement: Placement, problem: PluginFault) -> None:
        """A plugin failed after the decision: undo, wake those who wanted the place, try again later."""
        await self._undo(placement)
        forgotten = self._forget(placement.pod)
        if forgotten is not None:
            self._queue.on(ASSIGNED_POD_DELETED, forgotten, None)
        self._journal.note(placement.pod, node=None, error=str(problem))
        self._failures.broken(placement.waiting, str(problem))

    async def _refused(self, placement: Placement, refused: Refused) -> None:
        """A reserve or permit plugin said no: undo, and count it as a refusal of this one node."""
        await self._undo(placement)
        forgotten = self._forget(placement.pod)
        unschedulable, pending = refused.rejectors
        self._journal.note(placement.pod, node=None, message=refused.message, refusedBy=[refused.plugin])
        self._failures.refused(
            placement.waiting, refused.message, unschedulable=unschedulable, pending=pending, nominate=""
        )
        if forgotten is not None:
            # After the pod is back and without it, so that it does not wake itself.
            uid = placement.pod.uid
            self._queue.on(ASSIGNED_POD_DELETED, forgotten, None, only=lambda pod: pod.uid != uid)

    async def _undo(self, placement: Placement) -> None:
        for problem in await unreserve(placement.profile, placement.decision):
            Log(problem.plugin).error("Unreserve failed", pod=placement.pod, err=problem)

    def _forget(self, pod: Pod) -> PlacedPod | None:
        """Take the assumed pod off its node; None if the watch has removed or confirmed it meanwhile.

        A pod that cannot be forgotten still goes back: its next attempt fails at `assume`, and asks for this again.
        """
        if not self._state.is_assumed(pod.uid):
            return None
        try:
            return self._state.forget(pod.uid)
        except Exception as error:
            _log.error("ForgetPod failed", pod=pod, err=described(error))
            return None


def internal(error: Exception) -> PluginFault:
    """A bug of ours, as what the pod's event says: there is no plugin to name."""
    return PluginFault("", f"internal fault: {described(error)}")
