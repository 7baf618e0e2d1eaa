"""Unschedulable and gated pods: rejected by a plugin, they wait for an event.

They are indexed by the rejecting plugins, so that an event visits only the pods of plugins that registered it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mooring.queue.queued_pod_info import Place, QueuedPodInfo


class UnschedulablePods:
    """Unschedulable and gated pods, by UID."""

    def __init__(self) -> None:
        self._members: dict[str, QueuedPodInfo] = {}
        self._index_keys: dict[str, tuple[tuple[str, str], ...]] = {}
        self._by_plugin: dict[tuple[str, str], dict[str, QueuedPodInfo]] = {}
        self.gated = 0

    def __len__(self) -> int:
        """Unschedulable and gated together."""
        return len(self._members)

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return iter(self._members.values())

    def put(self, queued: QueuedPodInfo) -> None:
        """Add the pod, or index it again by its present rejectors."""
        uid = queued.pod.uid
        self.remove(uid)
        queued.place = Place.UNSCHEDULABLE if queued.gating_plugin is None else Place.GATED
        # Only the gating plugin's events can admit a gated pod.
        plugins = queued.rejectors if queued.gating_plugin is None else {queued.gating_plugin}
        keys = tuple((queued.pod.spec.scheduler_name, plugin) for plugin in sorted(plugins))
        self._members[uid] = queued
        self._index_keys[uid] = keys
        for key in keys:
            self._by_plugin.setdefault(key, {})[uid] = queued
        self.gated += queued.place is Place.GATED

    def remove(self, uid: str) -> None:
        queued = self._members.pop(uid, None)
        if queued is None:
            return
        self.gated -= queued.place is Place.GATED
        for key in self._index_keys.pop(uid):
            indexed = self._by_plugin[key]
            del indexed[uid]
            if not indexed:
                del self._by_plugin[key]

    def waiting_for(self, scheduler_name: str, plugins: Iterable[str]) -> list[QueuedPodInfo]:
        """The profile's pods that wait for one of these plugins, each once."""
        found: dict[str, QueuedPodInfo] = {}
        for plugin in plugins:
            found.update(self._by_plugin.get((scheduler_name, plugin), {}))
        return list(found.values())
