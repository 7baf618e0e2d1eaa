"""From evidence (plain data, as `Decision.evidence` and the decision log give it) to text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from mooring.base.durations import go_duration
from mooring.base.errors import did_you_mean

NAMED_NODES = 5
UNRESOLVABLE, TOO_SMALL = "UnschedulableAndUnresolvable", "Insufficient "

Evidence = dict[str, Any]


def in_one_line(decision: Evidence) -> str:
    """For a table: the winning score, or the message."""
    if decision.get("node") is None:
        return str(decision.get("error") or decision.get("message") or "not decided")
    scores = [f"{score['plugin']} {score['weighted']}" for score in decision.get("scores", ())]
    feasible = f"{decision['feasibleNodes']} of {decision['nodes']} nodes feasible"
    if not scores:
        return "the only feasible node" if decision["feasibleNodes"] == 1 else feasible
    return f"score {decision['total']} ({', '.join(scores)}); {feasible}"


def in_full(found: Evidence) -> str:
    """For `mooring explain`: what the API server knows, then the scheduler's last decision."""
    return "\n".join(_lines(found))


def _lines(found: Evidence) -> Iterator[str]:
    yield f"Pod {found['pod']} {_where(found)} (profile {found['profile']}, {found.get('phase') or 'Pending'})."
    if gating := found.get("gating"):
        yield f"  {gating['plugin']} keeps it out of the queue: {'; '.join(gating['reasons'])}"
    decision = found.get("decision")
    if decision is None:
        yield from _without_decision(found)
        return
    yield ""
    yield f"Last decision: attempt {decision.get('attempt', 1)} at {decision['time']}."
    if decision.get("error"):
        yield f"  It was not bound: {decision['error']}"
    elif decision.get("node") is None:
        yield from _refused(decision)
    else:
        yield from _placed(decision)
    if not found["node"] and found.get("queue"):
        yield ""
        yield _queue_sentence(found["queue"], decision)


def _where(found: Evidence) -> str:
    if found["node"]:
        return f"runs on {found['node']}"
    decision = found.get("decision") or {}
    if found.get("queue") == "waiting on permit":
        waits: list[Evidence] = decision["waitsFor"]
        plugins = ", ".join(wait["plugin"] for wait in waits)
        return f"waits on permit of {plugins} on {waits[0]['node']}, {_left(waits[0])} left"
    if found.get("queue") == "binding":
        return f"is being bound to {decision.get('node')}"
    return "waits for a node"


def _left(wait: Evidence) -> str:
    return go_duration(round(float(wait["secondsLeft"])))


def _queue_sentence(queue: str, decision: Evidence) -> str:
    if queue == "waiting on permit":
        waits: list[Evidence] = decision["waitsFor"]
        until = "; ".join(f"{wait['plugin']} until {wait['deadline']} ({_left(wait)} left)" for wait in waits)
        return f"It is bound when these plugins allow it, and refused when the time of one ends: {until}."
    if queue == "binding":
        return "It has left the queue and is being bound."
    words = _QUEUE_WORDS.get(queue, "")
    if queue == "unschedulable" and (kinds := decision.get("waitsForKinds")):
        words = f": it is tried again when {' and '.join(kinds)} can be listed, or after five minutes"
    elif queue == "unschedulable" and not decision.get("waitsFor"):
        words = NO_EVENT
    return f"In the queue it is {queue}{words}."


NO_EVENT = ": no cluster event requeues it; it is tried again after five minutes at most"
_QUEUE_WORDS = {
    "active": ": it is tried as soon as the scheduler gets to it",
    "backoff": ": it is tried again when its backoff ends, or earlier if nothing else is to do",
    "unschedulable": ": it is tried again when one of the events above happens, or after five minutes",
    "gated": ": a plugin keeps it out of the queue",
    "in flight": ": it is being placed at this moment",
}


def _without_decision(found: Evidence) -> Iterator[str]:
    if condition := found.get("condition"):
        yield f"  {condition['reason']}: {condition['message']}"
    if found.get("gating"):
        return
    yield ""
    served: list[str] = sorted(found.get("servedProfiles", ()))
    if served and found["profile"] not in served:
        hint = did_you_mean(found["profile"], served)
        yield f'No scheduler here serves "{found["profile"]}"; the one that runs serves {", ".join(served)}.{hint}'
        yield "The schedulerName of a pod cannot be changed: create the pod again with another."
    elif served:
        yield f"The scheduler here serves {', '.join(served)} and has no decision about this pod in memory."
    elif found.get("isUnresponsive"):
        yield "A scheduler runs here and does not respond, so this is all that is known."
    else:
        yield "No Mooring scheduler of yours runs on this machine for that API server, so this is all that is known."


def _placed(decision: Evidence) -> Iterator[str]:
    yield (
        f"  {decision['node']} was chosen: {decision['feasibleNodes']} of {decision['nodes']} nodes were feasible"
        f" ({decision['evaluatedNodes']} looked at)."
    )
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
    if decision.get("rejections"):
        yield ""
        yield "  Nodes that were not feasible:"
        yield from _rejections(decision)


def _refused(decision: Evidence) -> Iterator[str]:
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
        yield f"  {by}: {reasons}{_despite_eviction(group, is_one_of_two)}"
        yield f"      {_counted_nodes(group)}"
    if left_out := decision.get("rejectionsLeftOut"):
        yield f"  … and {left_out} more reasons"


def _despite_eviction(group: Evidence, is_one_of_two: bool) -> str:
    """Where the same reasons stand twice, what differs: whether they would hold on an empty node."""
    if group["code"] == UNRESOLVABLE and (
        is_one_of_two or any(each.startswith(TOO_SMALL) for each in group["reasons"])
    ):
        return ", even with all pods there evicted"
    return ""
