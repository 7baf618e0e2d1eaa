"""Pods that wait on Permit (kube-scheduler's waitingPodsMap): reserved on their node, not bound yet.

All plugins that returned Wait must allow; the first rejection or the first timeout rejects the pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

import msgspec

from mooring.base.clock import Clock, ends_within
from mooring.engine.reservation import waited_too_long
from mooring.framework import Plugin, Pod, Refusal, WaitingPod
from mooring.framework.services import permit_plugin
from mooring.framework.verdicts import Code


class PermitOutcome(msgspec.Struct):
    """How the wait ended: allowed, or rejected by a plugin."""

    plugin: str = ""
    refusal: Refusal | None = None
    is_preempted: bool = False
    """A pod of higher priority takes its place."""
    is_closed: bool = False
    """The scheduler stops: no plugin will decide any more."""

    @property
    def status(self) -> str:
        """The status label of kube-scheduler's metric."""
        if self.is_preempted or self.is_closed:
            return Code.ERROR.value
        return Code.SUCCESS.value if self.refusal is None else self.refusal.code.value


class _Entry:
    def __init__(self, pod: Pod, node: str, waits: Mapping[str, float], began: float) -> None:
        self.pod, self.node, self.waits, self.began = pod, node, waits, began
        self.plugins = set(waits)
        """Those that have not allowed yet."""
        self.outcome: asyncio.Future[PermitOutcome] = asyncio.get_running_loop().create_future()


class PermitRoom:
    """Where pods wait for permission; the `WaitingPods` service."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: dict[str, _Entry] = {}

    def now(self) -> float:
        """By the clock that ends the waiting."""
        return self._clock.monotonic()

    def __iter__(self) -> Iterator[WaitingPod]:
        """Those that wait. One that was allowed or rejected does not, though its binding cycle has not resumed yet."""
        entries = [entry for entry in self._entries.values() if not entry.outcome.done()]
        return iter([WaitingPod(entry.pod, entry.node, frozenset(entry.plugins)) for entry in entries])

    def is_waiting(self, uid: str) -> bool:
        """Whether the pod waits: some plugin has not allowed it yet, and none has rejected it."""
        entry = self._entries.get(uid)
        return entry is not None and not entry.outcome.done()

    def seconds_left(self, uid: str) -> tuple[str, dict[str, float]] | None:
        """Of a pod that waits: its node, and how long each plugin that has not allowed may still take."""
        entry = self._entries.get(uid)
        if entry is None:
            return None
        waited = self._clock.monotonic() - entry.began
        return entry.node, {plugin: max(0.0, entry.waits[plugin] - waited) for plugin in sorted(entry.plugins)}

    def allow(self, uid: str, plugin: Plugin | str) -> bool:
        entry = self._entries.get(uid)
        if entry is None or entry.outcome.done():
            return False
        entry.plugins.discard(permit_plugin(plugin, entry.pod, entry.waits))
        if not entry.plugins:
            entry.outcome.set_result(PermitOutcome())
        return True

    def reject(self, uid: str, plugin: Plugin | str, reason: str) -> bool:
        entry = self._entries.get(uid)
        if entry is None or entry.outcome.done():
            return False
        name = plugin if isinstance(plugin, str) else plugin.name
        entry.outcome.set_result(PermitOutcome(name, Refusal(reason)))
        return True

    def preempt(self, uid: str) -> bool:
        """A pod of higher priority preempts this one, which is requeued. False: no such pod."""
        entry = self._entries.get(uid)
        if entry is None or entry.outcome.done():
            return False
        entry.outcome.set_result(PermitOutcome(is_preempted=True))
        return True

    def close(self) -> None:
        """At shutdown: end all waits."""
        for entry in self._entries.values():
            if not entry.outcome.done():
                entry.outcome.set_result(PermitOutcome(is_closed=True))

    def enter(self, pod: Pod, node: str, waits: Mapping[str, float]) -> None:
        """Add a pod; its timeouts start now.

        Separate from `wait`, so that a sibling can allow it before its binding task has run, and that a server which
        is slow to take its nomination does not lengthen the wait.
        """
        self._entries[pod.uid] = _Entry(pod, node, waits, self._clock.monotonic())

    async def wait(self, pod: Pod, waits: Mapping[str, float]) -> PermitOutcome:
        """Until all of these plugins have allowed, one has refused, or the time of one that has not is up."""
        entry = self._entries[pod.uid]
        try:
            while not entry.outcome.done():
                # A plugin that has allowed has no time limit any more.
                plugin = min(entry.plugins, key=lambda name: (waits[name], name))
                left = entry.began + waits[plugin] - self._clock.monotonic()
                if left <= 0:
                    return PermitOutcome(plugin, Refusal(waited_too_long(plugin, waits[plugin])))
                await ends_within(self._clock, left, entry.outcome)
            return entry.outcome.result()
        finally:
            del self._entries[pod.uid]
