"""What extenders said about nodes, as an input of a decision. Who asked them, and how, is the scheduler's affair.

Asking takes time and the cluster goes on meanwhile. So what was heard is kept by node name, and a decision applies it
to the state as it is then: filters have the last word about nodes that changed, and a node that nobody asked about is
not taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mooring.engine.feasible import Feasible
from mooring.engine.rejected import Step
from mooring.framework import IntArray, Rejection
from mooring.state import Rows

EXTENDER = "Extender"
"""As whose refusals theirs count: kube-scheduler's name for all of them."""

SCALE = 10
"""Extenders score from 0 to 10 where plugins score from 0 to 100."""


@dataclass(frozen=True, slots=True)
class HeardScores:
    """What one extender gave nodes, by name, before its weight."""

    extender: str
    weight: int
    scores: Mapping[str, int]
    """Nodes that are not here it gave nothing."""

    def column(self, nodes: Rows) -> IntArray:
        return np.fromiter((self.scores.get(name, 0) for name in nodes.names), np.int64, len(nodes))


@dataclass(frozen=True, slots=True)
class Heard:
    """All that extenders said about one pod."""

    asked: frozenset[str] = frozenset()
    """The nodes they were asked about: those that had passed the filters."""
    refused: Mapping[str, Rejection] = field(default_factory=dict)
    """Those of them that they refused."""
    scores: tuple[HeardScores, ...] = ()
    is_nominated_out: bool = False
    """Whether they refused the node that the pod is nominated to: then all nodes are looked at."""

    def apply(self, found: Feasible) -> bool:
        """Take the nodes out that were refused or not asked about; says whether any of the latter had passed."""
        names = found.nodes.names
        given = {place: refusal for place, name in enumerate(names) if (refusal := self.refused.get(name)) is not None}
        is_out = np.fromiter((name in self.refused for name in names), np.bool_, len(names))
        is_unasked = np.fromiter((name not in self.asked for name in names), np.bool_, len(names))
        if given:
            found.steps.append(Step(EXTENDER, found.nodes.rows, is_out, one_by_one=given))
        found.nodes = found.nodes.where(~(is_out | is_unasked))
        return bool(is_unasked.any())
