"""What extenders returned for a pod, as an input of its decision. The calls are the scheduler's.

Calls take time and the cluster changes meanwhile. So results are kept by node name and applied to the state as it is
then: filters run again on nodes that changed, and a node that was not sent to the extenders is not chosen.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from mooring.engine.filtering import Feasible
from mooring.engine.rejected import Step
from mooring.framework import IntArray, Rejection
from mooring.state import Rows

EXTENDER = "Extender"
"""The plugin name under which their rejections count, as in kube-scheduler."""

SCALE = 10
"""Extenders score from 0 to 10 where plugins score from 0 to 100."""


class ExtenderScores(msgspec.Struct, frozen=True):
    """One extender's scores by node name, before its weight."""

    extender: str
    weight: int
    scores: Mapping[str, int]
    """Nodes that are missing have score 0."""

    def column(self, nodes: Rows) -> IntArray:
        return np.fromiter((self.scores.get(name, 0) for name in nodes.names), np.int64, len(nodes))


class ExtenderResults(msgspec.Struct, frozen=True):
    """The results of all extenders for one pod."""

    sent: frozenset[str] = frozenset()
    """The nodes that were sent: those that had passed the filters."""
    rejected: Mapping[str, Rejection] = msgspec.field(default_factory=dict)
    """The nodes among them that were rejected."""
    scores: tuple[ExtenderScores, ...] = ()
    is_nominated_out: bool = False
    """Whether they rejected the node that the pod is nominated to: then all nodes are evaluated."""

    def apply(self, found: Feasible) -> bool:
        """Drop the nodes that were rejected or not sent; returns whether any of the latter had passed the filters."""
        names = found.nodes.names
        given = {place: refusal for place, name in enumerate(names) if (refusal := self.rejected.get(name)) is not None}
        is_out = np.fromiter((name in self.rejected for name in names), np.bool_, len(names))
        is_unsent = np.fromiter((name not in self.sent for name in names), np.bool_, len(names))
        if given:
            found.steps.append(Step(EXTENDER, found.nodes.rows, is_out, one_by_one=given))
        found.nodes = found.nodes.where(~(is_out | is_unsent))
        return bool(is_unsent.any())
