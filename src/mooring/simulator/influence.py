"""Which plugins made a difference: how often a score decided, and how often a filter stood in the way.

A score plugin **decided** a placement if other nodes would be among the best without its scores. Several may have
decided one placement, and none where the node is the only feasible one, or the best with and without each of them.

A filter **rejected** a node if it is the first that did. Of an attempt that found no node, the **last obstacle** is the
filter that rejected the nodes which came furthest: those that every filter before it let pass. It stood in the way
**alone** where no other plugin rejected a node.
"""

from __future__ import annotations

import msgspec

from mooring.engine import Decision


class PluginInfluence(msgspec.Struct):
    """What one plugin did in all attempts of a run."""

    plugin: str
    scored: int = 0
    """Placements in which its scores were not the same for all nodes."""
    decided: int = 0
    """…and in which other nodes would be among the best without it."""
    rejecting: int = 0
    """Attempts in which it rejected nodes."""
    rejected_nodes: int = 0
    """How many, of all attempts together."""
    last: int = 0
    """Attempts that found no node, in which it was the last obstacle."""
    alone: int = 0
    """…and the only one."""


class InfluenceCounts:
    """Adds up the influence of plugins, decision by decision."""

    def __init__(self) -> None:
        self._of: dict[str, PluginInfluence] = {}
        self._order: dict[str, dict[str, int]] = {}
        """Per profile: the places of its filters."""

    def add(self, decision: Decision) -> None:
        """Before the profile's next decision."""
        if decision.fault is not None:
            return
        rejected = decision.rejected_counts()
        for plugin, nodes in rejected.items():
            influence = self._plugin(plugin)
            influence.rejecting += 1
            influence.rejected_nodes += nodes
        if decision.node is None:
            self._refused(decision, rejected)
            return
        for plugin, has_decided in decision.deciding().items():
            influence = self._plugin(plugin)
            influence.scored += 1
            influence.decided += has_decided

    def _refused(self, decision: Decision, rejected: dict[str, int]) -> None:
        if not rejected:
            return
        places = self._places(decision)
        last = max(rejected, key=lambda plugin: places.get(plugin, -1))
        self._plugin(last).last += 1
        if len(rejected) == 1:
            self._plugin(last).alone += 1

    def _places(self, decision: Decision) -> dict[str, int]:
        profile = decision.cycle.profile
        if (places := self._order.get(profile.name)) is None:
            places = {filterer.name: place for place, filterer in enumerate(profile.filterers)}
            self._order[profile.name] = places
        return places

    def _plugin(self, name: str) -> PluginInfluence:
        name = name or ENGINE
        if (known := self._of.get(name)) is None:
            known = self._of[name] = PluginInfluence(name)
        return known

    def plugins(self) -> list[PluginInfluence]:
        """Those that did something, by name."""
        return [self._of[name] for name in sorted(self._of)]


ENGINE = "(several PreFilter plugins)"
"""Nodes that PreFilter plugins left out together have no plugin of their own."""
