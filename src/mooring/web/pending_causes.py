"""Why pods are pending: each kind of pod decided again, within a limit of time, and remembered while nothing changes.

What the time does not suffice for has the cause that its scheduler reported.
"""

from __future__ import annotations

import time
from collections.abc import Hashable

from mooring.engine import Decision
from mooring.framework import Pod
from mooring.web.mirror import Mirror
from mooring.why.pending import PendingCause, cause_of, is_unserved, kind_of, refusal

SECONDS = 0.25
"""For all decisions of one reading. Watch events wait meanwhile."""
FRESH_SECONDS = 1.0
"""A decision is not taken again sooner, whatever has changed."""
MOST_KEPT = 512
NOT_TRIED = "not tried yet"


class PendingCauses:
    """Reads the mirror; keeps the decisions about kinds of pods."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._kept: dict[Hashable, tuple[int, float, PendingCause]] = {}
        self._kinds: dict[str, tuple[str, Hashable]] = {}
        """uid → the version that was looked at, and its kind."""

    def forget(self) -> None:
        """Decide all of them again: another configuration is in force."""
        self._kept.clear()

    def read(self) -> dict[str, PendingCause]:
        """Of every pending pod, by its key."""
        pods = self._mirror.pods.pending
        self._kinds = {pod.uid: self._kind(pod) for pod in pods.values()}
        deadline = time.monotonic() + SECONDS
        found, causes = {}, dict[Hashable, PendingCause]()
        for key, pod in pods.items():
            kind = self._kinds[pod.uid][1]
            if (cause := causes.get(kind)) is None:
                cause = causes[kind] = self._cause(kind, pod, deadline)
            found[key] = cause if cause.is_decided or not refusal(pod) else _reported(pod)
        while len(self._kept) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return found

    def decisions(self) -> list[tuple[list[Pod], Decision]]:
        """Those that are kept, each with the pending pods that it is about."""
        by_kind: dict[Hashable, list[Pod]] = {}
        for pod in self._mirror.pods.pending.values():
            if (known := self._kinds.get(pod.uid)) is not None:
                by_kind.setdefault(known[1], []).append(pod)
        return [
            (by_kind[kind], cause.decision)
            for kind, (_, _, cause) in self._kept.items()
            if kind in by_kind and cause.decision is not None
        ]

    def _kind(self, pod: Pod) -> tuple[str, Hashable]:
        version = pod.metadata.resource_version
        known = self._kinds.get(pod.uid)
        if known is not None and known[0] == version:
            return known
        return version, kind_of(pod)

    def _cause(self, kind: Hashable, pod: Pod, deadline: float) -> PendingCause:
        if is_unserved(pod, self._mirror.served):
            return cause_of(self._mirror.recomputation, pod, self._mirror.served)
        revision, now = self._mirror.revision, time.monotonic()
        kept = self._kept.get(kind)
        if kept is not None and (kept[0] == revision or now < kept[1] + FRESH_SECONDS or now >= deadline):
            return kept[2]
        if now >= deadline:
            return _reported(pod)
        self._kept.pop(kind, None)
        cause = cause_of(self._mirror.recomputation, pod)
        self._kept[kind] = revision, time.monotonic(), cause
        return cause


def _reported(pod: Pod) -> PendingCause:
    """By its scheduler."""
    message = refusal(pod)
    return PendingCause(message or NOT_TRIED, "", message, is_decided=False)
