"""The scores of a decision as a table: plugins × nodes, the best node first."""

from __future__ import annotations

from typing import Any

import numpy as np

from mooring.engine import ScoreColumns


def score_table(columns: ScoreColumns, first: str | None, most: int | None) -> dict[str, Any]:
    """`first` is the node that was chosen: of equal totals it comes first. `most`: how many nodes; None: all."""
    places = sorted(
        range(len(columns.nodes)),
        key=lambda place: (-int(columns.total[place]), columns.nodes[place] != first, columns.nodes[place]),
    )
    shown = places[:most]
    if first is not None and first in columns.nodes and (own := columns.nodes.index(first)) not in shown:
        shown.append(own)
    return {
        "plugins": [
            {"plugin": plugin, "weight": columns.weights[plugin]}
            | ({"isSame": True} if _is_same(columns, plugin) else {})
            for plugin in columns.raw
        ],
        "scoredNodes": len(columns.nodes),
        "nodes": [_row(columns, place) for place in shown],
    }


def _is_same(columns: ScoreColumns, plugin: str) -> bool:
    """Whether every node has the same score, so that the plugin decides nothing."""
    normalized = np.asarray(columns.normalized[plugin])
    return len(normalized) > 1 and bool((normalized == normalized[0]).all())


def _row(columns: ScoreColumns, place: int) -> dict[str, Any]:
    scores = [
        {
            "plugin": plugin,
            "raw": int(np.asarray(columns.raw[plugin])[place]),
            "normalized": (normalized := int(np.asarray(columns.normalized[plugin])[place])),
            "weight": columns.weights[plugin],
            "weighted": normalized * columns.weights[plugin],
        }
        for plugin in columns.raw
    ]
    return {"node": columns.nodes[place], "total": int(columns.total[place]), "scores": scores}


def runner_up(columns: ScoreColumns, chosen: str) -> dict[str, Any] | None:
    """The best of the other nodes, and by how much the chosen one is ahead (below zero: behind)."""
    if chosen not in columns.nodes or len(columns.nodes) < 2:
        return None
    own = int(columns.total[columns.nodes.index(chosen)])
    others = [(int(total), name) for total, name in zip(columns.total.tolist(), columns.nodes, strict=True)]
    total, name = min(((-total, name) for total, name in others if name != chosen))
    ties = sum(1 for each, other in others if each == -total and other != chosen)
    return {"node": name, "total": -total, "margin": own + total, "alike": ties}
