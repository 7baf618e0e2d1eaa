"""The group of a pod in words: which it waits for, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.explain.decision_words import Evidence


def group_lines(group: Evidence) -> Iterator[str]:
    yield f"  {_membership(group)}."
    if (key := group.get("topologyKey")) is not None:
        yield f"  All members run on nodes with one value of the label {key}."
    for claim in group.get("claims", ()):
        yield f"  Claim {claim['name']} of the group: {_lack(claim)}."
    if condition := group.get("condition"):
        yield f"  The group: {condition['reason']}: {condition['message']}"


def _lack(claim: Evidence) -> str:
    if (name := claim.get("claim")) is None:
        return f"no ResourceClaim is created yet from template {claim['template']}"
    return f"ResourceClaim {name} {'has no devices yet' if claim['exists'] else 'does not exist'}"


def _membership(group: Evidence) -> str:
    name, members, least = group["name"], group.get("members"), group.get("minCount")
    if not group["exists"]:
        return f"It waits for PodGroup {name}, which does not exist"
    if members is None:
        return f"It belongs to PodGroup {name}" if least is None else f"It belongs to gang {name}, of at least {least}"
    scheduled = group["scheduled"]
    if least is None:
        return f"It belongs to PodGroup {name}: {scheduled} of {members} members have a node"
    if members < least:
        return f"It waits for gang {name}: {members} of {least} members exist"
    if scheduled < least:
        exist = "1 member exists" if members == 1 else f"{members} members exist"
        return f"It waits for gang {name}: {exist}, {scheduled} of {least} that it needs have a node"
    have = "1 member has" if scheduled == 1 else f"{scheduled} members have"
    return f"It belongs to gang {name}: {have} a node, of at least {least}"
