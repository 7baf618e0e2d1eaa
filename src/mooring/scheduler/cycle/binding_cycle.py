"""The binding cycle: wait on Permit, PreBind, Bind, PostBind. It runs beside the next scheduling cycles.

Any failure undoes everything: Unreserve of all plugins in reverse order, the assumed pod forgotten, the pods that its
place may help requeued, and the pod itself. Undoing may wait too, so it never runs inside the loop. Watch events are
applied meanwhile: after every await the pod may be deleted, or bound to another node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from mooring.base.errors import PluginFault
from mooring.base.foreign_code import described, is_its_own
from mooring.base.log import Log
from mooring.engine import Decision, PlacementRefused, Profile, unreserve
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.plugin_call import calling, check_reasons, fault
from mooring.framework import Bound, Plugin, Pod, Point, Refusal, Skip
from mooring.framework.events import ASSIGNED_POD_DELETED
from mooring.framework.nodes import NodeView
from mooring.objects.placed import PlacedPod
from mooring.queue import QueuedPodInfo, SchedulingQueue
from mooring.scheduler.cycle.failure_handler import FailureHandler
from mooring.scheduler.cycle.permit import PermitRoom
from mooring.scheduler.cycle.reporting import Reporter
from mooring.scheduler.extenders import Extenders
from mooring.scheduler.introspection.decision_log import DecisionLog
from mooring.scheduler.metrics import AttemptResult, SchedulerMetrics
from mooring.scheduler.plugin_runtime.api_binder import ApiBinder
from mooring.scheduler.plugin_runtime.blocking_code import awaited_in
from mooring.scheduler.plugin_runtime.plugin_errors import PluginErrors, details_of
from mooring.scheduler.plugin_runtime.plugin_timeouts import PluginCaller, parallel_groups
from mooring.state import State

CANCELLATION_SECONDS = 1.0
CANNOT_CARRY = (
    "{} added annotations or labels to the binding, and extender {} binds the pod and cannot carry them; write them by "
    "PodWriter in pre_bind"
)
NOT_WRITTEN = "what plugins added to the binding was not written"
PREEMPTED = "the binding was cancelled: preempted by a pod of higher priority"

_log = Log("scheduler")


class Placement(msgspec.Struct):
    """A pod that is assumed on a node and being bound."""

    queued: QueuedPodInfo
    pod: Pod
    profile: Profile
    decision: Decision
    node: NodeView
    waits: Mapping[str, float] = msgspec.field(default_factory=dict)
    """Permit plugins that returned Wait, and how long."""
    pre_binders: Sequence[Sequence[Any]] = ()
    """The pre_bind plugins that have work to do for it; those of one group at the same time."""
    pre_binding: asyncio.Task[None] | None = None
    """While pre_bind plugins are at work."""
    is_cancellable: bool = False
    """Until they have done their work."""
    is_preempted: bool = False
    """A pod of higher priority preempts it."""
    is_bound: bool = False
    """From here on there is nothing to undo."""
    assumed: PlacedPod | None = None
    """The record that the state counts on the node."""
    fault: PluginFault | None = None
    """Why the binding cycle failed."""

    @classmethod
    def of(cls, queued: QueuedPodInfo, profile: Profile, decision: Decision) -> Placement:
        """The placement of a decision."""
        assert decision.view is not None
        return cls(queued, queued.pod, profile, decision, decision.view)


class _Rejected(Exception):
    """A PreBind or Bind plugin rejected the pod; it ends the binding cycle."""

    def __init__(self, plugin: Plugin, refusal: Refusal) -> None:
        self.plugin, self.refusal = plugin.name, refusal
        super().__init__(", ".join(refusal.reasons) or f"plugin {plugin.name} refused without a reason")


class BindingCycles:
    """The binding cycles in flight."""

    def __init__(
        self,
        state: State,
        queue: SchedulingQueue,
        room: PermitRoom,
        failures: FailureHandler,
        reporter: Reporter,
        decision_log: DecisionLog,
        metrics: SchedulerMetrics,
        caller: PluginCaller,
        binder: ApiBinder,
        extenders: Extenders | None = None,
    ) -> None:
        self._state = state
        self._queue = queue
        self._room = room
        self._failures = failures
        self._reporter = reporter
        self._decision_log = decision_log
        self._metrics = metrics
        self._errors = PluginErrors(metrics.plugins)
        self._caller = caller
        self._binder = binder
        self._extenders = extenders
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """By the pod's uid."""
        self._placements: dict[str, Placement] = {}
        """Likewise."""

    def is_binding(self, uid: str) -> bool:
        return uid in self._tasks

    def __len__(self) -> int:
        return len(self._tasks)

    def profile_of(self, uid: str) -> Profile | None:
        """The profile that decided the pod's placement, while its binding cycle runs."""
        placement = self._placements.get(uid)
        return placement.profile if placement is not None else None

    async def wait_for_current(self) -> None:
        """Until every binding cycle that has started by now has ended."""
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    def start(self, placement: Placement, waits: Mapping[str, float]) -> None:
        """Start its binding cycle, without holding up the next scheduling cycle."""
        placement.waits = waits
        try:
            placement.pre_binders = _pre_binders(placement)
        except PluginFault as problem:
            self.undo(placement, problem)
            return
        if placement.waits:
            self._room.enter(placement.pod, placement.node.name, placement.waits)
        self._spawn(placement, None)

    def undo(self, placement: Placement, why: PlacementRefused | PluginFault) -> None:
        """Undo a placement that Reserve or Permit rejected, or that failed before its binding cycle started.

        Its group does not count the pod from now on: Permit of the next pod must not find the quorum complete.
        """
        self._spawn(placement, why)
        self._state.withdraw_from_group(placement.pod.uid)

    def preempt(self, uid: str) -> bool:
        """Cancel a binding cycle that has not gone beyond PreBind. False: there is none."""
        placement = self._placements.get(uid)
        if placement is None or not placement.is_cancellable:
            return False
        placement.is_preempted = True
        if placement.pre_binding is not None:
            placement.pre_binding.cancel()
        return True

    async def finish(self, seconds: float, plugin_seconds: float) -> None:
        """At shutdown: let those that are at the API server end; those that wait for permission wait no longer, and
        those that wait for a plugin not for long."""
        self._room.close()
        if not self._tasks:
            return
        left, patience = seconds, plugin_seconds
        while self._tasks and left > 0:
            await asyncio.wait(list(self._tasks.values()), timeout=min(patience, left))
            # In a loop: undoing a cancelled plugin runs plugins, too.
            self._cancel_plugins()
            left, patience = left - patience, plugin_seconds / 2
        if late := list(self._tasks.values()):
            for task in late:
                task.cancel()
            await asyncio.wait(late, timeout=min(CANCELLATION_SECONDS, plugin_seconds))

    def _cancel_plugins(self) -> None:
        self._caller.cancel_plugins()
        for task in self._tasks.values():  # of those without a time limit the binding's own task waits
            if not task.cancelling() and (holder := awaited_in(task)) is not None:
                _log.warning("Cancelled a plugin at shutdown", **holder._asdict())
                task.cancel()

    def _spawn(self, placement: Placement, why_not: PlacementRefused | PluginFault | None) -> None:
        pod, uid = placement.pod, placement.pod.uid
        placement.assumed = self._state.pod(uid)
        self._placements[uid] = placement
        self._tasks[uid] = asyncio.get_running_loop().create_task(
            self._bind_or_undo(placement, why_not), name=f"bind {pod.key}"
        )

    async def _bind_or_undo(self, placement: Placement, why_not: PlacementRefused | PluginFault | None) -> None:
        """A bug in the scheduler costs one attempt, never the pod."""
        try:
            if why_not is None:
                await self._run(placement)
            elif isinstance(why_not, PlacementRefused):
                await self._unschedulable(placement, why_not)
            else:
                await self._failed(placement, why_not)
        except BaseException as error:
            if not is_its_own(error):
                raise
            _log.error("Unexpected fault while binding", pod=placement.pod, err=described(error))
            if not placement.is_bound:
                await self._failed(placement, internal(error))
        finally:
            self._metrics.attempts.ended(placement.decision, placement.fault)
            # In the same step that requeued the pod: its next attempt must not find this one still in flight.
            uid = placement.pod.uid
            del self._tasks[uid], self._placements[uid]

    async def _run(self, placement: Placement) -> None:
        pod = placement.pod
        placement.is_cancellable = bool(placement.pre_binders)
        # The last member of a gang has released the others before their binding cycles begin: they need no nomination.
        if placement.pre_binders or (placement.waits and self._room.is_waiting(pod.uid)):
            await self._reporter.settle(pod)
            # It may take long: nominate the pod to its node, unless another scheduler has bound it meanwhile.
            if self._state.is_assumed(pod.uid):
                await self._reporter.nominate(pod, placement.node.name)
        if placement.waits:
            began = self._room.now()
            outcome = await self._room.wait(pod, placement.waits)
            self._metrics.waited_on_permit(outcome.status, self._room.now() - began)
            if outcome.is_closed:
                await self._unreserve(placement)
                return
            if outcome.is_preempted:
                await self._failed(placement, PluginFault("", "waiting on permit for pod: preempted"))
                return
            if outcome.refusal is not None:
                await self._unschedulable(placement, PlacementRefused(outcome.plugin, outcome.refusal))
                return
        # From here on a failure can only mean another try with the error backoff: no more events are recorded for it.
        self._queue.done(pod.uid)
        try:
            if placement.pre_binders:
                await self._pre_bind(placement)
            if self._reporter.is_unsettled(pod):
                await self._reporter.settle(pod)
            await self._bind(placement)
        except PluginFault as problem:
            await self._failed(placement, problem)
            return
        except _Rejected as rejected:
            await self._rejected(placement, rejected)
            return
        placement.is_bound = True
        self._bound(placement)
        if post_binders := placement.profile.at(Point.POST_BIND):
            await self._post_bind(placement, post_binders)

    async def _pre_bind(self, placement: Placement) -> None:
        """As a task of its own: preemption may cancel it, while the undoing continues."""
        if placement.is_preempted:
            raise PluginFault("", PREEMPTED)
        placement.pre_binding = asyncio.ensure_future(self._run_pre_bind(placement))
        try:
            await placement.pre_binding
        except asyncio.CancelledError:
            if not placement.is_preempted:
                raise
        finally:
            placement.pre_binding = None
            placement.is_cancellable = False
        # Also where the work was done before it could be cancelled: the node is nominated for the preemptor.
        if placement.is_preempted:
            raise PluginFault("", PREEMPTED)

    async def _run_pre_bind(self, placement: Placement) -> None:
        for group in placement.pre_binders:
            if len(group) == 1:
                await self._call_pre_bind(placement, group[0])
            else:
                await self._caller.call_in_parallel(partial(self._call_pre_bind, placement, each) for each in group)

    async def _call_pre_bind(self, placement: Placement, plugin: Any) -> None:
        cycle = placement.decision.cycle
        result = await self._caller.call(
            cycle, plugin, ExtensionPoint.PRE_BIND, plugin.pre_bind, placement.pod, placement.node, cycle.shown
        )
        if isinstance(result, Refusal):
            check_reasons(plugin, ExtensionPoint.PRE_BIND, result)
            _log.v(4).info("Pod rejected by PreBind plugin", pod=placement.pod, plugin=plugin.name)
            raise _Rejected(plugin, result)
        if result is not None:
            raise fault(
                plugin, ExtensionPoint.PRE_BIND, f"pre_bind returned {result!r}; it must return a Refusal or None"
            )

    async def _bind(self, placement: Placement) -> None:
        try:
            await self._run_bind(placement)
        except (PluginFault, _Rejected):
            _log.v(1).info("Failed to bind pod", pod=placement.pod)
            raise

    async def _run_bind(self, placement: Placement) -> None:
        cycle = placement.decision.cycle
        cycle.begin_binding()
        added = cycle.added_to_binding
        if self._extenders is not None:
            if added is not None and (extender := self._extenders.binder_of(placement.pod)) is not None:
                raise PluginFault(added.plugins[0], CANNOT_CARRY.format(", ".join(added.plugins), extender), "Bind")
            if await self._extenders.bind(placement.pod, placement.node.name):
                return
        if added is None:
            await self._first_binder(placement)
            return
        with self._binder.carrying(placement.pod, added):
            binder = await self._first_binder(placement)
        if not added.is_sent:
            problem = fault(binder, ExtensionPoint.BIND, f"it did not bind by the Binder service: {NOT_WRITTEN}")
            self._errors.count(problem)
            Log(binder.name).error("Bind plugin failed", pod=placement.pod, err=problem, addedBy=added.plugins)

    async def _first_binder(self, placement: Placement) -> Plugin:
        """The bind plugin that has bound the pod."""
        cycle = placement.decision.cycle
        plugin: Plugin
        for plugin in placement.profile.at(Point.BIND):
            result = await self._caller.call(
                cycle, plugin, ExtensionPoint.BIND, plugin.bind, placement.pod, placement.node, cycle.shown
            )
            if isinstance(result, Bound):
                return plugin
            if isinstance(result, Refusal):
                check_reasons(plugin, ExtensionPoint.BIND, result)
                _log.v(4).info("Pod rejected by Bind plugin", pod=placement.pod, plugin=plugin.name)
                raise _Rejected(plugin, result)
            if not isinstance(result, Skip):
                raise fault(
                    plugin, ExtensionPoint.BIND, f"bind returned {result!r}; it must return Bound, Skip or a Refusal"
                )
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
        if placement.queued.was_flushed:
            _log.v(4).info(
                "Pod scheduled after flush from unschedulablePods",
                pod=placement.pod,
                unschedulablePlugins=sorted(placement.queued.unschedulable_plugins),
                pendingPlugins=sorted(placement.queued.pending_plugins),
            )
        queued = placement.queued
        self._metrics.attempted(AttemptResult.SCHEDULED, placement.profile.name, queued.popped)
        self._metrics.bound(queued.attempts, queued.initial_attempt, after_flush=queued.was_flushed)
        self._decision_log.note(placement.pod, bound=True)
        self._reporter.scheduled(placement.pod, placement.node.name)

    async def _post_bind(self, placement: Placement, plugins: Sequence[Any]) -> None:
        cycle = placement.decision.cycle
        for plugin in plugins:
            try:
                await self._caller.call(
                    cycle,
                    plugin,
                    ExtensionPoint.POST_BIND,
                    plugin.post_bind,
                    placement.pod,
                    placement.node,
                    cycle.shown,
                )
            except PluginFault as problem:
                # The pod is bound: nothing is left to undo.
                self._errors.count(problem)
                Log(plugin.name).error("PostBind plugin failed", pod=placement.pod, err=problem, **details_of(problem))

    async def _failed(self, placement: Placement, problem: PluginFault) -> None:
        """A plugin failed after the decision: undo, requeue the pods that its place may help, then the pod itself."""
        placement.fault = problem
        await self._unreserve(placement)
        forgotten = self._forget(placement)
        if forgotten is not None:
            self._queue.on_event(ASSIGNED_POD_DELETED, forgotten, None)
        self._decision_log.note(placement.pod, node=None, error=str(problem))
        self._failures.error(placement.queued, problem)

    async def _unschedulable(self, placement: Placement, refused: PlacementRefused) -> None:
        """Reserve or Permit rejected the pod: undo, and report this one node as unschedulable."""
        await self._unreserve(placement)
        forgotten = self._forget(placement)
        self._decision_log.note(placement.pod, node=None, message=refused.message, refusedBy=[refused.plugin])
        self._failures.unschedulable(placement.queued, refused.message, *refused.rejectors, nominate="")
        self._requeue_others(placement.pod, forgotten)

    async def _rejected(self, placement: Placement, rejected: _Rejected) -> None:
        """PreBind or Bind rejected the pod: reported as unschedulable, but only time can help."""
        await self._unreserve(placement)
        forgotten = self._forget(placement)
        self._decision_log.note(placement.pod, node=None, message=str(rejected), refusedBy=[rejected.plugin])
        self._failures.rejected_at_binding(placement.queued, rejected.plugin, str(rejected))
        self._requeue_others(placement.pod, forgotten)

    def _requeue_others(self, pod: Pod, forgotten: PlacedPod | None) -> None:
        """After the pod is requeued and without it, so that it does not requeue itself."""
        if forgotten is not None:
            self._queue.on_event(ASSIGNED_POD_DELETED, forgotten, None, only=lambda other: other.uid != pod.uid)

    async def _unreserve(self, placement: Placement) -> None:
        for problem in await unreserve(placement.profile, placement.decision, self._caller.call):
            Log(problem.plugin).error("Unreserve failed", pod=placement.pod, err=problem, **details_of(problem))
            self._errors.count(problem)

    def _forget(self, placement: Placement) -> PlacedPod | None:
        """Take the assumed pod off its node; None if the watch has confirmed it meanwhile.

        One that was deleted is gone from its node already, and others were requeued for it; but what plugins had
        reserved for it is free only now. A pod that cannot be forgotten is requeued all the same: its next attempt
        fails at `assume`, and tries this again.
        """
        pod = placement.pod
        if not self._state.is_assumed(pod.uid):
            return placement.assumed if self._state.pod(pod.uid) is None else None
        try:
            return self._state.forget(pod.uid)
        except Exception as error:
            _log.error("ForgetPod failed", pod=pod, err=described(error))
            return None


def _pre_binders(placement: Placement) -> Sequence[Sequence[Plugin]]:
    """The PreBind plugins that have something to do for this pod; one without `needs_pre_bind` always has."""
    plugins = placement.profile.at(Point.PRE_BIND)
    point, cycle, needed = ExtensionPoint.PRE_BIND_PRE_FLIGHT, placement.decision.cycle, []
    with calling(cycle, None, point) as call:
        for plugin in plugins:
            if (needs_pre_bind := getattr(plugin, "needs_pre_bind", None)) is not None:
                call.switch_to(plugin)
                result = needs_pre_bind(placement.pod, placement.node, cycle.shown)
                if not isinstance(result, bool):
                    raise fault(plugin, point, f"needs_pre_bind returned {result!r}; it must return True or False")
                if not result:
                    continue
            needed.append(plugin)
    return parallel_groups(plugins, needed) if needed else ()


def internal(error: BaseException) -> PluginFault:
    """A bug in the scheduler, for the pod's event: there is no plugin to name."""
    return PluginFault("", f"internal fault: {described(error)}")
