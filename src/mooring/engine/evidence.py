"""The evidence of a decision as a record that is small and quick to make: one is kept for every pod.

It is spelled out, ready for JSON, when it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mooring.engine.plugin_scores import Score
from mooring.engine.rejected import RejectionGroup

NAMED_NODES = 20
"""How many nodes of a group the evidence names: it is kept for many pods; `Decision.rejections` has them all."""

MAX_GROUPS = 100
"""How many groups it has: a plugin may give every node a reason of its own."""


class EvidenceRecord(msgspec.Struct, array_like=True, gc=False, frozen=True):
    """All that explains a decision. Without references to the state, the pod or a plugin."""

    pod: str
    uid: str
    profile: str
    attempt: int
    node: str | None
    nodes: int
    evaluated_nodes: int
    feasible_nodes: int
    total: int
    scores: Mapping[str, Score]
    message: str
    fault: dict[str, Any] | None = None
    rejections: list[tuple[str, list[str], str, int, list[str]]] | None = None
    """Per group: plugin, reasons, code, number of nodes, names of the first of them."""
    rejections_left_out: int = 0
    room: dict[str, Any] | None = None
    """What PostFilter plans, or why it could make no room."""
    used: dict[str, int] | None = None
    used_data: dict[str, str] | None = None
    seed: int = 0
    start: int = 0
    """With the seed, what the decision depended on besides state and pod."""

    def document(self) -> dict[str, Any]:
        """Ready for JSON."""
        evidence: dict[str, Any] = {
            "pod": self.pod,
            "uid": self.uid,
            "profile": self.profile,
            "attempt": self.attempt,
            "node": self.node,
            "nodes": self.nodes,
            "evaluatedNodes": self.evaluated_nodes,
            "feasibleNodes": self.feasible_nodes,
        }
        if self.node is not None:
            evidence["total"] = self.total
            evidence["scores"] = [
                {"plugin": plugin, "raw": raw, "normalized": normalized, "weight": weight, "weighted": weighted}
                for plugin, (raw, normalized, weighted, weight) in self.scores.items()
            ]
        else:
            evidence["message"] = self.message
        if self.fault is not None:
            evidence["fault"] = self.fault
        if self.rejections is not None:
            evidence["rejections"] = [
                {"plugin": plugin, "reasons": reasons, "code": code, "count": count, "nodes": names}
                for plugin, reasons, code, count, names in self.rejections
            ]
        if self.rejections_left_out:
            evidence["rejectionsLeftOut"] = self.rejections_left_out
        evidence |= self.room or {}
        if self.used:
            evidence["used"] = self.used
        if self.used_data:
            evidence["usedData"] = self.used_data
        return evidence


def recorded(groups: list[RejectionGroup]) -> list[tuple[str, list[str], str, int, list[str]]]:
    """Rejections as an `EvidenceRecord` has them."""
    return [
        (plugin, list(refusal.reasons), refusal.code._value_, count, names)
        for (plugin, refusal), count, names in groups
    ]
