"""PrioritySort: which waiting pod is tried first."""

from __future__ import annotations

from mooring.framework import Plugin, QueuedPod


class PrioritySort(Plugin):
    """Try pods of higher priority first; among equals, those that wait longer."""

    def sort_key(self, queued: QueuedPod) -> tuple[int, float]:
        return (-queued.priority, queued.timestamp)
