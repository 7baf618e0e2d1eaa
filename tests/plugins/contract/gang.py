"""Gang: the pods of a group are bound together or not at all.

Pods with the label `gang` belong together; `gang-size` is how many must run at once. A gang is tried when that many
exist; each member then waits, reserved on its node, until the last one has found a place.
"""

from __future__ import annotations

from collections.abc import Iterable

from mooring.framework import (
    Action,
    Allow,
    Args,
    Cycle,
    Hint,
    NodeView,
    PlacedPod,
    Plugin,
    Pod,
    Pods,
    PodsWhere,
    Queue,
    QueuedPod,
    Refusal,
    Skip,
    Wait,
    WaitingPods,
)


class GangArgs(Args):
    label: str = "gang"
    size_label: str = "gang-size"
    wait_seconds: float = 60


class Gang(Plugin):
    """Bind the pods of a gang together or not at all."""

    def __init__(self, args: GangArgs, pods: Pods, waiting: WaitingPods, queue: Queue) -> None:
        self._args, self._pods, self._waiting, self._queue = args, pods, waiting, queue
        self._first_queued: dict[tuple[str, str], float] = {}

    def events(self) -> Iterable[Hint]:
        return [Hint(Pod, Action.ADD | Action.UPDATE_POD_LABEL, self._is_sibling)]

    def sort_key(self, queued: QueuedPod) -> tuple[int, float, str]:
        """As PrioritySort, but a gang stands together where its first member stood."""
        group = self._group(queued.pod)
        if group is None:
            return (-queued.priority, queued.timestamp, "")
        since = self._first_queued.setdefault(group, queued.timestamp)
        return (-queued.priority, since, "/".join(group))

    def pre_filter(self, pod: Pod, cycle: Cycle) -> Skip | Refusal | None:
        group = self._group(pod)
        if group is None:
            return Skip()
        siblings = self._siblings(group)
        members = {pod.uid}
        members |= {placed.uid for placed in self._pods.placed(siblings)}
        members |= {pending.uid for pending in self._pods.pending(siblings)}
        if len(members) < self._size(pod):
            return Refusal(f"gang {group[1]} has {len(members)} of {self._size(pod)} pods")
        return None

    def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> Allow | Wait:
        group = self._group(pod)
        if group is None:
            return Allow()
        siblings = self._siblings(group)
        with_a_place = {pod.uid} | {sibling.uid for sibling in self._pods.placed(siblings)}
        if len(with_a_place) < self._size(pod):
            self._queue.activate(self._pods.pending(siblings))
            return Wait(self._args.wait_seconds)
        self._first_queued.pop(group, None)
        for waiting in self._waiting:
            if self._group(waiting.pod) == group:
                self._waiting.allow(waiting.pod.uid, self.name)
        return Allow()

    def unreserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        """One that lost its place takes the waiting ones along: they would only block each other's room."""
        group = self._group(pod)
        for waiting in self._waiting:
            if group is not None and self._group(waiting.pod) == group:
                self._waiting.reject(waiting.pod.uid, self.name, f"gang {group[1]} lost pod {pod.name}")

    def _group(self, pod: Pod | PlacedPod) -> tuple[str, str] | None:
        name = pod.labels.get(self._args.label)
        return None if name is None else (pod.namespace, name)

    def _size(self, pod: Pod) -> int:
        text = pod.labels.get(self._args.size_label, "")
        return int(text) if text.isdecimal() else 1

    def _siblings(self, group: tuple[str, str]) -> PodsWhere:
        namespace, name = group
        return PodsWhere.labelled({self._args.label: name}, namespaces=[namespace], terminating=False)

    def _is_sibling(self, pod: Pod, before: Pod | PlacedPod | None, after: Pod | PlacedPod) -> bool:
        return self._group(after) == self._group(pod)
