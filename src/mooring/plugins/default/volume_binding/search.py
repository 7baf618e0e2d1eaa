"""Find a pod's volumes: what each of its claims gets on a node, or the reasons against the node."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from mooring.framework import BoolArray, IntArray, NodeRows, NodeView
from mooring.objects.storage import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim
from mooring.plugins.default.csi_node_rows import CSINodeRows
from mooring.plugins.default.volume_binding.bound_volumes import BoundVolumes
from mooring.plugins.default.volume_binding.matching import NONE, Candidates, Matches
from mooring.plugins.default.volume_binding.pod_volume_claims import PodVolumeClaims
from mooring.plugins.default.volume_binding.provisioning import Provision

NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
NO_ROOM = "node(s) did not have enough free storage"
VOLUME_GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

Binding = tuple[PersistentVolumeClaim, PersistentVolume]
Provided = tuple[PersistentVolumeClaim, CSIStorageCapacity | None]


class Found(msgspec.Struct):
    """What was found for one node: reasons against it, or what the claims get."""

    reasons: list[str] = msgspec.field(default_factory=list)
    bindings: list[Binding] = msgspec.field(default_factory=list)
    provisions: list[Provided] = msgspec.field(default_factory=list)


class Reservation(msgspec.Struct):
    """The volumes and claims that are changed for a pod, each as the scheduler wants it to be."""

    volumes: list[tuple[PersistentVolume, PersistentVolumeClaim]] = msgspec.field(default_factory=list)
    """Volumes that exist, each with its claim."""
    claims: list[PersistentVolumeClaim] = msgspec.field(default_factory=list)
    """Claims for which volumes are to be made."""


class FoundRows(msgspec.Struct):
    """The same for many nodes: a mask per reason, and choices per claim."""

    refused: list[tuple[str, BoolArray]]
    matched: list[IntArray]
    """Per claim to match: a position in the matches' volumes, or NONE."""
    provided: list[IntArray]
    """Per claim that may be provisioned: a position in its capacities, or NONE."""


class Search:
    """For one pod. Claims that a node was selected for before are only provisioned; the others are matched first."""

    def __init__(
        self,
        claims: PodVolumeClaims,
        bound: BoundVolumes,
        candidates: Sequence[Candidates],
        selected: Sequence[Provision],
        unmatched: Sequence[Provision],
    ) -> None:
        self._claims = claims
        self._bound = bound
        self._selected = selected
        self._unmatched = unmatched
        """Per claim to match, how it is provisioned where no volume matches."""
        self._candidates = candidates
        self.matches = Matches(candidates)
        self.reservation: Reservation | None = None
        """What was assumed for the pod once a node was chosen, until it is taken back."""

    def at(self, node: NodeView) -> Found:
        """What is found on this node."""
        found = Found()
        is_misplaced, is_gone = self._bound.at(self._claims.bound, node)
        is_unbound = is_full = False
        if any(provision.claim.selected_node != node.name for provision in self._selected):
            is_unbound = True
        else:
            to_provision = list(self._selected)
            volumes = self.matches.at(node)
            for each, volume, provision in zip(self._candidates, volumes, self._unmatched, strict=True):
                if volume is None:
                    to_provision.append(provision)
                else:
                    found.bindings.append((each.claim, volume))
            is_unbound, is_full = self._provide(to_provision, node, found)
        found.reasons = [
            reason
            for reason, applies in (
                (NODE_CONFLICT, is_misplaced),
                (BIND_CONFLICT, is_unbound),
                (NO_ROOM, is_full),
                (VOLUME_GONE, is_gone),
            )
            if applies
        ]
        return found

    def _provide(self, provisions: Sequence[Provision], node: NodeView, found: Found) -> tuple[bool, bool]:
        """Whether a volume cannot be made for the node, and whether there is no room. The first of either is enough."""
        for provision in provisions:
            if not provision.is_possible_for(node):
                return True, False
            capacity = provision.capacity_at(node)
            if provision.capacities is not None and capacity is None:
                return False, True
            found.provisions.append((provision.claim, capacity))
        return False, False

    def chosen(self, choices: Sequence[int]) -> tuple[list[Binding], list[Provided]]:
        """What a node's choices in `FoundRows` stand for: first those of `matched`, then those of `provided`."""
        count = len(self._candidates)
        bindings = [
            (each.claim, self.matches.volumes[choice])
            for each, choice in zip(self._candidates, choices[:count], strict=True)
            if choice != NONE
        ]
        provisions: list[Provided] = [
            (provision.claim, (provision.capacities or ())[choice])
            for provision, choice in zip((*self._selected, *self._unmatched), choices[count:], strict=True)
            if choice != NONE
        ]
        return bindings, provisions

    def over(self, nodes: NodeRows, rows: CSINodeRows) -> FoundRows:
        """`at`, for many nodes."""
        found = FoundRows([], [], [])
        if self._claims.bound:
            is_misplaced, is_gone = self._bound.over(self._claims.bound, nodes, rows)
            found.refused += [(NODE_CONFLICT, is_misplaced), (VOLUME_GONE, is_gone)]
        if self._claims.delayed:
            self._find_over(nodes, rows, found)
        found.refused.sort(key=lambda refused: _ORDER[refused[0]])
        return found

    def _find_over(self, nodes: NodeRows, rows: CSINodeRows, found: FoundRows) -> None:
        is_selected = np.ones(len(nodes), bool)
        for provision in self._selected:
            is_selected &= nodes.rows == rows.row_of.get(provision.claim.selected_node or "", NONE)
        found.matched = self.matches.over(nodes, is_selected)
        is_unbound, is_full = ~is_selected, np.zeros(len(nodes), bool)
        is_open = is_selected
        needed = [(provision, is_selected) for provision in self._selected]
        needed += [
            (provision, choice == NONE) for provision, choice in zip(self._unmatched, found.matched, strict=True)
        ]
        for provision, is_needed in needed:
            is_pending = is_open & is_needed
            capacity = np.full(len(nodes), NONE)
            if is_pending.any():
                is_possible = is_pending & provision.where_possible(nodes)
                is_unbound |= is_pending & ~is_possible
                if provision.capacities is not None:
                    capacity = np.where(is_needed, provision.capacity_over(nodes), NONE)
                    is_full |= is_possible & (capacity == NONE)
                    is_possible &= capacity != NONE
                is_open = is_open & (~is_pending | is_possible)
            found.provided.append(capacity)
        found.refused += [(BIND_CONFLICT, is_unbound), (NO_ROOM, is_full)]


_ORDER = {reason: place for place, reason in enumerate((NODE_CONFLICT, BIND_CONFLICT, NO_ROOM, VOLUME_GONE))}
