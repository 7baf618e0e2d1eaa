"""All nodes in columns: one array a field, so that thousands of nodes are a few arrays to encode and to draw.

`fragmentation` is the share of a node's free resources that cannot be used together: the difference between the free
share of the resource (cpu or memory) that is left most and of the one that is left least. 0: what is free is balanced.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mooring.objects.core import Taint
from mooring.state import RowView, State

ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
PODS = "pods"
COMPARED = ("cpu", "memory")
"""What fragmentation is computed of: every node has both."""

Document = dict[str, Any]


def node_columns(state: State, resources: Iterable[str], revision: int) -> Document:
    """Every node, in the order of the state's rows: a node keeps its place while no other is removed."""
    rows = state.nodes
    views = list(rows)
    allocatable = {each: rows.allocatable(each) for each in resources}
    requested = {each: rows.requested(each) for each in resources}
    return {
        "revision": revision,
        "names": [view.name for view in views],
        "ready": [is_ready(view) for view in views],
        "unschedulable": [bool(view.is_unschedulable) for view in views],
        "zones": [zone_of(view) for view in views],
        "labels": [view.labels for view in views],
        "taints": [[taint_text(taint) for taint in view.taints] for view in views],
        "pods": [len(view.placed) for view in views],
        "allocatable": {each: column.tolist() for each, column in allocatable.items()},
        "requested": {each: column.tolist() for each, column in requested.items()},
        "fragmentation": _fragmentation(
            [1 - _share(rows.requested(each), rows.allocatable(each)) for each in COMPARED]
        ),
    }


def node_row(view: RowView, resources: Iterable[str]) -> Document:
    """One node, with the fields of the columns."""
    allocatable = {each: view.allocatable(each) for each in resources}
    requested = {each: view.requested(each) for each in resources}
    free = [1 - _share(np.array([view.requested(each)]), np.array([view.allocatable(each)])) for each in COMPARED]
    return {
        "name": view.name,
        "ready": is_ready(view),
        "unschedulable": bool(view.is_unschedulable),
        "zone": zone_of(view),
        "labels": view.labels,
        "taints": [taint_text(taint) for taint in view.taints],
        "pods": len(view.placed),
        "allocatable": allocatable,
        "requested": requested,
        "fragmentation": _fragmentation(free)[0],
    }


def resources_of(state: State) -> list[str]:
    """What nodes have: cpu and memory first, then by name."""
    found: set[str] = set()
    for view in state.nodes:
        found.update(view.object.status.allocatable)
    first = [each for each in ("cpu", "memory", "ephemeral-storage", PODS) if each in found]
    return [*first, *sorted(found.difference(first))]


def is_ready(view: RowView) -> bool:
    """A node without conditions is one of a file: nothing is known against it."""
    return view.conditions.get("Ready", "True") == "True"


def zone_of(view: RowView) -> str:
    return view.labels.get(ZONE) or view.labels.get(OLD_ZONE) or ""


def taint_text(taint: Taint) -> str:
    """As `kubectl taint` spells it."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _share(requested: Any, allocatable: Any) -> Any:
    return np.clip(np.divide(requested, np.maximum(allocatable, 1)), 0.0, 1.0)


def _fragmentation(free: list[Any]) -> list[float]:
    column: list[float] = np.round(np.maximum.reduce(free) - np.minimum.reduce(free), 3).tolist()
    return column
