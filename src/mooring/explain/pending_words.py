"""The pending pods of a cluster in words, grouped by cause."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.explain.decision_words import Evidence
from mooring.explain.owner_words import counted
from mooring.explain.recomputed_words import aligned

SHOWN_PODS = 10


def pending_in_full(found: Evidence, *, is_wide: bool = False) -> str:
    """For `mooring explain -A`."""
    return "\n".join(_lines(found, is_wide))


def _lines(found: Evidence, is_wide: bool) -> Iterator[str]:
    count = found["pending"]
    where = f" in namespace {found['namespace']}" if found["namespace"] else ""
    if not count:
        yield f"No pod is pending{where}."
        return
    yield f"{counted(count, 'pod')} {'are' if count > 1 else 'is'} pending{where}; each was decided alone."
    for group in found["groups"]:
        yield ""
        yield f"{counted(group['total'], 'pod')}: {group['reason']}"
        if group["message"] and group["message"] != group["reason"]:
            yield f"  {group['plugin']}: {group['message']}" if group["plugin"] else f"  {group['message']}"
        yield from _pods(group, is_wide)
    yield ""
    yield "What would help one of them: mooring explain NAMESPACE/NAME"


def _pods(group: Evidence, is_wide: bool) -> Iterator[str]:
    shown = group["pods"] if is_wide else group["pods"][:SHOWN_PODS]
    cells = [["POD", "OWNER", "PRIORITY", "SINCE", "ATTEMPTS", "NEXT TRY"]]
    for pod in shown:
        then = f"victims on {pod['nominatedNode']}" if "nominatedNode" in pod else pod.get("nextAttempt", "")
        cells.append(
            [
                f"{pod['namespace']}/{pod['name']}",
                pod["owner"] or "",
                str(pod["priority"]),
                pod["since"] or "",
                str(pod.get("attempts", "")),
                then,
            ]
        )
    kept = [place for place in range(len(cells[0])) if any(row[place] for row in cells[1:])]
    yield from aligned([[row[place] for place in kept] for row in cells])
    if left := group["total"] - len(shown):
        yield f"  … and {counted(left, 'more pod')}{'' if is_wide else ': -o wide shows them'}"
