"""The gate before the queue: pre_enqueue of the pod's profile.

Asked on every way into the active queue and into backoff, except from backoff into active, where it was asked
before. A pod that is kept out gets neither event nor condition, unless its gate failed; it waits for an event that
its gate named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mooring.base.foreign_code import described
from mooring.base.log import Log
from mooring.framework.verdicts import Code, Refusal
from mooring.objects.core import Pod
from mooring.queue.observer import QueueObserver
from mooring.queue.waiting import Gating, Waiting
from mooring.queue.wakers import NO_RULES, PRE_ENQUEUE, OnFault, PreEnqueue, ProfileRules, unheard


class Gate:
    def __init__(
        self,
        profiles: Mapping[str, ProfileRules],
        log: Log,
        on_fault: OnFault = unheard,
        observer: QueueObserver | None = None,
        on_failure: Callable[[Waiting], None] = lambda _: None,
    ) -> None:
        """`on_failure` hears of a pod that is kept out because a pre_enqueue failed, and not because it said no."""
        self._profiles = profiles
        self._log = log
        self._on_fault = on_fault
        self._observer = observer
        self._on_failure = on_failure

    def admits(self, waiting: Waiting) -> bool:
        """Whether the pod may enter; the pod remembers who keeps it out."""
        began = 0.0 if self._observer is None else self._observer.now()
        waiting.gating = self._first_refusal(waiting)
        if self._observer is not None:
            code = Code.SUCCESS if waiting.gating is None else waiting.gating.code
            self._observer.gated(waiting.pod.spec.scheduler_name, code.value, self._observer.now() - began)
        if waiting.gating is None:
            return True
        waiting.unschedulable_plugins.add(waiting.gating.plugin)
        if waiting.gating.is_failure:
            self._on_failure(waiting)
        return False

    def _first_refusal(self, waiting: Waiting) -> Gating | None:
        rules = self._profiles.get(waiting.pod.spec.scheduler_name, NO_RULES)
        # Who kept it out last time probably still does: asked first, the others need not be asked.
        in_order = sorted(rules.pre_enqueue, key=lambda entry: entry[0] != waiting.gating_plugin)
        for plugin, pre_enqueue in in_order:
            if (gating := self._ask(plugin, pre_enqueue, waiting.pod)) is not None:
                return gating
        return None

    def _ask(self, plugin: str, pre_enqueue: PreEnqueue, pod: Pod) -> Gating | None:
        try:
            refusal = pre_enqueue(pod)
            if refusal is None:
                return None
            if isinstance(refusal, Refusal):
                return Gating(plugin, refusal.code, refusal.reasons)
            fault = f"pre_enqueue answered {refusal!r}, neither None nor a Refusal"
        except KeyboardInterrupt:
            raise
        except BaseException as cause:
            fault = described(cause)
        self._log.error("A pre_enqueue failed; the pod is kept out of the queue", plugin=plugin, pod=pod, err=fault)
        self._on_fault(plugin, PRE_ENQUEUE)
        return Gating(plugin, Code.ERROR, (fault,), is_failure=True)
