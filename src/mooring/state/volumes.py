"""Which claims and disks pods on nodes use, kept as pods come and go. Pods without such volumes never come here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from mooring.framework import BoolArray
from mooring.objects.placed import PlacedPod
from mooring.objects.volumes import Disk
from mooring.state.columns import Column
from mooring.state.row_counts import RowCounts


class VolumesInUse:
    """The standing counts: claims by name, disks by row, and how many volumes there are on each row."""

    def __init__(self, capacity: int) -> None:
        self.mounts = Column(capacity, np.int64)
        """Volumes of pods per row; one that two pods mount counts twice."""
        self._claims: Counter[str] = Counter()
        """Uses by namespace/name, of pods that are really there."""
        self._in_what_if: Counter[str] = Counter()
        """What what-ifs add and take away, by the claim's name alone."""
        self._disks: dict[tuple[str, str], RowCounts] = {}

    def count(self, row: int, pod: PlacedPod, sign: int, *, in_what_if: bool) -> None:
        """A pod with volumes comes onto a row (1) or leaves it (-1), really or in a what-if."""
        self.mounts.cells[row] += sign * len(pod.volumes)
        for volume in pod.volumes:
            if volume.claim is not None and not volume.is_ephemeral:
                if in_what_if:
                    _add(self._in_what_if, volume.claim, sign)
                else:
                    _add(self._claims, f"{pod.namespace}/{volume.claim}", sign)
            elif volume.disk is not None:
                identity = volume.disk.identity
                mounted = self._disks.setdefault(identity, RowCounts())
                mounted.add(row, sign)
                if not mounted:
                    del self._disks[identity]

    def claim_uses(self, namespace: str, claims: Iterable[str]) -> int:
        """How often these claims are in use, as kube-scheduler counts.

        A claim that pods use counts once, however many they are. In a what-if each volume of an evicted pod counts one
        less, and of an added pod one more: by the claim's name, whatever the namespace.
        """
        return sum((f"{namespace}/{claim}" in self._claims) + self._in_what_if[claim] for claim in claims)

    def where_mounted(self, disks: Iterable[Disk], capacity: int) -> BoolArray | None:
        """The rows, as a mask over the whole table, where a pod mounts one of these; None: nowhere."""
        found: BoolArray | None = None
        for disk in disks:
            mounted = self._disks.get(disk.identity)
            if mounted is not None:
                mask = mounted.mask(capacity)
                found = mask if found is None else found | mask
        return found


def _add(counter: Counter[str], key: str, sign: int) -> None:
    counter[key] += sign
    if not counter[key]:
        del counter[key]
