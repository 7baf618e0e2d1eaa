"""What has changed since a recorded decision: objects alone do not show what was deleted or relabelled."""

from __future__ import annotations

from typing import Any

from mooring.base.clock import timestamp
from mooring.objects import Node, Pod
from mooring.recording import Recording
from mooring.simulator.scenario import Cluster

NAMED = 10
"""How many nodes or pods are named."""


def changes_since(recording: Recording, pod: Pod, now: Cluster) -> dict[str, Any] | None:
    """Since the pod got its node, ready for JSON; None where the recording has no such decision."""
    decided = next(
        (each for each in reversed(recording.decisions) if each.uid == pod.uid and each.node is not None), None
    )
    if decided is None:
        return None
    state = recording.state_at(decided.index)
    before, after = {node.name: node for node in state.nodes()}, {node.name: node for node in now.nodes}
    then = {each.uid: each for each in state.pods() if each.spec.node_name}
    bound = {each.uid: each for each in now.pods if each.spec.node_name and each.uid != pod.uid}
    gone = [each for uid, each in then.items() if uid not in bound]
    new = [each for uid, each in bound.items() if uid not in then]
    changed = {name: what for name in before.keys() & after.keys() if (what := _changes(before[name], after[name]))}
    return {
        "file": str(recording.path),
        "index": decided.index,
        "decidedAt": timestamp(decided.time),
        "node": decided.node,
        "decision": recording.evidence(decided.index),
        "newNodes": _named(sorted(after.keys() - before.keys())),
        "goneNodes": _named(sorted(before.keys() - after.keys())),
        "changedNodes": {name: changed[name] for name in sorted(changed)[:NAMED]},
        "changedNodeCount": len(changed),
        "newPodCount": len(new),
        "gonePodCount": len(gone),
        "newPodsHere": _named(sorted(each.key for each in new if each.spec.node_name == pod.spec.node_name)),
        "gonePodsHere": _named(sorted(each.key for each in gone if each.spec.node_name == pod.spec.node_name)),
    }


def _named(names: list[str]) -> dict[str, Any]:
    return {"count": len(names), "names": names[:NAMED]}


def _changes(before: Node, after: Node) -> list[str]:
    """What decisions read of a node and is another now."""
    parts = {
        "labels": (before.labels, after.labels),
        "taints": (before.spec.taints, after.spec.taints),
        "unschedulable": (before.spec.unschedulable, after.spec.unschedulable),
        "allocatable": (before.status.allocatable, after.status.allocatable),
    }
    return [name for name, (old, new) in parts.items() if old != new]
