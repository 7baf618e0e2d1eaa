"""One decision in words: the chosen node and its scores, or who rejected which nodes and what would help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

NAMED_NODES = 5
UNRESOLVABLE, TOO_SMALL = "UnschedulableAndUnresolvable", "Insufficient "

Evidence = dict[str, Any]


def placed_lines(decision: Evidence) -> Iterator[str]:
    """The chosen node and its scores."""
    yield f"  {decision['node']} was chosen: {feasible(decision, 'was')} ({decision['evaluatedNodes']} looked at)."
    scores = decision.get("scores", ())
    if scores:
        width = max(len(score["plugin"]) for score in scores)
        yield ""
        yield f"  {'PLUGIN':<{width}}  {'RAW':>12}  {'OF 100':>6}  {'WEIGHT':>6}  {'SCORE':>6}"
        for score in scores:
            yield (
                f"  {score['plugin']:<{width}}  {score['raw']:>12}  {score['normalized']:>6}  "
                f"{score['weight']:>6}  {score['weighted']:>6}"
            )
        yield f"  {'total':<{width}}  {'':>12}  {'':>6}  {'':>6}  {decision['total']:>6}"
    elif decision["feasibleNodes"] == 1:
        yield "  A single feasible node is taken without scoring."
    yield from _outside_data(decision)
    if decision.get("rejections"):
        yield ""
        yield "  Nodes that were not feasible:"
        yield from _rejections(decision)


def feasible(decision: Evidence, verb: str) -> str:
    """`1 of 3 nodes was feasible`; `verb` is that of one node."""
    count, nodes = decision["feasibleNodes"], decision["nodes"]
    plural = {"was": "were", "is": "are"}[verb]
    return f"{count} of {nodes} node{'s' * (nodes != 1)} {verb if count == 1 else plural} feasible"


def _outside_data(decision: Evidence) -> Iterator[str]:
    """Which data of other systems the plugins read, and from when it was."""
    about = decision.get("usedData") or {}
    lines = [f"  {name} read {about[name]}." for name in decision.get("used") or () if name in about]
    if lines:
        yield ""
        yield from lines


def refused_lines(decision: Evidence) -> Iterator[str]:
    """Why no node is feasible, whether preemption helps, and what the pod waits for."""
    yield f"  {decision['message']}"
    if hint := (decision.get("fault") or {}).get("hint"):
        yield f"  Hint: {hint}."
    if any(rejected_by := decision.get("refusedBy", ())):
        yield f"  Rejected by {', '.join(rejected_by)}."
    if decision.get("rejections"):
        yield ""
        if rejected_by:
            # A node was chosen; the rejection came after that.
            yield "  Nodes that were not feasible:"
        yield from _rejections(decision)
    yield from _room(decision)
    if waits := decision.get("waitsFor"):
        yield ""
        yield "  It is tried again when one of these happens:"
        for wait in waits:
            why = f"registered by {wait['plugin']}"
            if wait.get("follows"):
                why = f"follows from {wait['follows']} of {wait['plugin']}: a new node often arrives with a taint"
            yield f"    {wait['resource']}: {', '.join(wait['actions'])}   ({why})"


def _room(decision: Evidence) -> Iterator[str]:
    """What preemption plans, or why no node is a candidate."""
    if plan := decision.get("plan"):
        yield ""
        evicted: list[str] = plan["evict"]
        kept = f"{plan['nominate']} is kept for it" if plan.get("nominate") else "no node is kept for it"
        yield f"  To make room, {len(evicted)} pod{'s' * (len(evicted) != 1)} of lower priority must go; {kept}:"
        yield from (f"    {pod}" for pod in evicted)
        others = [each for each in plan.get("candidates", ()) if each["node"] != plan["nominate"]]
        if others:
            yield f"  It was the best of {plan['candidateCount']} nodes; others were:"
            yield from (f"    {_candidate(each)}" for each in others[:NAMED_NODES])
    elif groups := decision.get("noRoom"):
        yield ""
        yield "  Evicting pods of lower priority would not help:"
        for group in groups:
            yield f"    {'; '.join(group['reasons'])}"
            yield f"      {_counted_nodes(group)}"


def _candidate(candidate: Evidence) -> str:
    victims: list[str] = candidate["victims"]
    protected = candidate["budgetViolations"]
    shown = ", ".join(victims[:NAMED_NODES]) + (" …" if len(victims) > NAMED_NODES else "")
    budgets = f"; a disruption budget protects {protected} of them" if protected else ""
    return f"{candidate['node']}: {shown}{budgets}"


def _counted_nodes(group: Evidence) -> str:
    nodes: list[str] = group["nodes"]
    count = group["count"]
    more = f" and {count - NAMED_NODES} more" if count > NAMED_NODES else ""
    return f"{count} node{'s' * (count != 1)}: {', '.join(nodes[:NAMED_NODES])}{more}"


def _rejections(decision: Evidence) -> Iterator[str]:
    groups: Sequence[Evidence] = decision["rejections"]
    alike = Counter((group["plugin"], *group["reasons"]) for group in groups)
    for group in groups:
        by = group["plugin"] or "pre_filter"
        reasons = "; ".join(group["reasons"]) or group["code"]
        is_one_of_two = alike[group["plugin"], *group["reasons"]] > 1
        yield f"  {by}: {reasons}{despite_eviction(group, is_one_of_two=is_one_of_two)}"
        yield f"      {_counted_nodes(group)}"
    if left_out := decision.get("rejectionsLeftOut"):
        yield f"  … and {left_out} more reasons"


def despite_eviction(group: Evidence, *, is_one_of_two: bool) -> str:
    """Where the same reasons stand twice, what differs: whether they would hold on an empty node."""
    if group["code"] == UNRESOLVABLE and (
        is_one_of_two or any(each.startswith(TOO_SMALL) for each in group["reasons"])
    ):
        return ", even with all pods there evicted"
    return ""
