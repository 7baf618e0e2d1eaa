"""From evidence (plain data, as `Decision.evidence` and the decision log give it) to text."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.base.clock import parse_timestamp
from mooring.base.durations import go_duration
from mooring.base.errors import did_you_mean
from mooring.explain.decision_words import Evidence, placed_lines, refused_lines
from mooring.explain.group_words import group_lines
from mooring.explain.plain_words import dominant_reason, served_words, unserved_words
from mooring.explain.recomputed_words import recomputation_lines


def in_one_line(decision: Evidence) -> str:
    """For a table: the winning score, or the message."""
    if decision.get("node") is None:
        return str(decision.get("error") or decision.get("message") or "not decided")
    scores = [f"{score['plugin']} {score['weighted']}" for score in decision.get("scores", ())]
    feasible = f"{decision['feasibleNodes']} of {decision['nodes']} nodes feasible"
    if not scores:
        return "the only feasible node" if decision["feasibleNodes"] == 1 else feasible
    return f"score {decision['total']} ({', '.join(scores)}); {feasible}"


def in_full(found: Evidence, *, is_wide: bool = False) -> str:
    """For `mooring explain`: what the API server knows, the scheduler's last decision, and one that was taken now.

    `is_wide`: all nodes that were scored.
    """
    return "\n".join(_lines(found, is_wide))


def summary(found: Evidence) -> str:
    """Why the pod is pending, in plain words: what most nodes lack. "" for one that is not, or where none is known."""
    if found["node"]:
        return ""
    if is_unserved(found):
        return unserved_words(found["profile"])
    recomputed = found.get("recomputed") or {}
    gating = found.get("gating") or recomputed.get("gating")
    if gating:
        return f"{gating['plugin']} keeps it out of the queue: {'; '.join(gating['reasons'])}"
    for decision in (found.get("decision"), recomputed.get("decision")):
        if decision is not None and (reason := dominant_reason(decision, recomputed.get("absentResources", ()))):
            return reason
    return ""


def is_unserved(found: Evidence) -> bool:
    """Whether schedulers run here, and none of them takes the pod."""
    served = found.get("servedProfiles", ())
    return bool(served) and not found["node"] and found["profile"] not in served


def _lines(found: Evidence, is_wide: bool) -> Iterator[str]:
    reason = summary(found)
    status = f"(profile {found['profile']}, {found.get('phase') or 'Pending'})"
    before = f"; {text}" if (text := waited(found)) else ""
    yield f"Pod {found['pod']} {_where(found)} {status}{f': {reason}' if reason else ''}{before}."
    if (group := found.get("podGroup")) is not None:
        yield from group_lines(group)
    yield from _by_plugins(found)
    yield from _recorded(found)
    if (recomputed := found.get("recomputed")) is not None:
        yield from recomputation_lines(found, recomputed, is_wide)
    elif why := found.get("notRecomputed"):
        yield ""
        yield f"It was not decided again: {why}"


def _by_plugins(found: Evidence) -> Iterator[str]:
    """What plugins know of it beside decisions. The scheduler that runs knows more than a recomputation."""
    for known in found.get("plugins") or (found.get("recomputed") or {}).get("plugins") or ():
        yield from (f"  {known['plugin']}: {sentence}." for sentence in known["sentences"])


def _recorded(found: Evidence) -> Iterator[str]:
    """What the scheduler that decided knows."""
    decision = found.get("decision")
    if decision is None:
        yield from _without_decision(found)
        return
    if is_unserved(found):
        yield from _unserved_lines(found)
    yield ""
    after = f", after {decision['startedBy']}" if decision.get("startedBy") else ""
    yield f"Last decision: attempt {decision.get('attempt', 1)} at {decision['time']}{after}."
    if decision.get("error"):
        yield f"  It was not bound: {decision['error']}"
    elif decision.get("node") is None:
        yield from refused_lines(decision)
    else:
        yield from placed_lines(decision)
    if not found["node"] and found.get("queue") and not is_unserved(found):
        yield ""
        yield _queue_sentence(found["queue"], decision) + _at_the_latest(found)
    if earlier := decision.get("earlier"):
        yield ""
        yield "Earlier attempts:"
        yield from map(_earlier, earlier)


def _at_the_latest(found: Evidence) -> str:
    return f" Without an event it is tried at {found['nextAttempt']}." if found.get("nextAttempt") else ""


def _earlier(attempts: Evidence) -> str:
    count, first, last = attempts["attempts"], attempts["time"], attempts["lastTime"]
    until, times = (f" to {last}", f"{count} times: ") if count > 1 else ("", "")
    after = f" after {events}" if (events := started_by(attempts)) else ""
    return f"  {first}{until}{after}  {times}{attempts['message']}"


def started_by(attempts: Evidence) -> str:
    """Which events requeued the pod for these attempts: `NodeAdd, AssignedPodDelete (2)`."""
    events: dict[str, int] = attempts.get("startedBy") or {}
    return ", ".join(f"{event} ({count})" if count > 1 else event for event, count in events.items())


def waited(found: Evidence) -> str:
    """How long a pod with a node waited for it, and why: what its scheduler reported last before. "" where unknown."""
    decision = found.get("decision") or {}
    earlier = decision.get("earlier")
    if not found["node"] or not earlier or decision.get("node") != found["node"]:
        return ""
    seconds = parse_timestamp(decision["time"]) - parse_timestamp(earlier[0]["time"])
    message = earlier[-1]["message"].partition(". ")[0].rstrip(".")
    return f"it waited {go_duration(round(seconds))} for it: {message}"


def _where(found: Evidence) -> str:
    if found["node"]:
        is_gone = ((found.get("recomputed") or {}).get("ownNode") or {}).get("isGone")
        return f"is bound to {found['node']}, which does not exist" if is_gone else f"runs on {found['node']}"
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
    if found.get("gating") or found.get("isFile"):
        return
    served: list[str] = sorted(found.get("servedProfiles", ()))
    if is_unserved(found):
        yield from _unserved_lines(found)
        return
    yield ""
    if served:
        yield f"The scheduler here serves {', '.join(served)} and has no decision about this pod in memory."
    elif found.get("isUnresponsive"):
        yield "A scheduler runs here and does not respond, so this is all that is known."
    else:
        is_all = "" if found.get("recomputed") else ", so this is all that is known"
        yield f"No Mooring scheduler of yours runs on this machine for that API server{is_all}."


def _unserved_lines(found: Evidence) -> Iterator[str]:
    served: list[str] = sorted(found["servedProfiles"])
    sentence = f"{unserved_words(found['profile'])}; {served_words(served)}"
    yield ""
    yield f"{sentence[0].upper()}{sentence[1:]}.{did_you_mean(found['profile'], served)}"
    yield "The schedulerName of a pod cannot be changed: create the pod again with another."
