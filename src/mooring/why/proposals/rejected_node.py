"""A plugin's rejection of one node: what a proposal is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from mooring.engine import EngineCycle
from mooring.framework import Pod, Refusal
from mooring.state import RowView
from mooring.why.changes import ProposedChange
from mooring.why.recomputation import Recomputation


class Gap(NamedTuple):
    """How far a node is from accepting a pod."""

    sentence: str
    """Its predicate: "lacks 200m cpu"."""
    distance: float = 1.0
    """Comparable among rejections by one plugin; 0 is nearest."""


class RejectedNode(msgspec.Struct, frozen=True):
    """The plugin rejected this node for this pod."""

    recomputation: Recomputation
    cycle: EngineCycle
    """PreFilter has run: it has the plugins' states."""
    plugin: str
    pod: Pod
    view: RowView
    refusal: Refusal

    def is_rejected_by(self, change: ProposedChange) -> bool:
        """Whether the plugin would still reject the node after this change."""
        with self.recomputation.applied(change):
            return self.plugin in self.recomputation.rejecting(change.after(self.pod), self.view.name)


Measure = Callable[[RejectedNode], Gap]
Propose = Callable[[RejectedNode], Iterator[ProposedChange]]
