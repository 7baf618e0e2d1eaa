"""Which pods of lower priority are exempt from preemption, by annotations of their PriorityClass.

`minimum-preemptable-priority` is the priority from which on a pod may preempt them, whatever else holds;
`toleration-seconds` is how long after they were scheduled they are exempt from those below it.
"""

from __future__ import annotations

import math
import re

import msgspec

from mooring.base.clock import parse_timestamp
from mooring.framework import Objects, PlacedPod, Pod
from mooring.objects.core import PodCondition
from mooring.objects.meta import KubeObject
from mooring.objects.scheduling import PriorityClass
from mooring.objects.wire import Wire

PREFIX = "preemption-toleration.scheduling.x-k8s.io/"
MINIMUM_PRIORITY = PREFIX + "minimum-preemptable-priority"
TOLERATION_SECONDS = PREFIX + "toleration-seconds"
NOT_EXEMPT = -math.inf
_WHOLE = re.compile(r"[+-]?[0-9]+", re.ASCII)


class ClassedPodSpec(Wire):
    priority_class_name: str = ""


class ClassedPodStatus(Wire):
    conditions: list[PodCondition] = []


class ClassedPod(KubeObject, version="v1", plural="pods", kind="Pod"):
    """What tolerations read of a pod: its class, and when it was scheduled. The scheduler's records lack both."""

    spec: ClassedPodSpec = msgspec.field(default_factory=ClassedPodSpec)
    status: ClassedPodStatus = msgspec.field(default_factory=ClassedPodStatus)


class ClassMissing(LookupError):
    """The PriorityClass of a pod is gone."""

    def __init__(self, name: str) -> None:
        super().__init__(f'priorityclass.scheduling.k8s.io "{name}" not found')


class TolerationPolicy(msgspec.Struct, frozen=True):
    """What a PriorityClass tolerates."""

    minimum_priority: int
    seconds: int


def toleration_of(annotated: PriorityClass) -> TolerationPolicy | None:
    """None: an annotation cannot be read, and nothing is tolerated."""
    minimum = _whole(annotated.annotations.get(MINIMUM_PRIORITY, str(annotated.value + 1)), 32)
    seconds = _whole(annotated.annotations.get(TOLERATION_SECONDS, "0"), 64)
    return None if minimum is None or seconds is None else TolerationPolicy(minimum, seconds)


def _whole(text: str, bits: int) -> int | None:
    number = int(text) if len(text) <= 20 and _WHOLE.fullmatch(text) else None
    return number if number is not None and -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else None


class PreemptionTolerations:
    """The tolerations of all PriorityClasses, and the pods that have one."""

    def __init__(self, classes: Objects[PriorityClass], pods: Objects[ClassedPod]) -> None:
        self._classes, self._pods = classes, pods

    def may_exempt(self, preemptor: Pod) -> bool:
        """Whether any class exempts any pod from this one; if not, no pod has to be looked at."""
        return any(
            preemptor.priority < toleration.minimum_priority
            for each in self._classes.all()
            if each.value < preemptor.priority and (toleration := toleration_of(each)) is not None
        )

    def exempt_until(self, victim: PlacedPod, preemptor: Pod) -> float:
        """Until when it is exempt from this pod: infinite for as long as nothing changes. Raises `ClassMissing`."""
        pod = self._pods.get(victim.name, victim.namespace)
        if pod is None or not pod.spec.priority_class_name:
            return NOT_EXEMPT
        of_victim = self._classes.get(pod.spec.priority_class_name)
        if of_victim is None:
            raise ClassMissing(pod.spec.priority_class_name)
        toleration = toleration_of(of_victim)
        if toleration is None or preemptor.priority >= toleration.minimum_priority:
            return NOT_EXEMPT
        scheduled_at = _scheduled_at(pod)
        return math.inf if toleration.seconds < 0 or scheduled_at is None else scheduled_at + toleration.seconds


def _scheduled_at(pod: ClassedPod) -> float | None:
    """None: not yet, as far as its conditions show."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled":
            if condition.status != "True":
                return None
            return parse_timestamp(condition.last_transition_time) if condition.last_transition_time else 0.0
    return None
