"""Why a pod is not on a certain node: every filter's verdict there, its scores beside the chosen node's, and what would
bring it there."""

from __future__ import annotations

import contextlib
from typing import Any

from mooring.base.errors import OperatorMistake, PluginFault, did_you_mean
from mooring.engine import Decision
from mooring.engine.every_filter import PluginFilterResult
from mooring.framework import Pod
from mooring.why.pod_groups import lacks_group
from mooring.why.recomputation import Recomputation
from mooring.why.score_tables import score_table
from mooring.why.verification import Verifier


def why_not(recomputation: Recomputation, pod: Pod, node: str) -> dict[str, Any]:
    """Ready for JSON. A pod on a node is decided as if it were not there."""
    if recomputation.view(node) is None:
        names = [each.name for each in recomputation.cluster.nodes]
        raise OperatorMistake(f'there is no node "{node}".{did_you_mean(node, names)}')
    profile = recomputation.profile_of(pod)
    found: dict[str, Any] = {"pod": pod.key, "node": node, "runsOn": pod.spec.node_name or None}
    found |= {"scheduler": pod.spec.scheduler_name, "profile": profile.name}
    if pod.spec.scheduler_name != profile.name:
        found["isOtherScheduler"] = True
    if recomputation.is_extended:
        found["lacksExtenders"] = True
    if lacks_group(pod):
        found["lacksGroup"] = True
    if not pod.spec.node_name and (gating := recomputation.gating(pod)) is not None:
        found["gating"] = gating
    with recomputation.without(pod) if pod.spec.node_name else contextlib.nullcontext(pod) as free:
        decision = recomputation.decide(free)
        _, results = recomputation.results(free, node)
        verdicts = [_verdict(result, node) for result in results.values()]
        is_feasible = all(each["verdict"] in ("passes", "skips") for each in verdicts)
        found |= {"isFeasible": is_feasible, "chosen": decision.node, "filters": verdicts}
        if decision.node is None:
            found["message"] = decision.message
        other = pod.spec.node_name or decision.node
        if other is not None and recomputation.view(other) is None:
            other = decision.node
        found |= _scores(recomputation, free, decision, node, other)
        if node not in (pod.spec.node_name, decision.node):
            verifier = Verifier(recomputation, free)
            if not is_feasible:
                found["missing"] = verifier.gaps(node)
            found["changes"] = [each.document() for each in verifier.to(node)]
    return found


def _verdict(result: PluginFilterResult, node: str) -> dict[str, Any]:
    if result.fault is not None:
        return {"plugin": result.plugin, "verdict": "fails", "reasons": [str(result.fault)]}
    if node in result.rejected:
        refusal = result.rejected[node]
        verdict = {
            "plugin": result.plugin,
            "verdict": "rejects",
            "reasons": list(refusal.reasons),
            "code": refusal.code.value,
        }
        return verdict | ({"isAmongNominated": True} if node in result.among_nominated else {})
    return {"plugin": result.plugin, "verdict": "skips" if result.is_skipped else "passes"}


def _scores(recomputation: Recomputation, pod: Pod, decision: Decision, node: str, other: str | None) -> dict[str, Any]:
    """Both nodes scored beside the feasible ones: normalized scores depend on which nodes are compared."""
    columns = decision.columns()
    feasible = list(columns.nodes) if columns is not None else [decision.node] if decision.node else []
    try:
        scored = recomputation.scores(pod, sorted({*feasible, node, *([other] if other else [])}))
    except PluginFault as fault:
        return {"scoreFault": str(fault)}
    table = score_table(scored, None, None)
    rows = {row["node"]: row for row in table["nodes"]}
    return {
        "scores": {
            "scoredNodes": len(scored.nodes),
            "nodes": [rows[name] for name in dict.fromkeys((node, other)) if name is not None],
        }
    }
