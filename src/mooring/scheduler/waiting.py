"""Pods that a permit plugin asked to wait: reserved on their node, not bound yet.

All plugins that asked must allow; the first rejection or the first time-out refuses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mooring.base.clock import Clock
from mooring.base.durations import go_duration
from mooring.framework import Pod, Refusal, WaitingPod


@dataclass(slots=True)
class Verdict:
    """How the waiting ended: who refused and why, or nobody."""

    plugin: str = ""
    refusal: Refusal | None = None


class _Entry:
    def __init__(self, pod: Pod, node: str, plugins: set[str]) -> None:
        self.pod, self.node, self.plugins = pod, node, plugins
        self.verdict: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()


class PermitRoom:
    """Where pods wait for permission; the `WaitingPods` service."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: dict[str, _Entry] = {}

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter([WaitingPod(entry.pod, entry.node, frozenset(entry.plugins)) for entry in self._entries.values()])

    def allow(self, uid: str, plugin: str) -> bool:
        entry = self._entries.get(uid)
        if entry is None:
            return False
        entry.plugins.discard(plugin)
        if not entry.plugins and not entry.verdict.done():
            entry.verdict.set_result(Verdict())
        return True

    def reject(self, uid: str, plugin: str, reason: str) -> bool:
        entry = self._entries.get(uid)
        if entry is None:
            return False
        if not entry.verdict.done():
            entry.verdict.set_result(Verdict(plugin, Refusal(reason)))
        return True

    def enter(self, pod: Pod, node: str, waits: Mapping[str, float]) -> None:
        """Let a pod in. Separate from `wait`, so that a sibling can allow it before its binding task has run."""
        self._entries[pod.uid] = _Entry(pod, node, set(waits))

    async def wait(self, pod: Pod, waits: Mapping[str, float]) -> Verdict:
        """Until all of these plugins have allowed, one has refused, or the shortest of the times is up."""
        entry = self._entries[pod.uid]
        plugin, seconds = min(waits.items(), key=lambda wait: wait[1])
        alarm = asyncio.ensure_future(self._clock.sleep(seconds))
        ends: list[asyncio.Future[Any]] = [entry.verdict, alarm]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            alarm.cancel()
            del self._entries[pod.uid]
        if entry.verdict.done():
            return entry.verdict.result()
        late = f"rejected due to timeout after waiting {go_duration(seconds)} at plugin {plugin}"
        return Verdict(plugin, Refusal(late))
