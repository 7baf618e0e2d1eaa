"""Queueing hints: which cluster event requeues which unschedulable pod.

Only hints of plugins that rejected the pod run, of its own profile, registered for the event. A hint that fails counts
as Queue: a needless attempt costs little, a pod that is not requeued waits five minutes. A hint that is declared per
template runs once for a group of pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

from mooring.base.foreign_code import raised
from mooring.base.log import Log
from mooring.framework.events import Action, ClusterEvent, Hint
from mooring.framework.verdicts import Refusal
from mooring.objects.core import Pod
from mooring.objects.placed import PlacedPod
from mooring.objects.pod_groups import PodGroup
from mooring.queue.observer import QueueObserver
from mooring.queue.queued_pod_info import QueuedPodInfo
from mooring.queue.unschedulable_pods import PodGroupKey, WaitingFor

PreEnqueue = Callable[[Pod], Refusal | None]
PodFilter = Callable[[Pod], bool]
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
Move = tuple[QueuedPodInfo, QueueingStrategy]
OneWaitingFor = Callable[[WaitingFor], QueuedPodInfo | None]


class _Change(NamedTuple):
    """An event that is no wildcard, with what is looked up once for all pods."""

    hints: Mapping[str, PluginHints]
    label: str
    old: Any
    new: Any


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

    def concerned_by(self, event: ClusterEvent, old: Any, new: Any, one_waiting_for: OneWaitingFor) -> list[WaitingFor]:
        """Which rejected pods the event, no wildcard, may move: by profile, plugin and pod group."""
        change = _Change(self.hints_for(event), event.label, old, new)
        pod_groups = set(_pod_groups(*(each for each in (old, new) if each is not None)))
        concerned = []
        for scheduler_name, of_plugins in change.hints.items():
            for plugin, hints in of_plugins.items():
                if not all(hint.within_pod_group for hint in hints) or None in pod_groups:
                    concerned.append(WaitingFor(scheduler_name, plugin))
                    continue
                for key in (WaitingFor(scheduler_name, plugin, pod_group) for pod_group in pod_groups):
                    # One stands for all of the pod group: a large gang is not looked at for each pod that joins it.
                    if (one := one_waiting_for(key)) is not None and self._passes(plugin, hints, one.pod, change):
                        concerned.append(key)
        return concerned

    def _passes(self, plugin: str, hints: Sequence[Hint], pod: Pod, change: _Change) -> bool:
        return any(self._timed(plugin, hint, pod, change) != SKIP for hint in hints)

    def moves(
        self,
        groups: Iterable[Mapping[str, QueuedPodInfo]],
        event: ClusterEvent,
        old: Any,
        new: Any,
        only: PodFilter | None = None,
    ) -> list[Move]:
        """Of groups of pods those that the event, no wildcard, moves, if they pass `only`; and how."""
        change = _Change(self.hints_for(event), event.label, old, new)
        changed = {getattr(each, "uid", "") for each in (old, new)}
        moves: list[Move] = []
        for pods in groups:
            common: QueueingStrategy | None = None
            itself = changed.intersection(pods)
            for uid in itself:
                if only is None or only(pods[uid].pod):
                    moves.append((pods[uid], self._evaluate(pods[uid], change)[0]))
            for uid, queued in pods.items():
                if uid in itself or (only is not None and not only(queued.pod)):
                    continue
                strategy = common
                if strategy is None:
                    strategy, is_common = self._evaluate(queued, change)
                    if is_common and strategy is QueueingStrategy.SKIP:
                        break
                    common = strategy if is_common else None
                moves.append((queued, strategy))
        return moves

    def strategy(self, queued: QueuedPodInfo, event: ClusterEvent, old: Any, new: Any) -> QueueingStrategy:
        if queued.failed_by_error:
            return QueueingStrategy.AFTER_BACKOFF
        if event.is_wildcard:
            # A wildcard that carries a pod is for that pod alone.
            is_for_it = not isinstance(new, Pod) or new.uid == queued.pod.uid
            return QueueingStrategy.AFTER_BACKOFF if is_for_it else QueueingStrategy.SKIP
        return self._evaluate(queued, _Change(self.hints_for(event), event.label, old, new))[0]

    def _evaluate(self, queued: QueuedPodInfo, change: _Change) -> tuple[QueueingStrategy, bool]:
        """The strategy, and whether it is that of the whole group: the hints that ran are declared per template, and
        none failed."""
        of_plugins, is_common = change.hints.get(queued.pod.spec.scheduler_name, {}), True
        if queued.gating_plugin is not None and queued.gating_plugin not in of_plugins:
            return QueueingStrategy.SKIP, is_common
        for rejectors, strategy in (
            (queued.pending_plugins, QueueingStrategy.IMMEDIATELY),
            (queued.unschedulable_plugins, QueueingStrategy.AFTER_BACKOFF),
        ):
            if not rejectors:
                continue
            for plugin, hints in of_plugins.items():
                for hint in hints if plugin in rejectors else ():
                    result = self._timed(plugin, hint, queued.pod, change)
                    is_common &= hint.per_template and result != ERROR
                    if result != SKIP:
                        return strategy, is_common
        return QueueingStrategy.SKIP, is_common

    def _timed(self, plugin: str, hint: Hint, pod: Pod, change: _Change) -> str:
        if (observer := self._observer) is None:
            return self._run(plugin, hint, pod, change)
        began = observer.now()
        result = self._run(plugin, hint, pod, change)
        observer.hinted(plugin, change.label, result, observer.now() - began)
        return result

    def _run(self, plugin: str, hint: Hint, pod: Pod, change: _Change) -> str:
        try:
            return QUEUE if hint.test is None or hint.test(pod, change.old, change.new) else SKIP
        except KeyboardInterrupt:
            raise
        except BaseException as cause:
            self._log.error(
                "Queueing hint failed; the pod is requeued",
                plugin=plugin,
                event=change.label,
                pod=pod,
                **raised(cause, hint.test),
            )
            self._on_fault(plugin, QUEUEING_HINT)
            return ERROR


def _pod_groups(*changed: Any) -> Iterator[PodGroupKey | None]:
    """The pod groups that the objects belong to, or are. None for an object that is neither pod nor PodGroup."""
    for each in changed:
        match each:
            case Pod():
                if name := each.pod_group_name:
                    yield each.namespace, name
            case PlacedPod():
                if each.group:
                    yield each.namespace, each.group
            case PodGroup():
                yield each.namespace, each.name
            case _:
                yield None
