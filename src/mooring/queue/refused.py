"""The pods that wait for an event: refused by a filter, or kept out of the queue by a gate.

They are indexed by the plugins whose events may free them, so that an event asks those pods alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mooring.queue.waiting import Place, Waiting


class Refused:
    """Unschedulable and gated pods, by UID."""

    def __init__(self) -> None:
        self._members: dict[str, Waiting] = {}
        self._listed_under: dict[str, tuple[tuple[str, str], ...]] = {}
        self._by_plugin: dict[tuple[str, str], dict[str, Waiting]] = {}
        self.gated = 0

    def __len__(self) -> int:
        """Unschedulable and gated together."""
        return len(self._members)

    def __iter__(self) -> Iterator[Waiting]:
        return iter(self._members.values())

    def put(self, waiting: Waiting) -> None:
        """Enter; or, if already here, be listed again under what holds now."""
        uid = waiting.pod.uid
        self.remove(uid)
        waiting.place = Place.UNSCHEDULABLE if waiting.gating_plugin is None else Place.GATED
        # A gated pod is free once its gate opens: other plugins' events cannot help it.
        plugins = waiting.rejectors if waiting.gating_plugin is None else {waiting.gating_plugin}
        keys = tuple((waiting.pod.spec.scheduler_name, plugin) for plugin in sorted(plugins))
        self._members[uid] = waiting
        self._listed_under[uid] = keys
        for key in keys:
            self._by_plugin.setdefault(key, {})[uid] = waiting
        self.gated += waiting.place is Place.GATED

    def remove(self, uid: str) -> None:
        waiting = self._members.pop(uid, None)
        if waiting is None:
            return
        self.gated -= waiting.place is Place.GATED
        for key in self._listed_under.pop(uid):
            listed = self._by_plugin[key]
            del listed[uid]
            if not listed:
                del self._by_plugin[key]

    def freed_by(self, scheduler_name: str, plugins: Iterable[str]) -> list[Waiting]:
        """The profile's pods that wait for one of these plugins, each once."""
        found: dict[str, Waiting] = {}
        for plugin in plugins:
            found.update(self._by_plugin.get((scheduler_name, plugin), {}))
        return list(found.values())
