"""The pods of a Deployment, a Job and the like, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mooring.explain.decision_words import Evidence
from mooring.explain.recomputed_words import CHANGES_APART, nearest_lines

NAMED = 5


def owner_in_full(found: Evidence) -> str:
    """For `mooring explain deployment/web`."""
    return "\n".join(_lines(found))


def _lines(found: Evidence) -> Iterator[str]:
    groups: Sequence[Evidence] = found["groups"]
    pending = [group for group in groups if group["isPending"]]
    count = sum(group["count"] for group in pending)
    name = f"{found['owner']} in namespace {found['namespace']}"
    if not found["podCount"]:
        yield f"{name} has no pods."
        return
    if not pending:
        yield f"{name}: all {found['podCount']} pods have a node."
    else:
        yield f"{name}: {count} of {found['podCount']} pods wait for a node: {pending[0]['cause']}."
    yield "  Recomputed on the cluster as it is; each pending pod was decided alone."
    for group in groups:
        yield ""
        pods = counted(group["count"], "pod", group["pods"])
        yield f"{group['cause']}: {pods}"
        if nodes := group.get("nodes"):
            named = [f"{node} ({pods})" for node, pods in nodes.items()]
            yield f"  on {counted(len(named), 'node', named)}"
        if message := group.get("message"):
            yield f"  {message}"
        if nearest := group.get("nearest"):
            yield f"  What would help {group['pods'][0]}? {CHANGES_APART}"
            yield from nearest_lines(nearest)


def counted(count: int, what: str, names: Sequence[str] = ()) -> str:
    """`7 pods: a, b, c, d, e and 2 more`; without names only how many."""
    more = f" and {count - NAMED} more" if count > NAMED else ""
    named = f": {', '.join(names[:NAMED])}{more}" if names else ""
    return f"{count} {what}{'s' * (count != 1)}{named}"
