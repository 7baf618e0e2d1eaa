"""Free volumes for claims: the smallest that will do, on each node.

A volume whose claimRef names the claim is the only one for it. Otherwise a volume must be available, of the claim's
class, large enough, of its mode and attributes, with all its access modes, and selected by its selector; its node
affinity decides which nodes can use it. The pod's claims choose one after the other, the smallest first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from heapq import merge

import msgspec
import numpy as np

from mooring.framework import BoolArray, IntArray, NodeRows, NodeView
from mooring.framework.services import Index
from mooring.objects.core import NodeSelector
from mooring.objects.storage import PersistentVolume, PersistentVolumeClaim
from mooring.plugins.default.volume_binding.bound_volumes import admits_node, where_admitted

AVAILABLE = "Available"
FILESYSTEM = "Filesystem"
NONE = -1
"""In a column of choices: no volume."""
_BEYOND = 2**62


def keys_of_volume(volume: PersistentVolume) -> tuple[tuple[str, str]]:
    """Where a volume is looked for: by the claim it is for, or by its class if it is free."""
    ref = volume.spec.claim_ref
    return (("claim", f"{ref.namespace}/{ref.name}"),) if ref is not None else (("class", volume.storage_class),)


class Candidates:
    """The volumes that a claim could get, whatever the node."""

    def __init__(self, claim: PersistentVolumeClaim, volumes: Index[PersistentVolume]) -> None:
        self.claim = claim
        wanted_class = claim.storage_class
        self.reserved = [
            volume
            for volume in volumes.at(("claim", claim.key))
            if volume.storage_class == wanted_class and volume.is_claimed_by(claim) and _will_do(volume, claim)
        ]
        """Those whose claimRef names the claim."""
        self.free = sorted(
            (
                volume
                for volume in volumes.at(("class", wanted_class))
                if _will_do(volume, claim) and _is_offered_to(volume, claim)
            ),
            key=lambda volume: volume.capacity_bytes,
        )
        """The others, the smallest first."""

    def at(self, node: NodeView, taken: Collection[str]) -> PersistentVolume | None:
        """What the claim gets on this node, where volumes of these names are taken."""
        for volume in self.reserved:
            if volume.name not in taken:
                return volume if admits_node(volume.required_nodes, node) else None
        volumes = (self.free[position] for position in self._volumes_by_node.at(node))
        return next((volume for volume in volumes if volume.name not in taken), None)

    @property
    def considered(self) -> list[PersistentVolume]:
        """Those that `over` chooses from."""
        return self.reserved[:1] or self.free

    def over(self, nodes: NodeRows) -> IntArray:
        """`at`, for many nodes and with nothing taken: a position in `considered`, or NONE."""
        if self.reserved:
            return np.where(where_admitted(self.reserved[0].required_nodes, nodes), 0, NONE)
        return self._volumes_by_node.first_over(nodes)

    @cached_property
    def _volumes_by_node(self) -> VolumesByNode:
        return VolumesByNode(self.free)


class VolumesByNode:
    """Which of many volumes which nodes can use.

    Volumes of the same affinity are evaluated once. Local volumes, each on a host of its own, are indexed by the host's
    label: however many there are, a node looks up only those that name it.
    """

    def __init__(self, volumes: Sequence[PersistentVolume]) -> None:
        self._anywhere: list[int] = []
        self._by_label: dict[str, dict[str, list[int]]] = {}
        self._by_selector: dict[bytes, tuple[NodeSelector, list[int]]] = {}
        for position, volume in enumerate(volumes):
            required = volume.required_nodes
            if required is None:
                self._anywhere.append(position)
            elif (one := _one_label(required)) is not None:
                key, values = one
                for value in set(values):
                    self._by_label.setdefault(key, {}).setdefault(value, []).append(position)
            else:
                self._by_selector.setdefault(msgspec.msgpack.encode(required), (required, []))[1].append(position)

    def at(self, node: NodeView) -> Iterable[int]:
        """The positions of the volumes that this node can use, in order."""
        found = [self._anywhere]
        found += [by_value.get(node.labels[key], []) for key, by_value in self._by_label.items() if key in node.labels]
        found += [positions for required, positions in self._by_selector.values() if admits_node(required, node)]
        return merge(*found)

    def first_over(self, nodes: NodeRows) -> IntArray:
        """The first of `at`, for many nodes; NONE where there is none."""
        first = np.full(len(nodes), self._anywhere[0] if self._anywhere else _BEYOND)
        for key, by_value in self._by_label.items():
            np.minimum(first, nodes.label_numbers(key, partial(_first, by_value)), out=first)
        for required, positions in self._by_selector.values():
            first[(first > positions[0]) & where_admitted(required, nodes)] = positions[0]
        first[first == _BEYOND] = NONE
        return first


def _first(by_value: Mapping[str, list[int]], found: str | None) -> int:
    positions = by_value.get(found) if found is not None else None
    return positions[0] if positions else _BEYOND


def _will_do(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """What is required even of a volume whose claimRef names the claim."""
    return (
        volume.capacity_bytes >= (claim.requested_bytes or 0)
        and (volume.spec.volume_mode or FILESYSTEM) == (claim.spec.volume_mode or FILESYSTEM)
        and (volume.spec.volume_attributes_class_name or "") == (claim.spec.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def _is_offered_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (
        volume.status.phase == AVAILABLE
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
        and (claim.spec.selector is None or claim.spec.selector.matches(volume.labels))
    )


def _one_label(required: NodeSelector) -> tuple[str, Sequence[str]] | None:
    """The label and values, if the selector has no other requirement: so local volumes name their host."""
    if len(required.node_selector_terms) != 1:
        return None
    term = required.node_selector_terms[0]
    if term.match_fields or len(term.match_expressions) != 1 or term.match_expressions[0].operator != "In":
        return None
    return term.match_expressions[0].key, term.match_expressions[0].values


class Matches:
    """What several claims of one pod get, on many nodes."""

    def __init__(self, candidates: Sequence[Candidates]) -> None:
        self._candidates = candidates
        self.volumes: list[PersistentVolume] = []
        """What a choice is a position of."""
        self._position_of: dict[str, int] = {}
        for each in candidates:
            for volume in (*each.reserved, *each.free):
                if volume.name not in self._position_of:
                    self._position_of[volume.name] = len(self.volumes)
                    self.volumes.append(volume)

    def at(self, node: NodeView) -> list[PersistentVolume | None]:
        """Per claim what it gets on this node."""
        taken: set[str] = set()
        found = []
        for each in self._candidates:
            volume = each.at(node, taken)
            found.append(volume)
            if volume is not None:
                taken.add(volume.name)
        return found

    def over(self, nodes: NodeRows, is_needed: BoolArray) -> list[IntArray]:
        """Per claim its choice on each node, as positions in `volumes`; where not needed, any value."""
        choices: list[IntArray] = []
        is_contested = np.zeros(len(nodes), bool)
        for each in self._candidates:
            # NONE is -1: as an index it means the last, which is NONE again.
            positions = np.array([*(self._position_of[volume.name] for volume in each.considered), NONE])
            choice = positions[each.over(nodes)]
            for earlier in choices:
                is_contested |= (choice == earlier) & (choice != NONE)
            choices.append(choice)
        for place in np.flatnonzero(is_contested & is_needed).tolist():
            for choice, volume in zip(choices, self.at(nodes.at(place)), strict=True):
                choice[place] = NONE if volume is None else self._position_of[volume.name]
        return choices
