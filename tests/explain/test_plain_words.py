"""The first line of an explanation: why a pod is pending, for people who do not know the plugins."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.explain.plain_words import dominant_reason


def refused(*groups: tuple[str, int], nodes: int = 5, **more: Any) -> dict[str, Any]:
    rejections = [
        {"plugin": "P", "reasons": reasons.split("; ") if reasons else [], "count": count} for reasons, count in groups
    ]
    return {"node": None, "nodes": nodes, "rejections": rejections} | more


CASES = {
    "what most nodes lack": (
        refused(("Insufficient cpu", 3), ("node(s) had untolerated taint(s)", 2)),
        "3 of 5 nodes have too little cpu",
    ),
    "a reason counts in every group that has it": (
        refused(("Insufficient cpu", 2), ("Insufficient memory", 1), ("Insufficient cpu; Insufficient memory", 2)),
        "4 of 5 nodes have too little cpu",
    ),
    "reasons that the same nodes have": (
        refused(("Insufficient cpu; Insufficient memory", 5)),
        "all 5 nodes have too little cpu and memory",
    ),
    "as many nodes for another reason": (
        refused(("Insufficient cpu", 2), ("node(s) had untolerated taint(s)", 2), ("Too many pods", 1)),
        "2 of 5 nodes have too little cpu, 2 have a taint that it does not tolerate",
    ),
    "two nodes": (refused(("Too many pods", 2), nodes=2), "both nodes run as many pods as they may"),
    "one node": (refused(("node(s) were unschedulable", 1), nodes=1), "the only node is cordoned"),
    "one of several": (
        refused(("node(s) had untolerated taint(s)", 1)),
        "1 of 5 nodes has a taint that it does not tolerate",
    ),
    "a plugin's own words": (refused(("node(s) had no widget", 5)), "all 5 nodes had no widget"),
    "a reason that is no node's": (refused(("pod has no quota left", 5)), "pod has no quota left"),
    "no reason": (refused(("", 5)), "all 5 nodes are rejected by P"),
    "no nodes": (refused(nodes=0), "the cluster has no nodes"),
    "a plugin that fails": (refused(fault={"plugin": "Broken"}), "plugin Broken fails"),
    "refused after a node was chosen": (refused(refusedBy=["Quota"]), "a node was chosen, and Quota rejected it"),
    "an error of binding": (refused(error="timeout"), ""),
    "a placed pod": ({"node": "one", "nodes": 5}, ""),
}


@pytest.mark.parametrize(("decision", "reason"), CASES.values(), ids=CASES.keys())
def test_the_dominant_reason(decision: dict[str, Any], reason: str):
    assert dominant_reason(decision) == reason
