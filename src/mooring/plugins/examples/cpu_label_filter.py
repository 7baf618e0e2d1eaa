"""sample2: admit only nodes that are labelled `cpu=true`.

A filter to start from: it rejects with the node's name as the reason, logs which nodes were left, and requeues pods as
soon as a node is labelled.
"""

from __future__ import annotations

from collections.abc import Iterable

from mooring.framework import Action, Cycle, Hint, Log, Node, NodeRows, NodeView, Plugin, Pod, Reads, Rejection
from mooring.objects.selectors import Labels


class CpuLabelFilter(Plugin):
    """Admit only nodes labelled `cpu=true`."""

    name = "sample2"
    reads = Reads.NODE

    def __init__(self, log: Log) -> None:
        self._log = log

    def events(self) -> Iterable[Hint]:
        return [Hint(Node, Action.ADD | Action.UPDATE_NODE_LABEL, self._became_admitted)]

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        return None if _is_admitted(node.labels) else Rejection(f"Node: {node.name}")

    def pre_score(self, pod: Pod, feasible: NodeRows, cycle: Cycle) -> None:
        self._log.info("[sample2] Feasible nodes", pod=pod, nodes=" ".join(feasible.names))

    def _became_admitted(self, pod: Pod, before: Node | None, after: Node) -> bool:
        return _is_admitted(after.labels) and (before is None or not _is_admitted(before.labels))


def _is_admitted(labels: Labels) -> bool:
    return labels.get("cpu") == "true"
