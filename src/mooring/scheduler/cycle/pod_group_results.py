"""What came of trying to schedule a pod group: the status of the group, and a result for each member."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mooring.base.errors import PluginFault
from mooring.engine import Decision, Permitted, PlacementRefused
from mooring.engine.evidence import EvidenceRecord
from mooring.framework.verdicts import Code, Refusal
from mooring.queue import QueuedPodInfo

UNSCHEDULABLE_GROUP = "pod group is unschedulable"
WAITING_FOR_PREEMPTION = "pod group is waiting for preemption to complete"
OTHER_POD_FAILED = "failed to schedule other pod from a pod group: {}"


class GroupStatus(msgspec.Struct):
    """A status as kube-scheduler has it. Its text is the error, if any, and the reasons."""

    code: Code
    error: str = ""
    reasons: tuple[str, ...] = ()

    @property
    def is_success(self) -> bool:
        return self.code is Code.SUCCESS

    @property
    def is_error(self) -> bool:
        return self.code is Code.ERROR

    @property
    def message(self) -> str:
        return ", ".join([*([self.error] if self.error else ()), *self.reasons])

    @classmethod
    def failed(cls, error: str) -> GroupStatus:
        return cls(Code.ERROR, error)

    @classmethod
    def refused(cls, refusal: Refusal) -> GroupStatus:
        return cls(refusal.code, "", tuple(refusal.reasons))


SUCCESS = GroupStatus(Code.SUCCESS)


def unschedulable(*reasons: str) -> GroupStatus:
    return GroupStatus(Code.UNSCHEDULABLE, UNSCHEDULABLE_GROUP, reasons)


class MemberResult(msgspec.Struct):
    """What came of trying one member: a node, a node that must be made room on first, or why none."""

    queued: QueuedPodInfo
    decision: Decision | None = None
    evidence: EvidenceRecord | None = None
    """Of the decision, where it is recorded."""
    is_limited: bool = False
    """Only the nodes of a placement were candidates."""
    node: str = ""
    """Where it was assumed; "" if nowhere."""
    requires_preemption: bool = False
    """It fits no node; PostFilter nominated one, and evictions there have begun."""
    nominate: str | None = None
    """Its nomination if it fails by itself: a node, "" for none, None for no change."""
    refused: PlacementRefused | None = None
    """Reserve or Permit rejected it."""
    fault: PluginFault | str | None = None
    permit_message: str = ""
    nominated_before: str | None = None
    """The nomination that was removed when it was assumed."""

    @property
    def fits(self) -> bool:
        return bool(self.node) and not self.requires_preemption


class GroupResult(msgspec.Struct):
    """Of one run of the algorithm."""

    status: GroupStatus
    members: Sequence[MemberResult] = ()
    """In the order in which they were tried; fewer than there are after an error, none before the first was tried."""
    is_waiting_on_preemption: bool = False
    """The group would fit once pods that are being evicted are gone. Its status is unschedulable."""

    @property
    def is_successful(self) -> bool:
        return self.status.is_success or self.is_waiting_on_preemption

    @property
    def label(self) -> str:
        """The value of kube-scheduler's metrics."""
        if self.status.is_success:
            return "scheduled"
        if self.status.is_error:
            return "error"
        return "waiting_on_preemption" if self.is_waiting_on_preemption else "unschedulable"


def completes_quorum(permitted: Permitted) -> bool:
    """Whether the group is feasible now that this member has a node: no Permit plugin lets it wait for others.

    The one place where feasibility is tested; a later Kubernetes has a plugin point of its own for it.
    """
    return not permitted.waits
