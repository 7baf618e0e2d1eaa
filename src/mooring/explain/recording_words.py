"""What a recording knows of a bound pod, in words: the decision of then, and what changed since."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def since_recorded(found: Mapping[str, Any]) -> str:
    """The paragraph below an explanation, with the line breaks before it; "" without a recording."""
    since = found.get("sinceRecorded")
    return "\n".join(("", *_lines(since))) if since else ""


def _lines(since: Mapping[str, Any]) -> Iterator[str]:
    decision = since["decision"]
    yield ""
    yield f"Recorded in {since['file']}:"
    yield (
        f"  At {since['decidedAt']} it was decided for {since['node']}, one of {decision['feasibleNodes']} feasible "
        f"nodes of {decision['nodes']} (decision {since['index']})."
    )
    changes = list(_changes(since))
    if not changes:
        yield "  Nothing that decisions read has changed since."
        return
    yield "  Since then:"
    for change in changes:
        yield f"  - {change}"


def _changes(since: Mapping[str, Any]) -> Iterator[str]:
    if (new := since["newNodes"])["count"]:
        yield f"{_nodes(new['count'])} added: {_names(new)}"
    if (gone := since["goneNodes"])["count"]:
        yield f"{_nodes(gone['count'])} removed: {_names(gone)}"
    for name, what in since["changedNodes"].items():
        yield f"{name} has other {', '.join(what)}"
    if more := since["changedNodeCount"] - len(since["changedNodes"]):
        yield f"{more} more nodes changed"
    if since["newPodCount"] or since["gonePodCount"]:
        yield f"pods that were bound: {since['newPodCount']}; that are gone: {since['gonePodCount']}"
    if (here := since["newPodsHere"])["count"]:
        yield f"bound to its node: {_names(here)}"
    if (here := since["gonePodsHere"])["count"]:
        yield f"gone from its node: {_names(here)}"


def _nodes(count: int) -> str:
    return f"{count} node{'s were' if count > 1 else ' was'}"


def _names(named: Mapping[str, Any]) -> str:
    more = named["count"] - len(named["names"])
    return ", ".join(named["names"]) + (f" and {more} more" if more else "")
