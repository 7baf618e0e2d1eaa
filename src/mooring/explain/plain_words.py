"""Reasons in plain words: what the nodes lack, for people who do not know the plugins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

MOST_REASONS = 3
INSUFFICIENT, REJECTED = "Insufficient ", "are rejected by "
_PLAIN = {
    "Too many pods": "run as many pods as they may",
    "node(s) had untolerated taint(s)": "have a taint that it does not tolerate",
    "node(s) were unschedulable": "are cordoned",
    "node(s) didn't match Pod's node affinity/selector": "lack a label that its node selector or affinity requires",
    "node(s) didn't match scheduler-enforced node affinity": "are not for pods of this profile",
    "node(s) didn't match pod affinity rules": "have no pod nearby that its affinity requires",
    "node(s) didn't match pod anti-affinity rules": "are near a pod that its anti-affinity avoids",
    "node(s) didn't satisfy existing pods anti-affinity rules": "are near a pod whose anti-affinity avoids it",
    "node(s) didn't match pod topology spread constraints": "would spread its pods too unevenly",
    "node(s) didn't match pod topology spread constraints (missing required label)": (
        "lack the label of its topology spread constraint"
    ),
    "node(s) didn't have free ports for the requested pod ports": "have its host port in use",
}
"""What follows "3 of 5 nodes"."""
_SINGULAR = {"have": "has", "lack": "lacks", "are": "is", "run": "runs", "were": "was"}


def in_plain_words(reasons: Sequence[str], *, is_one: bool = False) -> str:
    """A predicate for nodes, or for one: "have too little cpu"."""
    parts = []
    short = [reason.removeprefix(INSUFFICIENT) for reason in reasons if reason.startswith(INSUFFICIENT)]
    if short:
        parts.append(f"have too little {' and '.join(short)}")
    for reason in reasons:
        if not reason.startswith(INSUFFICIENT):
            parts.append(_PLAIN.get(reason) or reason.removeprefix("node(s) "))
    if is_one:
        parts = [
            " ".join([_SINGULAR.get(verb := part.partition(" ")[0], verb), part.partition(" ")[2]]) for part in parts
        ]
    return " and ".join(parts)


def unserved_words(scheduler: str) -> str:
    """Why nothing becomes of a pod with this schedulerName."""
    return f'no scheduler here serves "{scheduler}"'


def served_words(profiles: Iterable[str]) -> str:
    return f"the one that runs serves {', '.join(sorted(profiles))}"


def dominant_reason(decision: dict[str, Any], absent: Collection[str] = ()) -> str:
    """Why a pod fits no node: what most nodes lack. "" where that is not known.

    `absent` are resources that the pod requests and no node has.
    """
    if decision.get("node") is not None or decision.get("error"):
        return ""
    if after := decision.get("refusedBy"):
        return f"a node was chosen, and {', '.join(after)} rejected it"
    if fault := decision.get("fault"):
        return f"plugin {fault['plugin']} fails"
    nodes, groups = decision.get("nodes", 0), decision.get("rejections") or ()
    if not nodes:
        return "the cluster has no nodes" if "nodes" in decision else ""
    if not groups:
        return ""
    named = {reason.removeprefix(INSUFFICIENT) for group in groups for reason in group["reasons"]}
    if nowhere := [resource for resource in absent if resource in named]:
        return f"no node has {' and '.join(nowhere)}"
    counts: Counter[str] = Counter()
    where: dict[str, list[int]] = {}
    for number, group in enumerate(groups):
        for reason in group["reasons"] or [f"{REJECTED}{group['plugin']}"]:
            counts[reason] += group["count"]
            where.setdefault(reason, []).append(number)
    most = max(counts.values())
    # Reasons of the same nodes are one sentence; of reasons of as many other nodes none is more important.
    together: dict[tuple[int, ...], list[str]] = {}
    for reason, numbers in where.items():
        if counts[reason] == most:
            together.setdefault(tuple(numbers), []).append(reason)
    first, *others = list(together.values())[:MOST_REASONS]
    if most == nodes and not any(map(_is_of_nodes, first)):
        return "; ".join(first)
    which = f"{most} of {nodes} nodes"
    if most == nodes:
        which = "the only node" if nodes == 1 else "both nodes" if nodes == 2 else f"all {nodes} nodes"
    parts = [f"{which} {in_plain_words(first, is_one=most == 1)}"]
    return ", ".join([*parts, *(f"{most} {in_plain_words(each, is_one=most == 1)}" for each in others)])


def _is_of_nodes(reason: str) -> bool:
    return reason.startswith((INSUFFICIENT, "node(s)", REJECTED)) or reason in _PLAIN
