"""Does another scheduler's action on a pod equal our decision, and if not, which plugin made the difference?

Pure: the input is a decision and an action of the other scheduler, the output a judgement with its evidence. Among
equally good nodes any choice agrees. When a decision is made, and on which state, is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from mooring.engine import Decision, ScoreColumns
from mooring.framework import Plan
from mooring.framework.preemption import disruption
from mooring.framework.verdicts import Refusal

NAMED_NODES = 20
"""How many equally good nodes the evidence names."""


class Result(StrEnum):
    """How a comparison ended."""

    AGREE = "agree"
    WORDS = "words"
    """Both reject the pod, with different messages."""
    SAMPLED = "sampled"
    """The other's node scores lower, but sampling may have left out better ones."""
    DIFFER = "differ"
    NOT_COMPARABLE = "not_comparable"


class Cause(StrEnum):
    """What a difference is about."""

    SCORE = "score"
    """We take another node."""
    VERDICT = "verdict"
    """One of our plugins rejects their node, or the pod as a whole."""
    GATE = "gate"
    """One of our PreEnqueue plugins gates the pod."""
    FAULT = "fault"
    """One of our plugins failed."""
    PLACED = "placed"
    """They find no node, and we do."""
    ROOM = "room"
    """The victims differ, or only one of us preempts."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A result, in a sentence, with what it rests on."""

    result: Result
    why: str
    cause: Cause | None = None
    plugin: str = ""
    """Whose score or verdict made the difference."""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """Ready for JSON."""


def not_comparable(why: str) -> Judgement:
    return Judgement(Result.NOT_COMPARABLE, why)


def is_looked_at(decision: Decision, node: str) -> bool:
    """Whether the decision evaluated the node; one for a nominated pod may evaluate that node alone."""
    columns = decision.columns()
    return node == decision.node or node in decision.rejections or (columns is not None and node in columns.nodes)


# They placed the pod


def judge_binding(decision: Decision, node: str, looked_at: int) -> Judgement:
    """They put the pod on `node`, after they had found at most `looked_at` feasible nodes."""
    if decision.fault is not None:
        return _failed(decision)
    if (verdict := decision.rejections.get(node)) is not None:
        return _refused_there(decision, node, *verdict)
    columns = decision.columns()
    if node == decision.node and columns is None:
        return Judgement(Result.AGREE, "the only feasible node")
    if columns is None or node not in columns.nodes:
        return not_comparable(f"{node} was not among the nodes that we looked at")
    return _weighed(decision, columns, node, looked_at)


def _weighed(decision: Decision, columns: ScoreColumns, node: str, looked_at: int) -> Judgement:
    assert decision.node is not None
    theirs, ours = columns.nodes.index(node), columns.nodes.index(decision.node)
    total, best = int(columns.total[theirs]), int(columns.total[ours])
    ties = np.flatnonzero(columns.total == best)
    evidence: dict[str, Any] = {
        "totals": {"ours": best, "theirs": total},
        "best": [columns.nodes[place] for place in ties[:NAMED_NODES].tolist()],
        "bestCount": len(ties),
        "rank": int(np.count_nonzero(columns.total > total)) + 1,
        "feasibleNodes": len(columns.nodes),
    }
    if total == best:
        return Judgement(
            Result.AGREE, f"one of {len(ties)} equally good" if len(ties) > 1 else "best", None, "", evidence
        )
    table = _table(columns, ours, theirs)
    evidence["scores"] = table
    plugin = max(table, key=lambda row: int(row["gap"]))
    words = (
        f"{node} is worth {total}, {decision.node} {best}: "
        f"{plugin['plugin']} gives {plugin['theirs']['weighted']} against {plugin['ours']['weighted']}"
    )
    # With sampling the best of some nodes is chosen: at least so many must score no better than theirs.
    if looked_at < len(columns.nodes) and int(np.count_nonzero(columns.total <= total)) >= looked_at:
        return Judgement(
            Result.SAMPLED,
            f"{words}; they may have looked at {looked_at} of {len(columns.nodes)} feasible nodes only",
            Cause.SCORE,
            str(plugin["plugin"]),
            evidence,
        )
    return Judgement(Result.DIFFER, words, Cause.SCORE, str(plugin["plugin"]), evidence)


def _table(columns: ScoreColumns, ours: int, theirs: int) -> list[dict[str, Any]]:
    """Per plugin what it gave our node and theirs, the largest gap first."""

    def given(plugin: str, place: int) -> dict[str, int]:
        normalized = int(columns.normalized[plugin][place])
        return {
            "raw": int(columns.raw[plugin][place]),
            "normalized": normalized,
            "weighted": normalized * columns.weights[plugin],
        }

    rows = []
    for plugin, weight in columns.weights.items():
        our, their = given(plugin, ours), given(plugin, theirs)
        gap = our["weighted"] - their["weighted"]
        rows.append({"plugin": plugin, "weight": weight, "ours": our, "theirs": their, "gap": gap})
    return sorted(rows, key=lambda row: -row["gap"])


def _refused_there(decision: Decision, node: str, plugin: str, refusal: Refusal) -> Judgement:
    if decision.refusal is not None:
        plugin, refusal = decision.refusal
    words = "; ".join(refusal.reasons)
    evidence = {
        "rejection": {"plugin": plugin, "reasons": list(refusal.reasons), "code": refusal.code.value},
        "feasibleNodes": decision.feasible_nodes,
    }
    # Where PreFilter plugins narrowed the nodes, the message names these plugins.
    who = f"{plugin} refuses" if plugin else "we refuse"
    what = "the pod" if decision.refusal is not None else node
    return Judgement(Result.DIFFER, f"{who} {what}: {words}", Cause.VERDICT, plugin, evidence)


def _failed(decision: Decision) -> Judgement:
    assert decision.fault is not None
    return Judgement(Result.DIFFER, f"our attempt failed: {decision.fault}", Cause.FAULT, decision.fault.plugin)


# They found no node


def judge_refusal(decision: Decision, message: str) -> Judgement:
    """They found no node, with this message."""
    if decision.fault is not None:
        return _failed(decision)
    if decision.node is not None:
        why = f"this scheduler chooses {decision.node}; theirs: {message}"
        return Judgement(Result.DIFFER, why, Cause.PLACED)
    if decision.message == message:
        return Judgement(Result.AGREE, "no node is feasible, with the same message")
    return Judgement(Result.WORDS, f"no node is feasible; ours: {decision.message}; theirs: {message}")


# They make room


def judge_nomination(decision: Decision, node: str, message: str | None) -> Judgement:
    """They nominated the pod to `node`, where victims are evicted; `message` is their condition's, if any."""
    if decision.node is not None:
        return Judgement(Result.DIFFER, f"they make room on {node}; we would take {decision.node}", Cause.PLACED)
    if decision.fault is not None:
        return _failed(decision)
    if decision.plan is None:
        why = f"they make room on {node}; we would make none: {decision.message}"
        return Judgement(Result.DIFFER, why, Cause.ROOM, _plugin_without_candidate(decision))
    judged = judge_room(decision.plan, node)
    if judged.result is Result.AGREE and message is not None and message != decision.message:
        why = f"{judged.why}; ours: {decision.message}; theirs: {message}"
        return Judgement(Result.WORDS, why, None, "", judged.evidence)
    return judged


def judge_room(plan: Plan, node: str) -> Judgement:
    """Our plan against their node."""
    candidates = {candidate.node: candidate for candidate in plan.candidates}
    evidence: dict[str, Any] = {
        "nominate": plan.nominate,
        "evict": [pod.key for pod in plan.evict],
        "candidates": len(candidates),
    }
    if plan.nominate == node:
        return Judgement(Result.AGREE, f"room is made on {node}", None, "", evidence)
    theirs = candidates.get(node)
    if theirs is None:
        why = f"they make room on {node}, where evicting pods would not help by our rules; we on {plan.nominate}"
        return Judgement(Result.DIFFER, why, Cause.ROOM, "", evidence)
    evidence["evictThere"] = [pod.key for pod in theirs.victims]
    ours = candidates.get(plan.nominate or "")
    if ours is not None and all(one == other for one, other in disruption([ours, theirs])):
        return Judgement(Result.AGREE, f"room is made on {node}, which hurts no more than others", None, "", evidence)
    why = f"they make room on {node} ({len(theirs.victims)} would go), we on {plan.nominate} ({len(plan.evict)})"
    return Judgement(Result.DIFFER, why, Cause.ROOM, "", evidence)


def _plugin_without_candidate(decision: Decision) -> str:
    """The last PostFilter plugin that found no candidate."""
    return next((plugin for plugin, _ in reversed(decision.post_filtered.results)), "")
