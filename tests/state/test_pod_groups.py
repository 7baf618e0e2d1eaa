"""Whatever happens to the pods of a group, in whatever order: its counts equal a recount of its pods."""

from __future__ import annotations

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mooring.framework import Pod
from mooring.objects.core import PodCondition
from mooring.objects.placed import placed
from mooring.state import State
from mooring.testing import a_node_object, a_pod

UIDS = [f"pod-{number}" for number in range(4)]
NODES = ["a", "b", "gone"]
"""The last one is in no cache."""
PREEMPTED = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")

uids, nodes = st.sampled_from(UIDS), st.sampled_from(NODES)


def pod_named(uid: str, *, cpu: int = 1, is_terminating: bool = False, is_preempted: bool = False) -> Pod:
    pod = a_pod(uid, uid=uid, cpu=cpu, group="gang")
    metadata = pod.metadata
    if is_terminating:
        metadata = msgspec.structs.replace(metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    conditions = [PREEMPTED] if is_preempted else []
    return msgspec.structs.replace(
        pod, metadata=metadata, status=msgspec.structs.replace(pod.status, conditions=conditions)
    )


class Groups(RuleBasedStateMachine):
    """The state, and what is known of each pod beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.state = State()
        for name in NODES[:2]:
            self.state.set_node(a_node_object(name, cpu=9))
        self.pending: set[str] = set()
        self.on_node: dict[str, bool] = {}
        """Whether each is bound there."""
        self.withdrawn: set[str] = set()
        self.tried: set[str] = set()
        self.most_bound = 0

    @rule(uid=uids, is_terminating=st.booleans())
    def is_pending(self, uid: str, is_terminating: bool) -> None:
        """Added, or updated: also while it is assumed."""
        if self.on_node.get(uid):
            return
        self.state.set_pending(pod_named(uid, is_terminating=is_terminating))
        self.pending.add(uid)

    @rule(uid=uids)
    def pending_is_removed(self, uid: str) -> None:
        self.state.remove_pending(uid)
        self.pending.discard(uid)

    @rule(uid=uids, node=nodes, in_trial=st.booleans())
    def is_assumed(self, uid: str, node: str, in_trial: bool) -> None:
        if uid in self.on_node or uid not in self.pending:
            return
        (self.state.assume_in_trial if in_trial else self.state.assume)(pod_named(uid), node, 1.0)
        self.on_node[uid] = False
        if in_trial:
            self.tried.add(uid)

    @rule(uid=uids)
    def is_forgotten(self, uid: str) -> None:
        if self.on_node.get(uid) is False:
            self.state.forget(uid)
            self._leaves(uid)

    @rule(uid=uids)
    def is_withdrawn(self, uid: str) -> None:
        self.state.withdraw_from_group(uid)
        if self.on_node.get(uid) is False:
            self.withdrawn.add(uid)
            self.tried.discard(uid)

    @rule(uid=uids, node=nodes, cpu=st.integers(1, 2), is_terminating=st.booleans(), is_preempted=st.booleans())
    def is_bound(self, uid: str, node: str, cpu: int, is_terminating: bool, is_preempted: bool) -> None:
        """The watch shows it on a node: new, changed or confirmed. It is not pending any more."""
        self.pending_is_removed(uid)
        pod = pod_named(uid, cpu=cpu, is_terminating=is_terminating, is_preempted=is_preempted)
        self.state.set_pod(placed(pod, node))
        self.on_node[uid] = True
        self.withdrawn.discard(uid)
        self.tried.discard(uid)

    @rule(uid=uids)
    def is_removed(self, uid: str) -> None:
        self.state.remove_pod(uid)
        self._leaves(uid)

    @rule(uid=uids)
    def is_evicted_in_a_trial(self, uid: str) -> None:
        if (pod := self.state.pod(uid)) is not None and uid not in self.withdrawn:
            self.state.evict_in_trial(pod)
            self.groups_are_counted()
            self.state.restore_in_trial(pod)

    @rule(name=st.sampled_from(NODES[:2]), comes=st.booleans())
    def node_changes(self, name: str, comes: bool) -> None:
        if comes:
            self.state.set_node(a_node_object(name, cpu=9))
        else:
            self.state.remove_node(name)

    def _leaves(self, uid: str) -> None:
        self.on_node.pop(uid, None)
        self.withdrawn.discard(uid)
        self.tried.discard(uid)

    @invariant()
    def groups_are_counted(self) -> None:
        counted = {uid for uid in self.on_node if uid not in self.withdrawn}
        unscheduled = self.pending - counted
        members = self.state.pod_group("default", "gang")
        if not counted and not unscheduled:
            self.most_bound = 0
            assert members is None or not members.all_count
            return
        assert members is not None
        assert {pod.uid for pod in members.unscheduled} == unscheduled
        assert {pod.uid for pod in members.scheduled} == counted
        assert members.all_count == len(counted) + len(unscheduled)
        assert members.scheduled_count == len(counted)
        assert members.tried_count == len(self.tried)
        pods = members.scheduled
        assert members.preempted_count == sum(pod.is_preempted for pod in pods)
        bound = sum(pod.is_bound and not pod.is_preempted for pod in pods)
        self.most_bound = max(self.most_bound, bound)
        assert members.most_bound_count == self.most_bound


Groups.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestGroups = Groups.TestCase
