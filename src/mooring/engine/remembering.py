"""Scores that are remembered from one pod to the next.

A plugin that says what it reads of the pod (`sign`) and of the cluster (`reads`: the node, or the node and its pods)
gives pods that agree in it the same score on a node that has not changed. So when pods of one kind come again, only
the rows that moved since are judged again: usually those that took the last pods.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from mooring.engine.cycle import EngineCycle
from mooring.framework import IntArray, Plugin, Reads
from mooring.state import KeptColumn, Rows, RowView, State

MOST_KINDS = 8
"""Deployments that grow at the same time send their pods in turn; a column for each kind is worth keeping."""


class _Kind:
    """One kind of pod: what the plugin's pre_score left for it, and from its second pod on what was said of nodes."""

    __slots__ = ("column", "left")

    def __init__(self, left: Any) -> None:
        self.left = left
        self.column: KeptColumn | None = None


class ScoreMemory:
    """What one plugin said of every node, for the latest kinds of pods."""

    __slots__ = ("_kinds", "_name", "_of", "_reads_pods", "_sign")

    def __init__(self, plugin: Plugin, sign: Callable[[Any], Hashable | None]) -> None:
        self._name = plugin.name
        self._reads_pods = plugin.reads is Reads.PODS
        self._sign = sign
        self._of: State | None = None
        self._kinds: dict[Hashable, _Kind] = {}

    def recall(
        self,
        cycle: EngineCycle,
        nodes: Rows,
        judge: Callable[[Rows], IntArray],
        judge_one: Callable[[RowView], int],
    ) -> IntArray | None:
        """The scores of these nodes; None: ask the plugin. A kind of pod is remembered from its second pod on."""
        signed = self._sign(cycle.pod)
        if signed is None:
            return None
        if self._of is not cycle.state:
            self._of = cycle.state
            self._kinds.clear()
        left = cycle.score_states.get(self._name)
        kind = self._kinds.pop(signed, None)
        if kind is None or kind.left != left:
            if len(self._kinds) >= MOST_KINDS:
                del self._kinds[next(iter(self._kinds))]
            self._kinds[signed] = _Kind(left)
            return None
        self._kinds[signed] = kind  # the latest is the last to be forgotten
        if kind.column is None:
            kind.column = cycle.state.keep_column(reads_pods=self._reads_pods)
        return kind.column.read(nodes, judge, judge_one)


def memory_of(plugin: Plugin) -> ScoreMemory | None:
    """A memory for a plugin that has said enough for one."""
    sign = getattr(plugin, "sign", None)
    if not callable(sign) or plugin.reads not in (Reads.NODE, Reads.PODS):
        return None
    return ScoreMemory(plugin, sign)
