"""PodGroupPodsCount: of several placements, prefer the one where more pods of the group have a node."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.framework import Fault, Plugin, PodGroupInfo, PodGroups, ProposedPlacement

HIGHEST = 100


class PodGroupPodsCount(Plugin):
    """Prefer the placement with the most pods of the group."""

    def __init__(self, groups: PodGroups) -> None:
        self._groups = groups

    def placement_score(self, group: PodGroupInfo, proposed: ProposedPlacement) -> int:
        """Pods that have a node already count everywhere, so that a few more or less change the score by little."""
        members = self._groups.members(group.namespace, group.name)
        if members is None:
            raise Fault(f"pod group state for {group.key} not found")
        return members.scheduled_count + len(proposed.assignments)

    def normalize_placement_scores(self, group: PodGroupInfo, scores: Sequence[int]) -> Sequence[int]:
        most = max(scores, default=0)
        if not most:
            raise Fault("no pods from pod group are assigned to any of the candidate placements")
        return [score * HIGHEST // most for score in scores]
