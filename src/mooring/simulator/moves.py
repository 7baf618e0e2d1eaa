"""Pods that go to another node with another configuration, and the plugins that moved them.

`move_explainer` finds the causes; what they mean is explained there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

FILTER, SCORE, TIE, EARLIER, FAULT = "filter", "score", "tie", "earlier placements", "fault"
MOST_EXAMPLES = 3


class Move(msgspec.Struct, frozen=True, gc=False):
    """A pod that is on another node than in the baseline, or on one in only one of the two."""

    pod: str
    at: float
    """When it was decided, in seconds from the beginning."""
    before: str | None
    """Its node in the baseline."""
    after: str | None
    cause: str
    plugin: str = ""
    """Of a filter, a score or a fault."""
    instead: str | None = None
    """The node that the baseline's configuration would take in the same state."""
    points: int = 0
    """By how much the plugin's weighted score shifted in favour of the node."""
    reason: str = ""
    """Of a filter or a fault."""

    def explained(self) -> str:
        """In a sentence."""
        after = self.after or "no node"
        match self.cause:
            case "filter":
                return f"{self.plugin}: {self.reason}"
            case "score":
                return f"{self.plugin} shifted {self.points} points from {self.instead} to {after}"
            case "tie":
                return f"{after} and {self.instead or 'another'} have equal scores"
            case "fault":
                return f"{self.plugin} failed: {self.reason}"
        return f"in the same state both configurations take {after}"


class MoveCount(msgspec.Struct, frozen=True):
    """How many pods moved by one cause."""

    cause: str
    plugin: str
    pods: int
    examples: tuple[Move, ...]
    """The first of them."""


def counted_moves(moves: Sequence[Move]) -> list[MoveCount]:
    """By cause and plugin, the most frequent first; earlier placements last."""
    counts = Counter((move.cause, move.plugin) for move in moves)
    ordered = sorted(counts.items(), key=lambda item: (item[0][0] == EARLIER, -item[1], item[0]))
    return [
        MoveCount(
            cause,
            plugin,
            count,
            tuple(move for move in moves if (move.cause, move.plugin) == (cause, plugin))[:MOST_EXAMPLES],
        )
        for (cause, plugin), count in ordered
    ]
