"""One pod's turn: taken up, decided about, and handed to whoever does what was decided.

A bug of ours, or of a plugin, costs one attempt: never the pod, never the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypedDict

from mooring.base.foreign_code import described, is_its_own
from mooring.base.log import Log
from mooring.engine import Decision, DecisionCache, Profile, decide
from mooring.engine.time_budget import TimeBudget
from mooring.framework import Pod
from mooring.framework.events import resource_name
from mooring.objects.meta import KubeObject
from mooring.objects.quantity import BadQuantity
from mooring.queue import QueuedPodInfo, SchedulingQueue
from mooring.scheduler.cycle.binding_cycle import BindingCycles, Placement, internal
from mooring.scheduler.cycle.failure_handler import FailureHandler
from mooring.scheduler.cycle.overruns import Overruns
from mooring.scheduler.cycle.reporting import Reporter
from mooring.scheduler.extenders import Extenders, decide_with
from mooring.scheduler.introspection.decision_log import DecisionLog
from mooring.scheduler.metrics import SchedulerMetrics
from mooring.scheduler.plugin_runtime.assembly import Assembly
from mooring.scheduler.watching.feeds import PodFeed
from mooring.scheduler.watching.informers import Informers
from mooring.state import State

_log = Log("scheduler")


class Inputs(TypedDict):
    """What a decision needs beside profile, pod and state."""

    attempt: int
    seed: int
    start: int
    cache: DecisionCache
    budget: TimeBudget | None


@dataclass
class Attempts:
    """Tries pods, one after the other."""

    assembly: Assembly
    state: State
    queue: SchedulingQueue
    pods: PodFeed
    informers: Informers
    journal: DecisionLog
    failures: FailureHandler
    reporter: Reporter
    bindings: BindingCycles
    metrics: SchedulerMetrics
    budget: TimeBudget | None
    """The time that plugins have for one attempt; None: any."""
    overruns: Overruns
    conclude: Callable[[QueuedPodInfo, Profile, Decision], None]
    """Does what was decided."""
    _held: dict[str, Pod] = field(default_factory=dict)
    """Pods whose profile waits for a kind that has not been listed."""
    _starts: dict[str, int] = field(default_factory=dict)
    """Where each profile's next search begins."""
    _cache: DecisionCache = field(default_factory=DecisionCache)
    _decisions: int = 0

    def attempt(self, waiting: QueuedPodInfo) -> None:
        """One pod, from the queue to the start of its binding. Nothing waits here, so nothing comes in between."""
        decision: Decision | None = None
        try:
            if (profile := self._taken_up(waiting)) is not None:
                watch = self.metrics.attempts.begin()
                decision = decide(profile, waiting.pod, self.state, watch=watch, **self._inputs(waiting, profile))
                self._charge(waiting)
                self.metrics.attempts.decided(profile, decision)
                self._starts[profile.name] = decision.next_start
                self.conclude(waiting, profile, decision)
                self.metrics.attempts.over(decision)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._contain(waiting, decision, error)

    async def attempt_with(self, extenders: Extenders, waiting: QueuedPodInfo) -> None:
        """The same with extenders: nothing else is decided while they think, but watches and bindings go on."""
        decision: Decision | None = None
        try:
            if (profile := self._taken_up(waiting)) is not None:
                inputs = self._inputs(waiting, profile)
                watch = self.metrics.attempts.begin()
                decision = await decide_with(extenders, profile, waiting.pod, self.state, watch=watch, **inputs)
                self._charge(waiting)
                self.metrics.attempts.decided(profile, decision)
                if not self._is_lost(waiting):
                    self._starts[profile.name] = decision.next_start
                    self.conclude(waiting, profile, decision)
                self.metrics.attempts.over(decision)
        except BaseException as error:
            if not is_its_own(error):
                raise
            self._contain(waiting, decision, error)

    def _taken_up(self, waiting: QueuedPodInfo) -> Profile | None:
        """The profile that decides about the pod; None if it cannot be tried now, which is dealt with here."""
        pod = waiting.pod
        profile = self.assembly.profiles[pod.spec.scheduler_name]
        _log.v(4).info("About to try and schedule pod", pod=pod)
        if self._skips(pod):
            self.queue.done(pod.uid)
            return None
        _log.v(3).info("Attempting to schedule pod", pod=pod)
        if self.overruns.holds(waiting) or self._holds(waiting, profile) or self._is_unreadable(waiting):
            return None
        return profile

    def _is_lost(self, waiting: QueuedPodInfo) -> bool:
        """Whether the pod went, or got a node, while extenders were asked."""
        latest = self.pods.latest(waiting.pod.uid)
        if latest is None:
            self.failures.drop(waiting.pod)
        elif self._skips(latest):
            self.queue.done(latest.uid)
        else:
            return False
        return True

    def _contain(self, waiting: QueuedPodInfo, decision: Decision | None, error: BaseException) -> None:
        """A bug of ours must cost one attempt, not the pod and not the scheduler."""
        pod = waiting.pod
        _log.error("Unexpected fault while scheduling", pod=pod, err=described(error))
        if decision is None or decision.view is None:
            self.failures.broken(waiting, str(internal(error)))
        else:
            profile = self.assembly.profiles[pod.spec.scheduler_name]
            self.bindings.give_up(Placement(waiting, pod, profile, decision, decision.view, {}), internal(error))

    def _skips(self, pod: Pod) -> bool:
        if pod.is_terminating:
            _log.v(3).info("Skip schedule deleting pod", pod=pod)
            self.reporter.failed(pod, f"skip schedule deleting pod: {pod.key}")
            return True
        return self.bindings.is_under_way(pod.uid)

    def _holds(self, waiting: QueuedPodInfo, profile: Profile) -> bool:
        """Whether the profile must wait for a kind that its plugins read; only its own pods do."""
        kinds = self.assembly.kinds[profile.name]
        missing = self.informers.missing(kinds)
        if not missing:
            return False
        plugins = sorted({plugin for kind, _ in missing for plugin in kinds[kind]})
        why = "; ".join(problem + self._remedy(kind) for kind, problem in missing)
        self._held[waiting.pod.uid] = waiting.pod
        message = f"profile {profile.name} waits for what its plugin {', '.join(plugins)} reads: {why}"
        kinds_missing = [resource_name(kind) for kind, _ in missing]
        evidence = {"node": None, "message": message, "refusedBy": plugins, "waitsForKinds": kinds_missing}
        self.journal.write(waiting.pod, {"attempt": waiting.attempts, **evidence})
        self.failures.refused(waiting, message, unschedulable=plugins)
        return True

    def _remedy(self, kind: type[KubeObject]) -> str:
        """How to install a kind that the server does not have."""
        command = self.assembly.remedies.get(kind)
        return f" This installs it: {command}" if command and self.informers.is_unserved(kind) else ""

    def _is_unreadable(self, waiting: QueuedPodInfo) -> bool:
        pod = waiting.pod
        try:
            _ = pod.requests
            return False
        except BadQuantity as error:
            message = f"the requests of pod {pod.key} cannot be read: {error}"
            self.journal.write(pod, {"attempt": waiting.attempts, "node": None, "message": message})
            self.failures.broken(waiting, message)
            return True

    def _inputs(self, waiting: QueuedPodInfo, profile: Profile) -> Inputs:
        self._decisions += 1
        if self.budget is not None:
            self.budget.renew()
        return Inputs(
            attempt=waiting.attempts,
            seed=self._decisions,
            start=self._starts.get(profile.name, 0),
            cache=self._cache,
            budget=self.budget,
        )

    def _charge(self, waiting: QueuedPodInfo) -> None:
        if self.budget is not None:
            self.overruns.attempted(waiting.pod.namespace, self.budget.spent_seconds)

    def kind_came(self) -> None:
        """A kind has been listed that plugins read: whoever waited for one tries again."""
        held, self._held = self._held, {}
        self.queue.activate(held.values())

    def forget(self, uid: str) -> None:
        """The pod waits no longer."""
        self._held.pop(uid, None)
