"""A pod's page: the document of `mooring explain -o json`, the filters as a funnel, the scores as columns, attempts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mooring.engine import Decision
from mooring.framework import Pod, Point
from mooring.web.mirror import Mirror
from mooring.web.pod_manifest import manifest_of
from mooring.why.pod_document import Recorded, explained, known, with_summary
from mooring.why.recomputation import Recomputation

SHOWN_NODES = 20
MOST_REASONS = 20
SAMPLING = "percentageOfNodesToScore"
"""Nodes that no filter was run on stand under the field that causes it."""

Document = dict[str, Any]


def pod_page(mirror: Mirror, pod: Pod, recorded: Recorded | None, *, most_nodes: int | None = SHOWN_NODES) -> Document:
    """`recorded` is what a scheduler here knows; None: there is none. `most_nodes`: rows of scores; None: all."""
    found = known(pod) | (recorded.document() if recorded is not None else {})
    if mirror.source != "live":
        found["isFile"] = True
    found = with_summary(explained(mirror.recomputation, pod, found, most_nodes, mirror.notes))
    return found | {
        "uid": pod.uid,
        "manifest": manifest_of(pod),
        "funnel": _funnel_of(mirror.recomputation, pod) if "decision" in found.get("recomputed", {}) else [],
        "scores": scores_of(found),
        "attempts": attempts_of(found),
    }


def _funnel_of(recomputation: Recomputation, pod: Pod) -> list[Document]:
    if pod.spec.node_name:
        with recomputation.without(pod) as free:
            return funnel(recomputation, free, recomputation.decide(free))
    return funnel(recomputation, pod, recomputation.decide(pod))


def funnel(recomputation: Recomputation, pod: Pod, decision: Decision) -> list[Document]:
    """Filter after filter: how many nodes were left before it, and which it rejected. A node counts at the first.

    `total` counts all nodes that the filter rejects, also those that an earlier one has rejected.
    """
    by_plugin: dict[str, dict[str, int]] = {}
    for _, verdict in decision.rejections.items():
        reason = "; ".join(verdict.refusal.reasons) or verdict.refusal.code.value
        reasons = by_plugin.setdefault(verdict.plugin or "", {})
        reasons[reason] = reasons.get(reason, 0) + 1
    profile = recomputation.profile_of(pod)
    results = recomputation.results(pod)[1] if by_plugin else {}
    filters = [plugin.name for plugin in profile.at(Point.FILTER)]
    # What PreFilter rejects comes first: no filter was run there.
    names = [*(each for each in by_plugin if each not in filters), *filters]
    left, steps = decision.node_count, []
    unseen = left - len(decision.rejections) - decision.feasible_nodes
    if unseen > 0:
        by_plugin[SAMPLING] = {"not evaluated: enough feasible nodes were found": unseen}
        names.append(SAMPLING)
    for name in names:
        reasons = by_plugin.get(name, {})
        rejected = sum(reasons.values())
        most = sorted(reasons.items(), key=lambda each: (-each[1], each[0]))[:MOST_REASONS]
        steps.append(
            {
                "plugin": name,
                "before": left,
                "rejected": rejected,
                "after": left - rejected,
                "total": len(results[name].rejected) if name in results else rejected,
                "reasons": [{"reason": reason, "nodes": count} for reason, count in most],
            }
        )
        left -= rejected
    return steps


def scores_of(found: Document) -> Document:
    """Of the recomputed decision: plugins, and per node a part for each, in the order of the plugins."""
    table = found.get("recomputed", {}).get("table")
    return score_columns(table) if table is not None else {"plugins": [], "nodes": []}


def score_columns(table: Document) -> Document:
    """A table of scores, without repeating the names of plugins for every node."""
    return {
        "plugins": [
            {"name": each["plugin"], "weight": each["weight"]} | ({"isSame": True} if each.get("isSame") else {})
            for each in table["plugins"]
        ],
        "nodes": [
            {
                "name": row["node"],
                "total": row["total"],
                "parts": [{key: score[key] for key in ("raw", "normalized", "weighted")} for score in row["scores"]],
            }
            for row in table["nodes"]
        ],
        "scoredNodes": table["scoredNodes"],
    }


def attempts_of(found: Document) -> Sequence[Document]:
    """Recorded attempts in order, the last one last; those in a row that ended alike are one."""
    decision = found.get("decision")
    if decision is None:
        return []
    earlier: list[Document] = list(decision.get("earlier", ()))
    outcome = decision.get("error") or decision.get("node") or decision.get("message") or ""
    last = {"time": decision["time"], "lastTime": decision["time"], "attempts": 1, "message": outcome}
    if decision.get("node") and not decision.get("error"):
        last["node"] = decision["node"]
    if started_by := decision.get("startedBy"):
        last["startedBy"] = {started_by: 1}
    return [*earlier, last]
