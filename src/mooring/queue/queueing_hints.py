"""Queueing hints: which cluster event requeues which unschedulable pod.

Only hints of plugins that rejected the pod run, of its own profile, registered for the event. A hint that fails counts
as Queue: a needless attempt costs little, a pod that is not requeued waits five minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from mooring.base.log import Log
from mooring.framework.events import Action, ClusterEvent, Hint
from mooring.framework.verdicts import Refusal
from mooring.objects.core import Pod
from mooring.queue.observer import QueueObserver
from mooring.queue.queued_pod_info import QueuedPodInfo

PreEnqueue = Callable[[Pod], Refusal | None]
OnFault = Callable[[str, str], None]
"""Called with the plugin that failed and the extension point, as metrics name it."""
QUEUEING_HINT, PRE_ENQUEUE, QUEUE_SORT = "QueueingHint", "PreEnqueue", "QueueSort"


def ignore_fault(_plugin: str, _point: str) -> None:
    """Where faults are not counted."""


@dataclass(frozen=True)
class ProfileRules:
    """The queue's plugins of one scheduler name."""

    hints: Mapping[str, Sequence[Hint]] = field(default_factory=dict)
    """Plugin name → its registered hints."""
    pre_enqueue: Sequence[tuple[str, PreEnqueue]] = ()
    """Plugin name and its pre_enqueue, in the order in which they run."""


NO_RULES = ProfileRules()

QUEUE, SKIP, ERROR = "Queue", "QueueSkip", "Error"
"""The results of a hint, as kube-scheduler names them."""


class QueueingStrategy(IntEnum):
    """Where an event moves an unschedulable pod; the greater strategy wins."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


PluginHints = Mapping[str, Sequence[Hint]]


class QueueingHints:
    """The hints of all profiles."""

    def __init__(
        self,
        profiles: Mapping[str, ProfileRules],
        log: Log,
        on_fault: OnFault = ignore_fault,
        observer: QueueObserver | None = None,
    ) -> None:
        self._profiles = profiles
        self._log = log
        self._on_fault = on_fault
        self._observer = observer
        self._hints_by_event: dict[tuple[str, Action], dict[str, PluginHints]] = {}

    def hints_for(self, event: ClusterEvent) -> Mapping[str, PluginHints]:
        """Scheduler name → plugin → its hints that the event concerns; only those that have some."""
        kind = (event.resource, event.action)
        found = self._hints_by_event.get(kind)
        if found is None:
            found = self._hints_by_event[kind] = dict(self._look_up(event))
        return found

    def _look_up(self, event: ClusterEvent) -> Iterator[tuple[str, PluginHints]]:
        for scheduler_name, rules in self._profiles.items():
            matching = {
                plugin: tuple(hint for hint in hints if hint.matches(event)) for plugin, hints in rules.hints.items()
            }
            if matching := {plugin: hints for plugin, hints in matching.items() if hints}:
                yield scheduler_name, matching

    def is_registered(self, event: ClusterEvent) -> bool:
        """Whether any plugin of any profile registered the event. Wildcards always count."""
        return event.is_wildcard or bool(self.hints_for(event))

    def strategy(self, queued: QueuedPodInfo, event: ClusterEvent, old: Any, new: Any) -> QueueingStrategy:
        if queued.failed_by_error:
            return QueueingStrategy.AFTER_BACKOFF
        if event.is_wildcard:
            # A wildcard that carries a pod is for that pod alone.
            is_for_it = not isinstance(new, Pod) or new.uid == queued.pod.uid
            return QueueingStrategy.AFTER_BACKOFF if is_for_it else QueueingStrategy.SKIP
        of_plugins = self.hints_for(event).get(queued.pod.spec.scheduler_name, {})
        if queued.gating_plugin is not None and queued.gating_plugin not in of_plugins:
            return QueueingStrategy.SKIP
        change = (event, old, new)
        rejected_by = [plugin for plugin in of_plugins if plugin in queued.unschedulable_plugins]
        pending_on = [plugin for plugin in of_plugins if plugin in queued.pending_plugins]
        if any(self._requests_requeue(plugin, of_plugins[plugin], queued.pod, *change) for plugin in pending_on):
            return QueueingStrategy.IMMEDIATELY
        if any(self._requests_requeue(plugin, of_plugins[plugin], queued.pod, *change) for plugin in rejected_by):
            return QueueingStrategy.AFTER_BACKOFF
        return QueueingStrategy.SKIP

    def _requests_requeue(
        self, plugin: str, hints: Sequence[Hint], pod: Pod, event: ClusterEvent, old: Any, new: Any
    ) -> bool:
        observer = self._observer
        for hint in hints:
            began = 0.0 if observer is None else observer.now()
            result = self._run(plugin, hint, pod, event, old, new)
            if observer is not None:
                observer.hinted(plugin, event.label, result, observer.now() - began)
            if result != SKIP:
                return True
        return False

    def _run(self, plugin: str, hint: Hint, pod: Pod, event: ClusterEvent, old: Any, new: Any) -> str:
        try:
            return QUEUE if hint.test is None or hint.test(pod, old, new) else SKIP
        except KeyboardInterrupt:
            raise
        except BaseException as cause:
            self._log.error(
                "Queueing hint failed; the pod is requeued",
                plugin=plugin,
                event=event.label,
                pod=pod,
                err=cause,
            )
            self._on_fault(plugin, QUEUEING_HINT)
            return ERROR
