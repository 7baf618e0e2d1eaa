"""GangScheduling: pods of a gang are bound when `minCount` of them have a node, and not before.

PreEnqueue holds a pod until its PodGroup and `minCount` pods of the group exist. Permit lets pods wait until so many
have a node; the one that completes the quorum releases the others. Pods that run already count. Where one of those that
wait is rejected, the others give up their nodes with it. Where some are bound and the rest does not fit, the bound ones
are evicted after a time-out. Which pods of the group are tried, and in which order, is the pod group cycle's business.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from mooring.framework import (
    UNRESOLVABLE,
    Action,
    Allow,
    Args,
    Clock,
    Cycle,
    Fault,
    Hint,
    Meta,
    NodeView,
    PlacedPod,
    Plugin,
    Pod,
    PodGroupMembers,
    PodGroupPlan,
    PodGroups,
    Queue,
    Refusal,
    Wait,
    WaitingPods,
)
from mooring.objects.pod_groups import PodGroup
from mooring.plugins.partial_groups import PartialGroups, members_bound, time_left, why_evicted

WAIT_SECONDS = 300.0
TOO_FEW_EXIST = Refusal("waiting for minCount pods from a gang to appear in scheduling queue", code=UNRESOLVABLE)
TOO_FEW_SCHEDULED = "waiting for minCount pods from a gang to be scheduled"
GANG_FAILED = "node(s) released because another pod of the gang failed"


def no_group(name: str) -> Refusal:
    return Refusal(f'waiting for pods\'s pod group "{name}" to appear in scheduling queue', code=UNRESOLVABLE)


class GangSchedulingArgs(Args):
    """Arguments of GangScheduling."""

    release_waiting_pods: Annotated[
        bool,
        Meta(
            description="Whether pods that wait for their gang release their nodes when one of them fails. "
            "false: each when its own time is up, as kube-scheduler does it."
        ),
    ] = True
    evict_partial_groups: Annotated[
        bool,
        Meta(
            description="Whether pods that are bound without the rest of their gang (after a crash) are evicted if the "
            "rest does not fit. false: they stay, as kube-scheduler does it."
        ),
    ] = True
    partial_group_timeout_seconds: Annotated[
        int, Meta(ge=1, description="How long such pods stay for the rest of their gang.")
    ] = 300


class GangScheduling(Plugin):
    """Bind the pods of a gang together: minCount of them, or none."""

    def __init__(
        self, args: GangSchedulingArgs, groups: PodGroups, waiting_pods: WaitingPods, queue: Queue, clock: Clock
    ) -> None:
        self._releases = args.release_waiting_pods
        self._evicts = args.evict_partial_groups
        self._timeout_seconds = args.partial_group_timeout_seconds
        self._groups = groups
        self._waiting_pods = waiting_pods
        self._queue = queue
        self._partial = PartialGroups(clock)

    def events(self) -> Iterable[Hint]:
        return [
            Hint(Pod, Action.ADD, self._is_admitted_with, per_template=True, within_pod_group=True),
            Hint(PodGroup, Action.ADD, _is_its_group, per_template=True, within_pod_group=True),
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

    def _is_admitted_with(self, pod: Pod, _before: object, added: Pod | PlacedPod) -> bool:
        """Whether a pod of its group was added, and `pre_enqueue` admits the pod now: so it runs for one of the
        pods that came before, not for each of them."""
        return _are_of_same_group(pod, added) and self.pre_enqueue(pod) is None

    def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> Allow | Wait:
        if (name := pod.pod_group_name) is None:
            return Allow()
        if (group := self._groups.get(pod.namespace, name)) is None:
            raise Fault(f'failed to get podGroup {pod.namespace}/{name}: podgroup.scheduling.k8s.io "{name}" not found')
        if group.min_count is None:
            return Allow()
        if (members := self._groups.members(pod.namespace, name)) is None:
            raise Fault(f"pod group state for {pod.namespace}/{name} not found")
        if self._scheduled_count(group, group.min_count, members) < group.min_count:
            # In a trial every member that can be tried is being tried: there is none to activate.
            if not cycle.is_trial:
                self._queue.activate(members.unscheduled)
            return Wait(WAIT_SECONDS, TOO_FEW_SCHEDULED)
        # After a trial the gang may still fail: those that wait since an earlier cycle must not be bound alone.
        if not cycle.is_trial:
            for member in members.scheduled:
                if member.assumed_at is not None:
                    self._waiting_pods.allow(member.uid, self)
        return Allow()

    def unreserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        """The pod was rejected or failed: without it the gang is not complete, and the others wait for nothing."""
        if not self._releases or cycle.is_trial or (name := pod.pod_group_name) is None:
            return
        group, members = self._groups.get(pod.namespace, name), self._groups.members(pod.namespace, name)
        if members is None:
            return
        others = [member for member in members.scheduled if member.uid != pod.uid]
        if group is not None and len(others) >= (group.min_count or 0):
            return
        for member in others:
            if member.assumed_at is not None:
                self._waiting_pods.reject(member.uid, self, GANG_FAILED)

    def _scheduled_count(self, group: PodGroup, least: int, members: PodGroupMembers) -> int:
        """Without those that are evicted because the gang could not be completed: they hold their nodes until they
        end."""
        if not self._evicts or members.most_bound_count >= least:
            return members.scheduled_count
        evicted = self._partial.evicted(group.uid)
        if not evicted and not members.preempted_count:
            return members.scheduled_count
        return sum(not member.is_preempted and member.uid not in evicted for member in members.scheduled)

    def pod_group_unschedulable(self, group: PodGroup) -> PodGroupPlan | None:
        """Some of its members may be bound without the others: evict them when the time-out has passed."""
        least, members = group.min_count, self._groups.members(group.namespace, group.name)
        if not self._evicts or least is None or members is None:
            return None
        if group.was_complete or members.most_bound_count >= least:
            return None
        scheduled = members.scheduled
        bound = members_bound(scheduled)
        if any(not member.is_bound for member in scheduled):
            return None  # their bindings are under way
        left = self._partial.seconds_left(group.uid, least, bound, lambda: members.unscheduled, self._timeout_seconds)
        if left is None or left > 0:
            return None
        self._partial.note_eviction(group.uid)
        return PodGroupPlan(bound, why_evicted(group.key, len(bound), least))

    def explain(self, pod: Pod) -> Iterable[str]:
        if (name := pod.pod_group_name) is None or (group := self._groups.get(pod.namespace, name)) is None:
            return
        least, members = group.min_count or 0, self._groups.members(pod.namespace, name)
        if not self._evicts or members is None or members.most_bound_count >= least:
            return
        if (left := self._partial.seconds_known(group.uid)) is not None:
            yield f"gang {name}: {time_left(len(members_bound(members.scheduled)), least, left)}"


def _are_of_same_group(pod: Pod, added: Pod | PlacedPod) -> bool:
    group = added.group if isinstance(added, PlacedPod) else added.pod_group_name
    return bool(group) and (pod.namespace, pod.pod_group_name) == (added.namespace, group)


def _is_its_group(pod: Pod, _before: object, added: PodGroup) -> bool:
    return (pod.namespace, pod.pod_group_name) == (added.namespace, added.name)
