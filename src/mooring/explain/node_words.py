"""A node in words: what runs there, and what it would take of the pods that are pending."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mooring.explain.decision_words import Evidence
from mooring.explain.owner_words import counted
from mooring.explain.recomputed_words import aligned

SHOWN_PODS = 10


def node_in_full(found: Evidence, *, is_wide: bool = False) -> str:
    """For `mooring explain node/NAME`."""
    return "\n".join(_lines(found, is_wide))


def _lines(found: Evidence, is_wide: bool) -> Iterator[str]:
    yield _first_line(found)
    if found["taints"]:
        yield f"  Taints: {', '.join(found['taints'])}"
    yield ""
    rows = found["resources"]
    yield from aligned(
        [
            ["RESOURCE", "ALLOCATABLE", "REQUESTED", "FREE"],
            *([row["resource"], row["allocatable"], row["requested"], row["free"]] for row in rows),
        ]
    )
    for lines in (_pod_lines(found["pods"], is_wide), _pending_lines(found)):
        if text := list(lines):
            yield from ("", *text)


def _first_line(found: Evidence) -> str:
    pods: Sequence[Evidence] = found["pods"]
    state = [] if found["isReady"] else ["not ready"]
    state += ["cordoned"] if found["isUnschedulable"] else []
    described = f" is {' and '.join(state)} and" if state else ""
    return f"Node {found['node']}{described} runs {len(pods)} pod{'s' * (len(pods) != 1)}."


def _pod_lines(pods: Sequence[Evidence], is_wide: bool) -> Iterator[str]:
    if not pods:
        return
    shown = pods if is_wide else pods[:SHOWN_PODS]
    cells = [["POD", "PRIORITY", "REQUESTS"]]
    for pod in shown:
        requests = ", ".join(f"{amount} {resource}" for resource, amount in pod["requests"].items())
        cells.append([pod["pod"], str(pod["priority"]), requests or "none"])
    yield from aligned(cells)
    if left := len(pods) - len(shown):
        yield f"  … and {left} more pods: -o wide shows all."


def _pending_lines(found: Evidence) -> Iterator[str]:
    pending, evaluated = found["pending"], found["evaluated"]
    if not pending:
        yield "No pod is pending."
        return
    which = counted(pending, "pending pod")
    if evaluated < pending:
        which = f"the {evaluated} of highest priority of {which}"
    yield f"Which pending pods would it take? Evaluated {which}, each as if it were the next:"
    if fits := found["fits"]:
        yield f"  It fits {counted(len(fits), 'pod', fits)}"
    for group in found["rejected"]:
        filters = "; ".join(f"{each['plugin']}: {', '.join(each['reasons'])}" for each in group["filters"])
        yield f"  It rejects {counted(group['count'], 'pod', group['pods'])}"
        yield f"    {filters}"
        if missing := group["first"]["missing"]:
            yield f"    for {group['first']['pod']} it {', and it '.join(missing)}"
    if gated := found["gated"]:
        yield f"  Not in the queue yet: {counted(len(gated), 'pod', gated)}"
