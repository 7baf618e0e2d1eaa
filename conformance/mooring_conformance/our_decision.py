"""Our decision about a case, in the recorder's form, ready to be compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from mooring.base.errors import OperatorMistake, PluginFault
from mooring.engine import Decision, Form
from mooring.framework import Point, Refusal
from mooring_conformance.situation import Points, Situation

Json = dict[str, Any]


@dataclass
class OurDecision:
    """Our decision about a case. Fields that do not apply keep their defaults."""

    result: str
    """As the recorder's: feasible, unschedulable, noNodes, gated, error; or `rejected`: the configuration is wrong."""
    words: str = ""
    """Why, for an error or a rejected configuration."""
    pre_enqueue: Json | None = None
    pre_filter: Json | None = None
    """The refusal of the pod as a whole."""
    skipped: set[str] = field(default_factory=set)
    nodes: dict[str, Json | None] = field(default_factory=dict)
    chosen: str | None = None
    nominated: str = ""
    """What the pod was nominated to before."""
    score_skipped: set[str] = field(default_factory=set)
    scores: dict[str, Json] | None = None
    """None: nothing was scored."""
    message: str = ""
    post_filter: Json | None = None


def our_decision(situation: Situation, form: Form, points: Points | None = None) -> OurDecision:
    """Decide the case, and convert the decision."""
    points = points or situation.points
    for plugin, _ in points.get(Point.PRE_ENQUEUE, ()):
        refusal = plugin.pre_enqueue(situation.pod)
        if refusal is not None:
            return OurDecision("gated", pre_enqueue=_verdict(plugin.name, refusal))
    decision = situation.decide(form, points=points)
    decided = _outcome(decision)
    decided.nominated = situation.pod.status.nominated_node_name
    if decided.nominated and decision.node == decided.nominated and decision.evaluated_nodes == 1:
        # It was taken without a look at the others; what they are worth is seen without the nomination.
        status = msgspec.structs.replace(situation.pod.status, nominated_node_name="")
        others = _outcome(situation.decide(form, msgspec.structs.replace(situation.pod, status=status), points))
        decided.nodes, decided.scores, decided.score_skipped = others.nodes, others.scores, others.score_skipped
    return decided


def rejected(mistake: OperatorMistake) -> OurDecision:
    """The configuration cannot be used."""
    return OurDecision("rejected", words=str(mistake))


def _outcome(decision: Decision) -> OurDecision:
    skipped = set(decision.cycle.skipped_filters)
    if decision.fault is not None:
        return OurDecision("error", str(decision.fault), skipped=skipped)
    if not decision.node_count:
        return OurDecision("noNodes", message=decision.message)
    decided = OurDecision("feasible" if decision.node else "unschedulable", skipped=skipped, chosen=decision.node)
    if decision.refusal is not None:
        decided.pre_filter = _verdict(*decision.refusal, is_sorted=False)
    else:
        rejections = decision.rejections
        decided.nodes = {
            name: _verdict(*rejections[name]) if name in rejections else None
            for name in decision.cycle.state.nodes.names
        }
    columns = decision.columns()
    if columns is not None:
        decided.score_skipped = set(decision.cycle.skipped_scores)
        decided.scores = {
            node: {
                "total": int(columns.total[place]),
                "raw": {plugin: int(column[place]) for plugin, column in columns.raw.items()},
                "normalized": {plugin: int(column[place]) for plugin, column in columns.normalized.items()},
                "scores": {
                    plugin: int(column[place]) * columns.weights[plugin]
                    for plugin, column in columns.normalized.items()
                },
            }
            for place, node in enumerate(columns.nodes)
        }
    if decided.result == "unschedulable":
        decided.message = decision.message
        decided.post_filter = _post_filter(decision)
    return decided


def _verdict(plugin: str, refusal: Refusal, *, is_sorted: bool = True) -> Json:
    reasons = sorted(refusal.reasons) if is_sorted else list(refusal.reasons)
    return {"plugin": plugin, "code": refusal.code.value, "reasons": reasons}


def _post_filter(decision: Decision) -> Json | None:
    helped = decision.post_filtered
    if not helped.results:
        return None
    last = helped.results[-1][1]
    if helped.plan is not None:
        code = "Success"
    elif isinstance(last, PluginFault):
        code = "Error"
    else:
        assert isinstance(last, Refusal)
        code = last.code.value
    outcome: Json = {"code": code, "message": helped.message, "nominatedNode": helped.nominate}
    if helped.plan is not None:
        outcome["victims"] = [pod.key for pod in helped.plan.evict]
        outcome["deleted"] = sorted(pod.key for pod in helped.plan.evict if not pod.is_terminating)
        outcome["candidates"] = {
            candidate.node: {
                "victims": [pod.key for pod in candidate.victims],
                "numPDBViolations": candidate.budget_violations,
            }
            for candidate in helped.plan.candidates
        }
    return outcome
