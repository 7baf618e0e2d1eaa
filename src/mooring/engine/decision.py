"""A decision and its evidence. Metrics, events, `explain` and pages read it; no plugin is wrapped to be observed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mooring.base.errors import PluginFault
from mooring.engine.cycle import EngineCycle
from mooring.engine.evidence import MAX_GROUPS, NAMED_NODES, EvidenceRecord, recorded
from mooring.engine.filtering import Feasible
from mooring.engine.plugin_scores import Score
from mooring.engine.post_filter import PostFiltered
from mooring.engine.rejected import NO_REJECTORS, PluginVerdict, Rejected, RejectionGroup, Rejectors
from mooring.engine.scoring import Choice, ScoreColumns
from mooring.framework import Plan
from mooring.framework.verdicts import no_node_available
from mooring.state import RowView

NO_NODES = "no nodes available to schedule pods"
NOT_POST_FILTERED = PostFiltered()


class Decision:
    """Where a pod goes (`node`), or why nowhere (`message`), or which plugin failed (`fault`)."""

    def __init__(self, cycle: EngineCycle, found: Feasible | None) -> None:
        self.cycle = cycle
        """The same cycle is handed to reserve, permit and bind."""
        self.pod = cycle.pod
        self.profile = cycle.profile.name
        self.node: str | None = None
        self.view: RowView | None = None
        self.message = ""
        """Why the pod was not placed, in kube-scheduler's words: the message of its condition and event."""
        self.rejectors = NO_REJECTORS
        """The plugins whose events may help: those that refused, and those that returned pending.

        Empty after a fault and where there are no nodes at all: then only time helps.
        """
        self.refusal: PluginVerdict | None = found.refusal if found else None
        """What pre_filter returned, if it refused the pod as a whole."""
        self.scores: Mapping[str, Score] = {}
        """The winner's scores per plugin; empty where nothing was scored (a single feasible node)."""
        self.total = 0
        self.fault: PluginFault | None = None
        self.is_premature = False
        """A refusal, though a node passed that was not sent to the extenders: it was added while they were called."""
        self.post_filtered = NOT_POST_FILTERED
        self.node_count = cycle.state.node_count
        self.evaluated_nodes = 0
        self.feasible_nodes = 0
        self.next_start = 0
        if found is not None:
            self.evaluated_nodes, self.next_start = found.evaluated, found.next_start
            self.feasible_nodes = len(found.nodes)
        self._no_fit = ""
        self._found = found
        self._rejected: Rejected | None = None
        self._choice: Choice | None = None
        self._kept: ScoreColumns | None = None
        self._record: EvidenceRecord | None = None

    @classmethod
    def placed(cls, cycle: EngineCycle, found: Feasible, choice: Choice) -> Decision:
        decision = cls(cycle, found)
        decision.view = choice.view
        decision.node = choice.view.name
        decision.scores = choice.scores
        decision.total = choice.total
        decision._choice = choice
        return decision

    @classmethod
    def refused(
        cls,
        cycle: EngineCycle,
        found: Feasible,
        rejected: Rejected,
        helped: PostFiltered,
        *,
        is_premature: bool = False,
    ) -> Decision:
        decision = cls(cycle, found)
        decision.is_premature = is_premature
        decision._rejected = rejected
        decision._found = None
        if decision.node_count:
            decision._no_fit = failure_message(found, rejected)
            decision.help(helped)
            rejectors = rejected.rejectors()
            decision.rejectors = Rejectors(rejectors.unschedulable.union(found.narrowed_by), rejectors.pending)
        else:
            decision.post_filtered = helped
            decision.message = NO_NODES
        return decision

    @classmethod
    def failed(cls, cycle: EngineCycle, found: Feasible | None, fault: PluginFault, start: int) -> Decision:
        decision = cls(cycle, found)
        decision.fault = fault
        decision.message = str(fault)
        if found is None:
            decision.next_start = start
        return decision

    def help(self, helped: PostFiltered) -> None:
        """This is what can be done for a refused pod."""
        self.post_filtered, self._record = helped, None
        self.message = f"{self._no_fit} {helped.message}" if helped.message else self._no_fit

    def withdraw(self, message: str, rejectors: Rejectors | None = None, fault: PluginFault | None = None) -> None:
        """Reserve or Permit rejected the placement, or failed: there is no node after all."""
        self.node, self.view, self.message, self.fault = None, None, message, fault
        self._record = None
        self.rejectors = self.rejectors if rejectors is None else rejectors

    @property
    def is_refused(self) -> bool:
        """No node will do: a verdict, not a fault."""
        return self.node is None and self.fault is None

    @property
    def plan(self) -> Plan | None:
        """What post_filter proposes to make room."""
        return self.post_filtered.plan

    @property
    def used(self) -> Mapping[str, int]:
        """Which versions of outside data were read, by plugin."""
        return self.cycle.used

    @property
    def rejections(self) -> Mapping[str, PluginVerdict]:
        """Node name → the plugin that rejected it and its rejection.

        Always there after a refusal; after a placement only until the profile's next decision, or once kept.
        """
        if self._rejected is None and self._found is not None:
            self._rejected = self._found.rejected()
        return self._rejected if self._rejected is not None else {}

    def verdict_on(self, node: RowView) -> PluginVerdict | None:
        """The plugin that rejected a node, and its rejection; None: it passed, or was not evaluated."""
        rejected = self.rejections
        return rejected.verdict_at(node.row) if isinstance(rejected, Rejected) else None

    def scores_of(self, node: RowView) -> Mapping[str, Score] | None:
        """What each plugin gave a node; until the profile's next decision. None: it was not scored."""
        return self._choice.scores_of(node) if self._choice is not None else None

    def rejected_counts(self) -> dict[str, int]:
        """How many nodes each plugin rejected, each node by the first; until the profile's next decision, or once kept.

        Where PreFilter plugins left no node, or none in common, there is no plugin ("").
        """
        if isinstance(self._rejected, Rejected):
            return self._rejected.counts_by_plugin()
        return self._found.rejected_counts() if self._found is not None else {}

    def deciding(self) -> dict[str, bool]:
        """The plugins whose scores differ between nodes, and whether other nodes would be among the best without.

        Until the profile's next decision. Several may have decided, and none where the node is best by every plugin.
        """
        return self._choice.deciding() if self._choice is not None else {}

    def columns(self) -> ScoreColumns | None:
        """Every feasible node's scores: until the profile's next decision, or once kept. None: nothing was scored."""
        if self._kept is not None:
            return self._kept
        if self._choice is None or self._choice.scored is None:
            return None
        return self._choice.scored.read()

    def keep(self) -> Decision:
        """Hold on to everything. Call it before the pod is assumed: scores may be columns of the living table."""
        columns = self.columns()
        self._kept = columns.copy() if columns is not None else None
        if self._rejected is None and self._found is not None:
            self._rejected = self._found.rejected()
        return self

    def release(self) -> None:
        """The profile's next decision overwrites the cached columns: what was not kept is dropped."""
        self._choice = None
        self._found = None

    def evidence(self) -> dict[str, Any]:
        """All that explains the decision, ready for JSON."""
        return self.record().document()

    def record(self) -> EvidenceRecord:
        """The same, small enough to be kept for every pod. Made once, unless the decision changes."""
        if self._record is None:
            self._record = self._recorded()
        return self._record

    def _recorded(self) -> EvidenceRecord:
        rejections, left_out = self._rejection_groups()
        fault = None
        if self.fault is not None:
            fault = {"plugin": self.fault.plugin, "message": str(self.fault)}
            if self.fault.hint is not None:
                fault["hint"] = self.fault.hint
        pod, cycle = self.pod, self.cycle
        return EvidenceRecord(
            pod.key,
            pod.uid,
            self.profile,
            cycle.attempt,
            self.node,
            self.node_count,
            self.evaluated_nodes,
            self.feasible_nodes,
            self.total,
            self.scores,
            self.message,
            fault,
            None if rejections is None else recorded(rejections),
            left_out,
            None if self.node is not None else self._room_made(),
            cycle.used,
            cycle.used_data,
            cycle.seed,
            cycle.start,
        )

    def _rejection_groups(self) -> tuple[list[RejectionGroup] | None, int]:
        """The most frequent rejections, and how many kinds are left out; None where there is nothing to report."""
        if self.feasible_nodes >= self.node_count:
            return None, 0
        if self._rejected is None and self._found is not None:
            groups = self._found.groups_of_whole_steps(named=NAMED_NODES)
            if groups is not None:
                return groups, 0
        rejected = self.rejections
        if not isinstance(rejected, Rejected):
            return None, 0
        return rejected.groups(most=MAX_GROUPS, named=NAMED_NODES), max(0, rejected.kinds - MAX_GROUPS)

    def _room_made(self) -> dict[str, Any]:
        """What post_filter plans, or why it could make no room."""
        if self.plan is not None:
            return {"plan": _plan_evidence(self.plan)}
        groups = [
            {"reasons": list(reasons), "count": count, "nodes": names}
            for remedy in self.post_filtered.remedies
            if remedy.tried is not None
            for reasons, count, names in remedy.tried.by_reasons(NAMED_NODES)[:MAX_GROUPS]
        ]
        return {"noRoom": groups} if groups else {}

    def __repr__(self) -> str:
        return f"<decision {self.pod.key}: {self.node or self.message}>"


def failure_message(found: Feasible, rejected: Rejected) -> str:
    """kube-scheduler's sentence about a pod that fits nowhere; the message of post_filter follows it."""
    nodes = len(found.all_nodes)
    if found.refusal is None:
        return no_node_available(nodes, rejected.reasons())
    why = ", ".join(found.refusal.refusal.reasons)
    return f"0/{nodes} nodes are available:" + (f" {why}." if why else "")


def _plan_evidence(plan: Plan) -> dict[str, Any]:
    evidence: dict[str, Any] = {"nominate": plan.nominate, "evict": [pod.key for pod in plan.evict]}
    if plan.candidates:
        evidence["candidateCount"] = len(plan.candidates)
        evidence["candidates"] = [
            {
                "node": candidate.node,
                "victims": [pod.key for pod in candidate.victims],
                "budgetViolations": candidate.budget_violations,
            }
            for candidate in plan.candidates[:NAMED_NODES]
        ]
    return evidence
