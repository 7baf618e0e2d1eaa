"""Pods and queues for the queue's tests: a case states only what matters to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mooring.base.clock import ManualClock
from mooring.framework.events import Action, ClusterEvent, Hint
from mooring.framework.verdicts import Refusal
from mooring.objects.core import (
    DEFAULT_SCHEDULER,
    Container,
    Pod,
    PodSchedulingGate,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    Toleration,
)
from mooring.objects.meta import ObjectMeta
from mooring.queue import ProfileRules, QueuedPodInfo, SchedulingQueue
from mooring.queue.queueing_hints import PreEnqueue

SERVICE_CHANGED = ClusterEvent("Service", Action.UPDATE)
NODE_HINT = Hint("Node", Action.ADD)
WAITING_PLACES = ("active", "backoff", "unschedulable", "gated")


def a_pod(
    name: str = "web",
    *,
    uid: str = "",
    priority: int = 0,
    scheduler: str = DEFAULT_SCHEDULER,
    labels: dict[str, str] | None = None,
    gates: Sequence[str] = (),
    tolerations: int = 0,
    cpu: str = "1",
    nominated: str = "",
) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace="shop", uid=uid or f"uid-of-{name}", labels=labels or {}),
        spec=PodSpec(
            scheduler_name=scheduler,
            priority=priority,
            containers=(Container(resources=ResourceRequirements(requests={"cpu": cpu})),),
            scheduling_gates=tuple(PodSchedulingGate(name=gate) for gate in gates),
            tolerations=tuple(Toleration(key=str(number)) for number in range(tolerations)),
        ),
        status=PodStatus(nominated_node_name=nominated),
    )


def by_priority(queued: Any) -> tuple[int, float]:
    return -queued.priority, queued.timestamp


def scheduling_gates(pod: Pod) -> Refusal | None:
    return Refusal("waiting for scheduling gates") if pod.spec.scheduling_gates else None


def is_this_pod(pod: Pod, _old: Any, new: Any) -> bool:
    return bool(pod.uid == new.uid)


class Recorded:
    """A hint's test or a pre_enqueue that always returns the same and records its calls."""

    def __init__(self, result: Any) -> None:
        self.result = result
        self.calls: list[tuple[Any, ...]] = []

    def __call__(self, *arguments: Any) -> Any:
        self.calls.append(arguments)
        return self.result


GATES_ELIMINATED = Hint("Pod", Action.UPDATE_POD_GATES_ELIMINATED, is_this_pod)


def a_queue(
    clock: ManualClock | None = None,
    *,
    hints: Mapping[str, Sequence[Hint]] | None = None,
    gates: Sequence[tuple[str, PreEnqueue]] = (),
    profiles: Mapping[str, ProfileRules] | None = None,
    **settings: Any,
) -> SchedulingQueue:
    """A queue of one profile, in priority order; pods refused by "Headroom" wait for a new node unless `hints` has
    otherwise."""
    rules = ProfileRules({"Headroom": [NODE_HINT]} if hints is None else hints, gates)
    return SchedulingQueue(
        clock or ManualClock(),
        profiles=profiles or {DEFAULT_SCHEDULER: rules},
        **({"sort_key": by_priority} | settings),
    )


def popped(queue: SchedulingQueue) -> QueuedPodInfo:
    waiting = queue.pop()
    assert waiting is not None, "nothing to pop"
    return waiting


def names(waiting: Sequence[QueuedPodInfo | None]) -> list[str | None]:
    return [None if one is None else one.pod.name for one in waiting]


def fail(queue: SchedulingQueue, *, refused_by: str = "", pending_on: str = "") -> QueuedPodInfo:
    """Pop a pod and put it back: refused by a plugin, or after an error if none is named."""
    waiting = popped(queue)
    queue.requeue(waiting, unschedulable=refused_by.split(), pending=pending_on.split())
    return waiting


def wait(queue: SchedulingQueue, clock: ManualClock, seconds: float) -> None:
    clock.advance(seconds)
    queue.flush()
