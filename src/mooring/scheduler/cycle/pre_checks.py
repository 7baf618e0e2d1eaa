"""Pre-checks: whether a popped pod can be scheduled now."""

from __future__ import annotations

import msgspec

from mooring.base.log import Log
from mooring.engine import Profile
from mooring.framework import Pod
from mooring.framework.events import resource_name
from mooring.objects.meta import KubeObject
from mooring.objects.quantity import BadQuantity
from mooring.queue import QueuedPodInfo
from mooring.scheduler.cycle.binding_cycle import BindingCycles
from mooring.scheduler.cycle.failure_handler import FailureHandler
from mooring.scheduler.cycle.unlisted_kinds import PodsAwaitingKinds
from mooring.scheduler.introspection.decision_log import DecisionLog
from mooring.scheduler.plugin_runtime.assembly import CurrentAssembly
from mooring.scheduler.watching.informers import Informers

_log = Log("scheduler")


class PreChecks(msgspec.Struct):
    """Whether a popped pod can be scheduled now. A pod that cannot is requeued here, with the reason."""

    assembly: CurrentAssembly
    informers: Informers
    bindings: BindingCycles
    failures: FailureHandler
    decision_log: DecisionLog
    awaiting_kinds: PodsAwaitingKinds

    def skips(self, pod: Pod) -> bool:
        """Whether the pod is not to be scheduled any more: it is being deleted or bound."""
        if pod.is_terminating:
            _log.v(3).info("Skip schedule deleting pod", pod=pod)
            self.failures.skipped(pod)
            return True
        return self.bindings.is_binding(pod.uid)

    def hold(self, queued: QueuedPodInfo, profile: Profile) -> bool:
        """Whether the pod was requeued: its profile cannot decide yet, or its requests cannot be read."""
        return self._lacks_kinds(queued, profile) or self._is_unreadable(queued)

    def _lacks_kinds(self, queued: QueuedPodInfo, profile: Profile) -> bool:
        """Pods of a profile wait while a kind that its plugins read has not been listed; other profiles are
        scheduled."""
        kinds = self.assembly.current.kinds[profile.name]
        missing = self.informers.missing(kinds)
        if not missing:
            return False
        plugins = sorted({plugin for kind, _ in missing for plugin in kinds[kind]})
        why = "; ".join(problem + self._install_command(kind) for kind, problem in missing)
        self.awaiting_kinds.add(queued.pod)
        message = f"profile {profile.name} waits for what its plugin {', '.join(plugins)} reads: {why}"
        unlisted = [resource_name(kind) for kind, _ in missing]
        evidence = {"node": None, "message": message, "refusedBy": plugins, "waitsForKinds": unlisted}
        self.decision_log.write(queued.pod, {"attempt": queued.attempts, **evidence})
        self.failures.unschedulable(queued, message, plugins)
        return True

    def _install_command(self, kind: type[KubeObject]) -> str:
        """How to install a kind that the server does not have."""
        command = self.assembly.current.remedies.get(kind)
        return f" This installs it: {command}" if command and self.informers.is_unserved(kind) else ""

    def _is_unreadable(self, queued: QueuedPodInfo) -> bool:
        pod = queued.pod
        try:
            _ = pod.requests
            return False
        except BadQuantity as error:
            message = f"the requests of pod {pod.key} cannot be read: {error}"
            self.decision_log.write(pod, {"attempt": queued.attempts, "node": None, "message": message})
            self.failures.error(queued, message)
            return True
