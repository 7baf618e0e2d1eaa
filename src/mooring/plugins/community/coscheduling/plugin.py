"""Coscheduling: pods of a PodGroup wait on Permit until minMember of them have a node.

A pod belongs to the group that its label names. PreFilter keeps it back while members are missing; Permit holds it,
reserved, until enough members are; one member that fits nowhere releases all of them. Groups that wait at the same
time yield to the first of them in the order of the queue, if that helps: no two hold what the other needs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Annotated

import numpy as np

from mooring.base.clock import parse_timestamp
from mooring.framework import (
    UNRESOLVABLE,
    Action,
    Allow,
    Args,
    Clock,
    Cycle,
    Diagnosis,
    Hint,
    Meta,
    NodeView,
    Objects,
    PlacedPod,
    Plan,
    Plugin,
    Pod,
    Pods,
    PostFilterRefusal,
    Queue,
    QueuedPod,
    Refusal,
    Skip,
    Wait,
    WaitingPods,
    WhatIf,
)
from mooring.framework.events import ASSIGNED_POD, NODE, POD
from mooring.plugins.community.compatibility import Compatibility
from mooring.plugins.community.coscheduling.failures import (
    FIRST_BACKOFF_SECONDS,
    LONGEST_BACKOFF_SECONDS,
    ExpiringKeys,
    GroupFailures,
)
from mooring.plugins.community.coscheduling.members import PODS, GroupMembers, missing_resources
from mooring.plugins.community.coscheduling.pod_groups import CoschedulingGroup, group_name
from mooring.plugins.community.coscheduling.yields import Yields
from mooring.plugins.partial_groups import PartialGroups, members_bound, time_left, why_evicted

DEFAULT_WAIT_SECONDS = 60
SHORTEST_PERMITTED_SECONDS = 3
"""How long a group counts as having its resources where the plugin's time to wait is 0."""
MOST_TRIED = 64
"""Nodes that are tried to see whether it helps a pod if other groups release them."""
NO_GROUP = "PodGroup not found"
NO_GROUP_HERE = "can not find pod group"
REJECTED_IN_POST_FILTER, REJECTED_IN_UNRESERVE = "optimistic rejection in PostFilter", "rejection in Unreserve"


class CoschedulingArgs(Args):
    """Arguments of Coscheduling."""

    permit_waiting_time_seconds: Annotated[
        int, Meta(description="How long pods wait for the others of a group without scheduleTimeoutSeconds.")
    ] = DEFAULT_WAIT_SECONDS
    pod_group_backoff_seconds: Annotated[
        int,
        Meta(description="How long a group that failed is not tried; 0: a second, doubled up to ten by each failure."),
    ] = 0
    pod_group_reject_percentage: Annotated[
        int,
        Meta(description="A group that lacks no more than this share of its members keeps waiting when one fits not."),
    ] = 10
    evict_partial_groups: Annotated[
        bool,
        Meta(description="Whether members that are bound without the others (after a crash) are evicted in the end."),
    ] = True
    compatibility: Compatibility = "mooring"

    def mistakes(self) -> Iterable[tuple[str, str]]:
        for name, value in (
            ("permitWaitingTimeSeconds", self.permit_waiting_time_seconds),
            ("podGroupBackoffSeconds", self.pod_group_backoff_seconds),
        ):
            if value < 0:
                yield name, f"Invalid value: {value}: must be greater than 0"
        share = self.pod_group_reject_percentage
        if not 0 <= share <= 100:
            yield "podGroupRejectPercentage", f"Invalid value: {share}: must be between 0 and 100"


class Coscheduling(Plugin):
    """Bind the pods of a group together, or none of them."""

    pre_filter_reads_pods = False

    def __init__(
        self,
        args: CoschedulingArgs,
        groups: Objects[CoschedulingGroup],
        pods: Pods,
        waiting: WaitingPods,
        queue: Queue,
        clock: Clock,
    ) -> None:
        self._args, self._groups, self._waiting, self._queue = args, groups, waiting, queue
        self._is_compatible = args.compatibility == "scheduler-plugins"
        self._members = GroupMembers(pods, waiting, counts_terminating=self._is_compatible)
        self._failures = GroupFailures(clock, self._exists, outlasts_edits=self._is_compatible)
        self._permitted = ExpiringKeys(clock)
        """Groups whose resources were found recently."""
        self._partial = PartialGroups(clock)
        self._releasing: dict[str, str] = {}
        """Members that were rejected and may still be on their nodes, by uid: the group."""
        self._yields = Yields(clock, self._exists)

    def events(self) -> Iterable[Hint]:
        if self._is_compatible:
            return [Hint(POD, Action.ADD), Hint(CoschedulingGroup, Action.ADD | Action.UPDATE)]
        return [
            Hint(POD, Action.ADD, _is_sibling, per_template=True),
            # A member that was released because another one did not fit: whatever may help that one.
            Hint(ASSIGNED_POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN, _is_no_sibling, per_template=True),
            Hint(NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_TAINT),
            Hint(CoschedulingGroup, Action.ADD | Action.UPDATE, _is_own_group, per_template=True),
            Hint(CoschedulingGroup, Action.DELETE, self._yielded_to, per_template=True),
        ]

    def _yielded_to(self, pod: Pod, gone: CoschedulingGroup | None, _new: object) -> bool:
        group = self._group_of(pod)
        return group is not None and gone is not None and self._yields.first_of(group.key) == gone.key

    def sort_key(self, queued: QueuedPod) -> tuple[int, float, str, str]:
        """By priority; then by when the group was created or failed last; members of a group stay together."""
        pod = queued.pod
        first = queued.initial_attempt if queued.initial_attempt is not None else queued.timestamp
        group = self._group_of(pod)
        if group is None:
            is_as_recorded = self._is_compatible or group_name(pod.labels)
            since = first if is_as_recorded else queued.timestamp
            return (-queued.priority, since, pod.key, pod.key)
        return (-queued.priority, self._since(group, first), pod.key if self._is_compatible else group.key, pod.key)

    def _since(self, group: CoschedulingGroup, otherwise: float) -> float:
        failed = self._failures.failed_at(group.key)
        if failed is not None:
            return failed
        created = group.metadata.creation_timestamp
        return parse_timestamp(created) if created else otherwise

    def pre_filter(self, pod: Pod, cycle: Cycle) -> Skip | Refusal:
        name = group_name(pod.labels)
        if not name:
            return Skip()
        group = self._groups.get(name, pod.namespace)
        if group is None:
            if self._is_compatible:
                return Skip()  # Permit refuses it, after a node was reserved
            return _unresolvable(f"PodGroup {pod.namespace}/{name} does not exist")
        return self._not_ready(pod, group, cycle) or Skip()

    def _not_ready(self, pod: Pod, group: CoschedulingGroup, cycle: Cycle) -> Refusal | None:
        if self._seconds_left(group):
            return _unresolvable(f"podGroup {group.key} failed recently")
        assigned, least = self._members.assigned(group), group.spec.min_member
        if not self._is_compatible and assigned and assigned[-1].assumed_at is not None:
            return None  # the member that got a node last has passed: they are not counted again for each
        members = self._members.of(group)
        count = len(members)
        if count < least:
            return _unresolvable(
                f"pre-filter pod {pod.name} cannot find enough sibling pods, current pods number: {count}, "
                f"minMember of group: {least}"
            )
        if count - members.gated < least:
            return _unresolvable(f"pre-filter pod {pod.name} cannot proceed due to gated pods in the same PodGroup")
        # (Every node runs a pod at least: the sum is rarely needed.)
        if (
            not self._is_compatible
            and least > len(cycle.nodes)
            and (room := int(cycle.nodes.allocatable(PODS).sum())) < least
        ):
            return _unresolvable(f"PodGroup {group.key} has minMember {least}, and all nodes together run {room} pods")
        if group.spec.min_resources is None or self._permitted.left(group.key):
            return None
        missing = missing_resources(group, cycle.nodes, members.assigned, counts_overcommitted=self._is_compatible)
        if missing:
            return _unresolvable(self._gap(group, missing))
        self._permitted.add(group.key, self._args.permit_waiting_time_seconds or SHORTEST_PERMITTED_SECONDS)
        return None

    def _gap(self, group: CoschedulingGroup, missing: dict[str, int]) -> str:
        shown = ", ".join(f"{_amount(resource, amount)} {resource}" for resource, amount in sorted(missing.items()))
        if self._is_compatible:
            return f"resource gap: map[{shown}]"
        return f"PodGroup {group.key} needs {shown} more than is free on all nodes together"

    def post_filter(self, pod: Pod, refused: Diagnosis, what_if: WhatIf) -> Plan | Refusal:
        group = self._group_of(pod)
        if group is None:
            return Refusal(NO_GROUP_HERE) if self._is_compatible or group_name(pod.labels) else Refusal()
        assigned, least = self._members.assigned(group), group.spec.min_member
        if len(assigned) >= least:
            self._partial.complete(group.metadata.uid)  # perhaps since before a restart: Permit did not see it then
            return Refusal()
        if not self._is_compatible:
            if left := self._seconds_left(group):
                return PostFilterRefusal(retry_after=left)
            if (yields := self._yield_to_first(pod, group, refused, what_if)) is not None:
                return yields
            if self._are_others_releasing(group):
                # They still count on their nodes: whether the pod fits is not known yet.
                return PostFilterRefusal(retry_after=FIRST_BACKOFF_SECONDS)
            if self._args.evict_partial_groups and (verdict := self._completed_or_evicted(group, assigned)) is not None:
                return verdict
        if self._goes_on_waiting(group):
            return Refusal()
        return self._reject_group(
            pod,
            group,
            f"PodGroup {group.key} gets rejected due to Pod {pod.name} is unschedulable even after PostFilter",
        )

    def _completed_or_evicted(
        self, group: CoschedulingGroup, assigned: Sequence[PlacedPod]
    ) -> Plan | PostFilterRefusal | None:
        """Where some members are bound without the others: evict them when their time is up. None: none is."""
        bound, least = members_bound(assigned), group.spec.min_member
        if not bound or group.status.has_run:
            return None
        uid = group.metadata.uid
        left = self._partial.seconds_left(
            uid, least, bound, lambda: self._members.of(group).pending, self._wait_seconds(group)
        )
        if left is None:
            return None
        if left:
            return PostFilterRefusal(
                f"PodGroup {group.key} is partly bound ({len(bound)} of {least})", retry_after=left
            )
        self._partial.note_eviction(uid)
        return Plan(
            evict=bound,
            eviction_message=why_evicted(group.key, len(bound), least),
            message=f"PodGroup {group.key} is released: {len(bound)} members alone are bound",
        )

    def _reject_group(self, pod: Pod, group: CoschedulingGroup, reason: str) -> Refusal:
        """Release what its members hold."""
        self._reject_waiting(group, REJECTED_IN_POST_FILTER)
        seconds = self._args.pod_group_backoff_seconds
        if self._is_compatible:
            if seconds and len(self._members.of(group)) >= group.spec.min_member:
                self._failures.back_off(group, seconds)
        elif seconds:
            self._failures.back_off(group, seconds)
        else:
            self._failures.back_off_longer(group)
        self._forget(group)
        if self._is_compatible:
            return Refusal(reason)
        self._settle(group, is_placed=False)
        return PostFilterRefusal(reason, retry_after=self._failures.seconds_left(group))

    def _yield_to_first(
        self, pod: Pod, group: CoschedulingGroup, refused: Diagnosis, what_if: WhatIf
    ) -> Refusal | None:
        """Where other groups wait, too: all but the first in the queue's order release what they hold. None: no other
        group does, or it would not help.

        So of all groups that wait only the first waits for what others may hold: none waits for another in a circle.
        A group that yields has not failed, and keeps its place: one that cannot be placed at all comes after it then.
        """
        others: dict[str, tuple[tuple[int, float, str], CoschedulingGroup]] = {}
        for waiting in self._waiting:
            other = self._group_of(waiting.pod)
            if other is not None and other.key != group.key:
                rank = (-waiting.pod.priority, self._since(other, 0.0), other.key)
                others[other.key] = min(others.get(other.key, (rank, other)), (rank, other), key=lambda each: each[0])
        if not others:
            return None
        own = (-pod.priority, self._since(group, 0.0), group.key)
        rank, first = min(others.values(), key=lambda each: each[0])
        if rank < own:
            if self._goes_on_waiting(group) and not self._yields.may(group, first):
                return None
            self._yield(group, first, FIRST_BACKOFF_SECONDS)
            return PostFilterRefusal(_yields(group, first), retry_after=FIRST_BACKOFF_SECONDS)
        yielding = {key: other for key, (_, other) in others.items() if self._yields.may(other, group)}
        if not self._release_helps(pod, yielding, refused, what_if):
            return None
        for other in yielding.values():
            self._yield(other, group, LONGEST_BACKOFF_SECONDS)  # at most: see `_settle`
        return PostFilterRefusal(retry_after=FIRST_BACKOFF_SECONDS)

    def _release_helps(self, pod: Pod, groups: Collection[str], refused: Diagnosis, what_if: WhatIf) -> bool:
        """Whether the pod would fit some node without the waiting members of these groups there."""
        nodes = refused.resolvable_nodes()
        if not groups or not len(nodes):
            return False
        held: dict[str, set[str]] = {}
        for waiting in self._waiting:
            other = self._group_of(waiting.pod)
            if other is not None and other.key in groups:
                held.setdefault(waiting.node, set()).add(waiting.pod.uid)
        places = np.flatnonzero(nodes.where_named(held))
        if not len(places):
            return False
        for node in nodes.take(np.roll(places, -(what_if.seed % len(places)))[:MOST_TRIED]):
            with what_if.without(node, [each for each in node.pods if each.uid in held[node.name]]):
                if what_if.fits(pod, node):
                    return True
        return False

    def _yield(self, group: CoschedulingGroup, first: CoschedulingGroup, seconds: float) -> None:
        self._yields.note(group, first)
        self._reject_waiting(group, _yields(group, first))
        self._failures.back_off(group, seconds)

    def _are_others_releasing(self, group: CoschedulingGroup) -> bool:
        """Whether rejected members of other groups are on their nodes still: they are forgotten after unreserve."""
        held = set()
        for key in {*self._releasing.values()}:
            other = self._group_at(key)
            members = self._members.assigned(other) if other is not None else ()
            held |= {each.uid for each in members if each.assumed_at is not None}
        self._releasing = {uid: key for uid, key in self._releasing.items() if uid in held}
        return any(key != group.key for key in self._releasing.values())

    def _goes_on_waiting(self, group: CoschedulingGroup) -> bool:
        """Whether so few members are missing that the others wait on, though one fits nowhere."""
        least = group.spec.min_member
        missing = least - len(self._members.assigned(group))
        return missing * 100 <= self._args.pod_group_reject_percentage * least

    def _seconds_left(self, group: CoschedulingGroup) -> float:
        """For how long the group is not tried."""
        left = self._failures.seconds_left(group)
        first = self._yields.first_of(group.key) if left else None
        if first is not None and self._group_at(first) is None:
            self._try_again(first)
            return 0.0
        return left

    def _settle(self, first: CoschedulingGroup, *, is_placed: bool) -> None:
        """The group was placed, or has failed: those that yielded to it are tried again."""
        for group in self._try_again(first.key):
            if not is_placed:
                self._yields.was_in_vain(group, first)

    def _try_again(self, first: str) -> list[CoschedulingGroup]:
        """Returns the groups that yielded to this one."""
        groups = [group for key in self._yields.settle(first) if (group := self._group_at(key)) is not None]
        for group in groups:
            if self._yields.first_of(group.key) == first:
                self._failures.end_backoff(group)
                self._queue.activate(self._members.of(group).pending)
        return groups

    def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> Allow | Wait | Refusal:
        name = group_name(pod.labels)
        if not name:
            return Allow()
        group = self._groups.get(name, pod.namespace)
        if group is None:
            return Refusal(NO_GROUP)
        self._yields.end(group.key)
        self._releasing.pop(pod.uid, None)
        assigned = self._members.assigned(group)  # the pod is assumed, so it is among them
        if evicted := self._partial.evicted(group.metadata.uid):
            assigned = [each for each in assigned if each.uid not in evicted]
        if len(assigned) >= group.spec.min_member:
            self._failures.clear(group.key)
            self._partial.complete(group.metadata.uid)
            self._settle(group, is_placed=True)
            for waiting in list(self._members.waiting(group)):
                self._waiting.allow(waiting.pod.uid, self)
            return Allow()
        is_first = len(assigned) == 1
        if not self._is_compatible:
            # Members that are bound already do not count: the others have to be tried now all the same.
            is_first = sum(1 for each in assigned if each.assumed_at is not None) == 1
        if is_first:
            self._queue.activate([each for each in self._members.of(group).pending if each.uid != pod.uid])
        return Wait(self._wait_seconds(group))

    def _wait_seconds(self, group: CoschedulingGroup) -> float:
        own, plugins = group.spec.schedule_timeout_seconds, self._args.permit_waiting_time_seconds
        if own == 0 and self._is_compatible:
            return plugins  # even where that is 0, too
        return own or plugins or DEFAULT_WAIT_SECONDS

    def unreserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        group = self._group_of(pod)
        if group is None:
            return
        if not self._is_compatible and len(self._members.assigned(group)) >= group.spec.min_member:
            return  # enough members remain allowed: this one alone failed to be bound, and is tried again
        self._reject_waiting(group, REJECTED_IN_UNRESERVE)
        if self._yields.first_of(group.key) is None:
            self._forget(group)
            if not self._is_compatible:
                self._settle(group, is_placed=False)
        else:
            self._queue.activate([pod])  # its next attempt ends with the time after which the group is tried again

    def explain(self, pod: Pod) -> Iterable[str]:
        if not (name := group_name(pod.labels)):
            return
        group = self._groups.get(name, pod.namespace)
        if group is None:
            yield f"pod group {pod.namespace}/{name} does not exist"
            return
        members, least = self._members.of(group), group.spec.min_member
        yield f"pod group {group.key}: {len(members)} of {least} members exist, {len(members.assigned)} have a node"
        if waiting := sum(1 for _ in self._members.waiting(group)):
            yield f"{waiting} of them wait on permit for the others, {self._wait_seconds(group):g} s at most"
        if gated := members.gated:
            yield f"{gated} of the members have scheduling gates"
        if len(bound := members_bound(members.assigned)) < least:
            until_eviction = self._partial.seconds_known(group.metadata.uid)
            if bound and until_eviction is not None:
                yield time_left(len(bound), least, until_eviction)
        if (first := self._yields.first_of(group.key)) is not None:
            yield f"the group has released its nodes for pod group {first}"
        if left := self._seconds_left(group):
            yield f"the group could not be placed and is tried again in {left:.0f} s"

    def _group_of(self, pod: Pod) -> CoschedulingGroup | None:
        name = group_name(pod.labels)
        return self._groups.get(name, pod.namespace) if name else None

    def _group_at(self, key: str) -> CoschedulingGroup | None:
        namespace, name = key.split("/", 1)
        return self._groups.get(name, namespace)

    def _exists(self, key: str) -> bool:
        return self._group_at(key) is not None

    def _reject_waiting(self, group: CoschedulingGroup, reason: str) -> None:
        for waiting in list(self._members.waiting(group)):
            if self._waiting.reject(waiting.pod.uid, self, reason):
                self._releasing[waiting.pod.uid] = group.key

    def _forget(self, group: CoschedulingGroup) -> None:
        self._permitted.discard(group.key)
        self._failures.note(group.key)


def _yields(group: CoschedulingGroup, first: CoschedulingGroup) -> str:
    return f"PodGroup {group.key} yields to PodGroup {first.key}"


def _unresolvable(reason: str) -> Refusal:
    return Refusal(reason, code=UNRESOLVABLE)


def _amount(resource: str, amount: int) -> str:
    return f"{amount / 1000:g}" if resource == "cpu" else str(amount)


def _is_sibling(pod: Pod, _old: object, new: object) -> bool:
    namespace, labels = getattr(new, "namespace", ""), getattr(new, "labels", {})
    return namespace == pod.namespace and group_name(labels) == group_name(pod.labels)


def _is_no_sibling(pod: Pod, old: object, _new: object) -> bool:
    """The members that are released with it do not make more room than it had before."""
    return not _is_sibling(pod, None, old)


def _is_own_group(pod: Pod, old: CoschedulingGroup | None, new: CoschedulingGroup | None) -> bool:
    if new is None or (new.namespace, new.name) != (pod.namespace, group_name(pod.labels)):
        return False
    return old is None or old.spec != new.spec
