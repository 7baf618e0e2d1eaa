"""Gang: the pods of a group are bound together, or none of them is.

Pods with the same label `example.com/gang` in a namespace are a gang; `example.com/gang-size` is how many must run at
once. While fewer exist, none is tried. Each member that finds a node waits there, reserved, until the last one has
found a place too. When a member's time is up, or it cannot be bound, the others give their places back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from mooring.framework import (
    UNRESOLVABLE,
    Action,
    Allow,
    Args,
    Cycle,
    Hint,
    Meta,
    NodeView,
    PlacedPod,
    Plugin,
    Pod,
    Pods,
    PodsWhere,
    Queue,
    Refusal,
    Skip,
    Wait,
    WaitingPods,
)

from .labels import GANG, GANG_SIZE, group_of


class GangArgs(Args):
    wait_seconds: Annotated[float, Meta(gt=0, le=900, description="How long a member waits for the others.")] = 60


class Gang(Plugin):
    """Bind the pods of a gang together, or none of them."""

    def __init__(self, args: GangArgs, pods: Pods, waiting: WaitingPods, queue: Queue) -> None:
        self._wait_seconds = args.wait_seconds
        self._pods, self._waiting, self._queue = pods, waiting, queue

    def events(self) -> Iterable[Hint]:
        """A member that was refused is tried again when another comes."""
        return [Hint(Pod, Action.ADD | Action.UPDATE_POD_LABEL, self._is_sibling)]

    def _is_sibling(self, pod: Pod, before: Pod | PlacedPod | None, after: Pod | PlacedPod) -> bool:
        return group_of(after) == group_of(pod)

    def pre_filter(self, pod: Pod, cycle: Cycle) -> Skip | Refusal | None:
        group = group_of(pod)
        if group is None:
            return Skip()
        if (size := _size(pod)) is None:
            return Refusal(f"the label {GANG_SIZE} must be a whole number of 1 or more", code=UNRESOLVABLE)
        where = _members(group)
        # The pod that is being decided is pending itself.
        there = len(self._pods.pending(where)) + len(self._pods.placed(where))
        return Refusal(f"{there} of {size} pods of gang {group[1]} are there") if there < size else None

    def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> Allow | Wait:
        group = group_of(pod)
        if group is None:
            return Allow()
        where = _members(group)
        # The pod itself has been placed: it is assumed on its node.
        if len(self._pods.placed(where)) < (_size(pod) or 1):
            self._queue.activate(self._pods.pending(where))
            return Wait(self._wait_seconds)
        for waiting in self._waiting:
            if group_of(waiting.pod) == group:
                self._waiting.allow(waiting.pod.uid, self)
        return Allow()

    def unreserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        """One that loses its place takes the waiting ones along: alone they only take room from others."""
        group = group_of(pod)
        for waiting in self._waiting:
            if group is not None and group_of(waiting.pod) == group:
                self._waiting.reject(waiting.pod.uid, self, f"gang {group[1]} lost pod {pod.name}")


def _members(group: tuple[str, str]) -> PodsWhere:
    namespace, name = group
    return PodsWhere.labelled({GANG: name}, namespaces=[namespace], terminating=False)


def _size(pod: Pod) -> int | None:
    text = pod.labels.get(GANG_SIZE, "")
    return int(text) if text.isdecimal() and int(text) > 0 else None
