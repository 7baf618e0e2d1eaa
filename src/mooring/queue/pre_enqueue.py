"""PreEnqueue: plugins of the pod's profile that admit it to the queue.

They run on every way into activeQ and backoffQ, except from backoffQ into activeQ, where they ran before. A gated pod
gets neither event nor condition, unless the plugin failed; it waits for an event that the plugin registered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mooring.base.foreign_code import described
from mooring.base.log import Log
from mooring.framework.verdicts import Code, Refusal
from mooring.objects.core import Pod
from mooring.queue.observer import QueueObserver
from mooring.queue.queued_pod_info import Gating, QueuedPodInfo
from mooring.queue.queueing_hints import NO_RULES, PRE_ENQUEUE, OnFault, PreEnqueue, ProfileRules, ignore_fault


class PreEnqueueGate:
    def __init__(
        self,
        profiles: Mapping[str, ProfileRules],
        log: Log,
        on_fault: OnFault = ignore_fault,
        observer: QueueObserver | None = None,
        on_failure: Callable[[QueuedPodInfo], None] = lambda _: None,
    ) -> None:
        """`on_failure` is called with a pod that is gated because its plugin failed, not because it rejected it."""
        self._profiles = profiles
        self._log = log
        self._on_fault = on_fault
        self._observer = observer
        self._on_failure = on_failure

    def admits(self, queued: QueuedPodInfo) -> bool:
        """Whether the pod may enter; `gating` of the pod names the plugin that gates it."""
        began = 0.0 if self._observer is None else self._observer.now()
        queued.gating = self._first_gating(queued)
        if self._observer is not None:
            code = Code.SUCCESS if queued.gating is None else queued.gating.code
            self._observer.gated(queued.pod.spec.scheduler_name, code.value, self._observer.now() - began)
        if queued.gating is None:
            return True
        queued.unschedulable_plugins.add(queued.gating.plugin)
        if queued.gating.is_failure:
            self._on_failure(queued)
        return False

    def _first_gating(self, queued: QueuedPodInfo) -> Gating | None:
        in_order = self._profiles.get(queued.pod.spec.scheduler_name, NO_RULES).pre_enqueue
        known = queued.gating
        if known is not None:
            # The plugin that gated it last time probably still does: run it first, and the others need not run.
            for plugin, pre_enqueue in in_order:
                if plugin == known.plugin and (gating := self._run(plugin, pre_enqueue, queued.pod, known)) is not None:
                    return gating
        for plugin, pre_enqueue in in_order:
            has_run = known is not None and plugin == known.plugin
            if not has_run and (gating := self._run(plugin, pre_enqueue, queued.pod)) is not None:
                return gating
        return None

    def _run(self, plugin: str, pre_enqueue: PreEnqueue, pod: Pod, known: Gating | None = None) -> Gating | None:
        """`known`: returned where the plugin gates the pod for the same reasons again."""
        try:
            refusal = pre_enqueue(pod)
            if refusal is None:
                return None
            if isinstance(refusal, Refusal):
                if known is not None and (known.code, known.reasons) == (refusal.code, refusal.reasons):
                    return known
                return Gating(plugin, refusal.code, refusal.reasons)
            fault = f"pre_enqueue returned {refusal!r}, neither None nor a Refusal"
        except KeyboardInterrupt:
            raise
        except BaseException as cause:
            fault = described(cause)
        self._log.error("PreEnqueue plugin failed; the pod stays gated", plugin=plugin, pod=pod, err=fault)
        self._on_fault(plugin, PRE_ENQUEUE)
        return Gating(plugin, Code.ERROR, (fault,), is_failure=True)
