"""Which cluster event is worth another attempt of which refused pod.

Only plugins that refused the pod are asked, only those of its own profile, and only hints that concern the event. A
hint whose test fails counts as "try again": a needless attempt costs little, a pod nobody wakes costs five minutes.
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
from mooring.queue.waiting import Waiting

PreEnqueue = Callable[[Pod], Refusal | None]
OnFault = Callable[[str, str], None]
"""Hears which plugin failed, and at what: an extension point as metrics name it."""
QUEUEING_HINT, PRE_ENQUEUE, QUEUE_SORT = "QueueingHint", "PreEnqueue", "QueueSort"


def unheard(_plugin: str, _point: str) -> None:
    """Nobody counts faults."""


@dataclass(frozen=True)
class ProfileRules:
    """What the queue asks of one scheduler name's plugins."""

    hints: Mapping[str, Sequence[Hint]] = field(default_factory=dict)
    """Plugin name → its registered hints."""
    pre_enqueue: Sequence[tuple[str, PreEnqueue]] = ()
    """Plugin name and its pre_enqueue, in the order in which they are asked."""


NO_RULES = ProfileRules()

QUEUE, SKIP, ERROR = "Queue", "QueueSkip", "Error"
"""What a hint says, in kube-scheduler's words."""


class Answer(IntEnum):
    """What an event means to one refused pod; the greater answer wins."""

    STAY = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


PluginHints = Mapping[str, Sequence[Hint]]


class Wakers:
    """The hints of all profiles."""

    def __init__(
        self,
        profiles: Mapping[str, ProfileRules],
        log: Log,
        on_fault: OnFault = unheard,
        observer: QueueObserver | None = None,
    ) -> None:
        self._profiles = profiles
        self._log = log
        self._on_fault = on_fault
        self._observer = observer
        self._concerned: dict[tuple[str, Action], dict[str, PluginHints]] = {}

    def concerned(self, event: ClusterEvent) -> Mapping[str, PluginHints]:
        """Scheduler name → plugin → its hints that the event concerns; only those that have some."""
        kind = (event.resource, event.action)
        found = self._concerned.get(kind)
        if found is None:
            found = self._concerned[kind] = dict(self._look_up(event))
        return found

    def _look_up(self, event: ClusterEvent) -> Iterator[tuple[str, PluginHints]]:
        for scheduler_name, rules in self._profiles.items():
            matching = {
                plugin: tuple(hint for hint in hints if hint.concerns(event)) for plugin, hints in rules.hints.items()
            }
            if matching := {plugin: hints for plugin, hints in matching.items() if hints}:
                yield scheduler_name, matching

    def is_of_interest(self, event: ClusterEvent) -> bool:
        """Whether any plugin of any profile registered the event. Wildcards always count."""
        return event.is_wildcard or bool(self.concerned(event))

    def answer(self, waiting: Waiting, event: ClusterEvent, old: Any, new: Any) -> Answer:
        if waiting.failed_by_error:
            return Answer.AFTER_BACKOFF
        if event.is_wildcard:
            # A wildcard that carries a pod is meant for that pod alone.
            is_meant = not isinstance(new, Pod) or new.uid == waiting.pod.uid
            return Answer.AFTER_BACKOFF if is_meant else Answer.STAY
        of_plugins = self.concerned(event).get(waiting.pod.spec.scheduler_name, {})
        if waiting.gating_plugin is not None and waiting.gating_plugin not in of_plugins:
            return Answer.STAY
        happened = (event, old, new)
        refused_by = [plugin for plugin in of_plugins if plugin in waiting.unschedulable_plugins]
        pending_on = [plugin for plugin in of_plugins if plugin in waiting.pending_plugins]
        if any(self._says_queue(plugin, of_plugins[plugin], waiting.pod, *happened) for plugin in pending_on):
            return Answer.IMMEDIATELY
        if any(self._says_queue(plugin, of_plugins[plugin], waiting.pod, *happened) for plugin in refused_by):
            return Answer.AFTER_BACKOFF
        return Answer.STAY

    def _says_queue(
        self, plugin: str, hints: Sequence[Hint], pod: Pod, event: ClusterEvent, old: Any, new: Any
    ) -> bool:
        observer = self._observer
        for hint in hints:
            began = 0.0 if observer is None else observer.now()
            said = self._ask(plugin, hint, pod, event, old, new)
            if observer is not None:
                observer.hinted(plugin, event.label, said, observer.now() - began)
            if said != SKIP:
                return True
        return False

    def _ask(self, plugin: str, hint: Hint, pod: Pod, event: ClusterEvent, old: Any, new: Any) -> str:
        try:
            return QUEUE if hint.test is None or hint.test(pod, old, new) else SKIP
        except KeyboardInterrupt:
            raise
        except BaseException as cause:
            self._log.error(
                "A queueing hint failed; the pod is tried again",
                plugin=plugin,
                event=event.label,
                pod=pod,
                err=cause,
            )
            self._on_fault(plugin, QUEUEING_HINT)
            return ERROR
