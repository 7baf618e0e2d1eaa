"""GangScheduling: pods of a gang are bound when `minCount` of them have a node, and not before.

PreEnqueue holds a pod until its PodGroup and `minCount` pods of the group exist. Permit lets pods wait until so many
have a node; the one that completes the quorum releases the others. Pods that run already count. Which pods of the group
are tried, and in which order, is the pod group cycle's business.
"""

from __future__ import annotations

from collections.abc import Iterable

from mooring.framework import (
    UNRESOLVABLE,
    Action,
    Allow,
    Cycle,
    Fault,
    Hint,
    NodeView,
    PlacedPod,
    Plugin,
    Pod,
    PodGroups,
    Queue,
    Refusal,
    Wait,
    WaitingPods,
)
from mooring.objects.pod_groups import PodGroup

WAIT_SECONDS = 300.0
TOO_FEW_EXIST = Refusal("waiting for minCount pods from a gang to appear in scheduling queue", code=UNRESOLVABLE)
TOO_FEW_SCHEDULED = "waiting for minCount pods from a gang to be scheduled"


def no_group(name: str) -> Refusal:
    return Refusal(f'waiting for pods\'s pod group "{name}" to appear in scheduling queue', code=UNRESOLVABLE)


class GangScheduling(Plugin):
    """Bind the pods of a gang together: minCount of them, or none."""

    def __init__(self, groups: PodGroups, waiting_pods: WaitingPods, queue: Queue) -> None:
        self._groups = groups
        self._waiting_pods = waiting_pods
        self._queue = queue

    def events(self) -> Iterable[Hint]:
        return [
            Hint(Pod, Action.ADD, _is_of_same_group, per_template=True),
            Hint(PodGroup, Action.ADD, _is_its_group, per_template=True),
        ]

    def pre_enqueue(self, pod: Pod) -> Refusal | None:
        if (name := pod.pod_group_name) is None:
            return None
        if (group := self._groups.get(pod.namespace, name)) is None:
            return no_group(name)
        if group.min_count is None:
            return None
        if (members := self._groups.members(pod.namespace, name)) is None:
            raise Fault(f"pod group state for {pod.namespace}/{name} not found")
        return TOO_FEW_EXIST if members.all_count < group.min_count else None

    def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> Allow | Wait:
        if (name := pod.pod_group_name) is None:
            return Allow()
        if (group := self._groups.get(pod.namespace, name)) is None:
            raise Fault(f'failed to get podGroup {pod.namespace}/{name}: podgroup.scheduling.k8s.io "{name}" not found')
        if group.min_count is None:
            return Allow()
        if (members := self._groups.members(pod.namespace, name)) is None:
            raise Fault(f"pod group state for {pod.namespace}/{name} not found")
        if members.scheduled_count < group.min_count:
            # In a trial every member that can be tried is being tried: there is none to activate.
            if not cycle.is_trial:
                self._queue.activate(members.unscheduled)
            return Wait(WAIT_SECONDS, TOO_FEW_SCHEDULED)
        for member in members.scheduled:
            if member.assumed_at is not None:
                self._waiting_pods.allow(member.uid, self.name)
        return Allow()


def _is_of_same_group(pod: Pod, _before: object, added: Pod | PlacedPod) -> bool:
    group = added.group if isinstance(added, PlacedPod) else added.pod_group_name
    return bool(group) and (pod.namespace, pod.pod_group_name) == (added.namespace, group)


def _is_its_group(pod: Pod, _before: object, added: PodGroup) -> bool:
    return (pod.namespace, pod.pod_group_name) == (added.namespace, added.name)
