"""Unschedulable and gated pods: rejected by a plugin, they wait for an event.

They are grouped by what queueing hints read of them: the template, and the plugins that rejected them. Groups are
indexed by those plugins and by the pod group of their pods, so that an event visits only groups of plugins that
registered it, and of one pod group where their hints are about it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from mooring.objects.pod_templates import PodTemplate
from mooring.queue.queued_pod_info import Place, QueuedPodInfo

PodGroupKey = tuple[str, str]
"""Namespace and name of a pod group."""


class WaitingFor(NamedTuple):
    """What pods wait for."""

    scheduler_name: str
    plugin: str
    """The one that rejected them."""
    pod_group: PodGroupKey | None = None
    """Of the pods; None: any, or none."""


@dataclass(frozen=True, slots=True)
class Alike:
    """What the pods of a group have in common."""

    scheduler_name: str
    template: PodTemplate
    pod_group: PodGroupKey | None
    gating_plugin: str | None
    unschedulable_plugins: frozenset[str]
    pending_plugins: frozenset[str]

    def includes(self, queued: QueuedPodInfo) -> bool:
        return (
            self.template is queued.pod.template
            and self.gating_plugin == queued.gating_plugin
            and self.unschedulable_plugins == queued.unschedulable_plugins
            and self.pending_plugins == queued.pending_plugins
        )

    @property
    def index_keys(self) -> Iterator[WaitingFor]:
        # Only the gating plugin's events can admit a gated pod.
        rejectors = self.unschedulable_plugins | self.pending_plugins
        plugins = rejectors if self.gating_plugin is None else (self.gating_plugin,)
        pod_groups = {None, self.pod_group}
        return (WaitingFor(self.scheduler_name, plugin, each) for plugin in plugins for each in pod_groups)


@dataclass(slots=True, eq=False)
class AlikePods:
    """Pods for which every hint that is declared per template returns the same, by UID."""

    alike: Alike
    pods: dict[str, QueuedPodInfo] = field(default_factory=dict)


class UnschedulablePods:
    """Unschedulable and gated pods, by UID."""

    def __init__(self) -> None:
        self._members: dict[str, QueuedPodInfo] = {}
        self._entries = itertools.count()
        self._groups: dict[Alike, AlikePods] = {}
        self._group_of: dict[str, AlikePods] = {}
        self._index: dict[WaitingFor, dict[Alike, AlikePods]] = {}
        self.gated = 0

    def __len__(self) -> int:
        """Unschedulable and gated together."""
        return len(self._members)

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return iter(self._members.values())

    def put(self, queued: QueuedPodInfo) -> None:
        """Add the pod, or group it again by its present template and rejectors."""
        uid, pod = queued.pod.uid, queued.pod
        if (known := self._group_of.get(uid)) is not None and known.alike.includes(queued):
            return
        self.remove(uid)
        queued.place = Place.UNSCHEDULABLE if queued.gating_plugin is None else Place.GATED
        queued.entry = next(self._entries)
        alike = Alike(
            pod.spec.scheduler_name,
            pod.template,
            (pod.namespace, name) if (name := pod.pod_group_name) else None,
            queued.gating_plugin,
            frozenset(queued.unschedulable_plugins),
            frozenset(queued.pending_plugins),
        )
        self._members[uid] = queued
        self._group_of[uid] = group = self._groups.get(alike) or self._new_group(alike)
        group.pods[uid] = queued
        self.gated += queued.place is Place.GATED

    def remove(self, uid: str) -> None:
        queued = self._members.pop(uid, None)
        if queued is None:
            return
        self.gated -= queued.place is Place.GATED
        group = self._group_of.pop(uid)
        del group.pods[uid]
        if not group.pods:
            self._remove_group(group.alike)

    def waiting_for(self, any_of: Iterable[WaitingFor]) -> list[AlikePods]:
        """The groups that wait for one of these, each once."""
        found: dict[Alike, AlikePods] = {}
        for key in any_of:
            found.update(self._index.get(key, {}))
        return list(found.values())

    def one_waiting_for(self, key: WaitingFor) -> QueuedPodInfo | None:
        """Any pod that waits for it."""
        return next((queued for group in self._index.get(key, {}).values() for queued in group.pods.values()), None)

    def _new_group(self, alike: Alike) -> AlikePods:
        group = self._groups[alike] = AlikePods(alike)
        for key in alike.index_keys:
            self._index.setdefault(key, {})[alike] = group
        return group

    def _remove_group(self, alike: Alike) -> None:
        del self._groups[alike]
        for key in alike.index_keys:
            indexed = self._index[key]
            del indexed[alike]
            if not indexed:
                del self._index[key]
