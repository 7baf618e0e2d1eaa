"""For each group of nodes that a plugin rejects for one reason: the node that is nearest to accepting the pod."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mooring.engine import Decision
from mooring.engine.rejected import PluginVerdict
from mooring.framework import Pod
from mooring.why.proposals import Gap, RejectedNode, measure_of
from mooring.why.recomputation import Recomputation
from mooring.why.verification import Verifier

MOST_GROUPS = 10
MOST_MEASURED = 2_000
"""Nodes of a group that are compared; where a plugin rejects more, the first of them."""


def near_misses(recomputation: Recomputation, pod: Pod, decision: Decision) -> list[dict[str, Any]]:
    """Ready for JSON, the groups of most nodes first. Every change was verified by deciding again."""
    groups: dict[PluginVerdict, list[str]] = {}
    for node, verdict in decision.rejections.items():
        groups.setdefault(verdict, []).append(node)
    cycle, results = recomputation.results(pod)
    rejecting = Counter(node for result in results.values() for node in result.rejected)
    verifier = Verifier(recomputation, pod)
    found = []
    for (plugin, refusal), nodes in sorted(groups.items(), key=lambda group: -len(group[1]))[:MOST_GROUPS]:
        measured = _rejecting_plugin(plugin, nodes, results)
        fewest = min(rejecting[node] for node in nodes)
        candidates = [node for node in nodes if rejecting[node] == fewest][:MOST_MEASURED]

        def gap(node: str, plugin: str = measured) -> Gap:
            view = recomputation.view(node)
            given = results[plugin].rejected.get(node) if plugin in results else None
            if view is None or given is None:
                return Gap("is rejected", float("inf"))
            return measure_of(plugin)(RejectedNode(recomputation, cycle, plugin, pod, view, given))

        gaps = {node: gap(node) for node in candidates}
        nearest = min(gaps, key=lambda node: gaps[node].distance)
        # PreFilter refused the pod as a whole: no node is nearer than another.
        is_of_pod = decision.refusal is not None
        found.append(
            {
                "plugin": plugin or measured,
                "reasons": list(refusal.reasons),
                "code": refusal.code.value,
                "count": len(nodes),
                "onlyThis": 0
                if is_of_pod
                else sum(rejecting[node] == 1 and gaps[node].sentence == gaps[nearest].sentence for node in gaps),
                "node": None if is_of_pod else nearest,
                "missing": verifier.gaps(nearest),
                "changes": [each.document() for each in verifier.feasible(nearest)],
            }
        )
    return found


def _rejecting_plugin(plugin: str, nodes: list[str], results: dict[str, Any]) -> str:
    """Where PreFilter left nodes out, no plugin is named: it is one that rejects them."""
    if plugin:
        return plugin
    return next((name for name, result in results.items() if nodes[0] in result.rejected), plugin)
