"""Why pods are pending: each kind of pod decided again, within a limit of time, and remembered while nothing changes.

Pods of one template differ in name only, so one decision is enough for all of them. What the time does not suffice for
has the cause that its scheduler reported.
"""

from __future__ import annotations

import time
from collections.abc import Hashable
from typing import NamedTuple

import msgspec

from mooring.base.errors import MooringError
from mooring.engine import Decision
from mooring.explain.plain_words import dominant_reason
from mooring.framework import Pod
from mooring.web.mirror import Mirror
from mooring.web.pod_store import refusal

SECONDS = 0.25
"""For all decisions of one reading. Watch events wait meanwhile."""
FRESH_SECONDS = 1.0
"""A decision is not taken again sooner, whatever has changed."""
MOST_KEPT = 512
NOT_TRIED = "not tried yet"
FITS = "it fits, and waits for its turn"

_encode = msgspec.msgpack.Encoder().encode


class PendingCause(NamedTuple):
    """Why a pod is pending."""

    reason: str
    """In plain words."""
    plugin: str
    """The one that rejects most nodes; "" where none is known."""
    message: str
    """In kube-scheduler's words."""
    decision: Decision | None = None


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
            found[key] = cause if cause.decision is not None or not refusal(pod) else _reported(pod)
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
        labels = tuple(sorted(pod.labels.items()))
        nominated = pod.status.nominated_node_name
        return version, (pod.namespace, pod.spec.scheduler_name, labels, nominated, _encode(pod.spec))

    def _cause(self, kind: Hashable, pod: Pod, deadline: float) -> PendingCause:
        revision, now = self._mirror.revision, time.monotonic()
        kept = self._kept.get(kind)
        if kept is not None and (kept[0] == revision or now < kept[1] + FRESH_SECONDS or now >= deadline):
            return kept[2]
        if now >= deadline:
            return _reported(pod)
        self._kept.pop(kind, None)
        cause = self._decided(pod)
        self._kept[kind] = revision, time.monotonic(), cause
        return cause

    def _decided(self, pod: Pod) -> PendingCause:
        recomputation = self._mirror.recomputation
        if (gating := recomputation.gating(pod)) is not None:
            why = "; ".join(gating["reasons"])
            return PendingCause(f"{gating['plugin']} keeps it out of the queue: {why}", gating["plugin"], why)
        try:
            decision = recomputation.decide(pod)
        except MooringError as error:
            return PendingCause(str(error), "", str(error))
        if decision.node is not None:
            return PendingCause(FITS, "", refusal(pod), decision)
        evidence = decision.evidence()
        groups = evidence.get("rejections") or ()
        plugin = max(groups, key=lambda group: int(group["count"]))["plugin"] if groups else ""
        if decision.fault is not None:
            plugin = decision.fault.plugin
        return PendingCause(dominant_reason(evidence) or decision.message, plugin or "", decision.message, decision)


def _reported(pod: Pod) -> PendingCause:
    """By its scheduler."""
    message = refusal(pod)
    return PendingCause(message or NOT_TRIED, "", message)
