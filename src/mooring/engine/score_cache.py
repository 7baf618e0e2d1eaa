"""Score columns cached from one pod to the next.

A plugin declares what it reads of the pod (`sign`) and of the cluster (`reads`: the node, or the node and its pods).
Pods with the same signature get the same score on a node that has not changed, so only the rows that changed since the
last such pod are scored again: usually those that took the last pods.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from mooring.engine.cycle import EngineCycle
from mooring.framework import IntArray, Plugin, Reads
from mooring.state import KeptColumn, Rows, RowView, State

MAX_SIGNATURES = 8
"""Deployments that scale up at the same time alternate; each signature gets a column."""


class _CachedScores:
    """One signature: the plugin's pre_score state, and from its second pod on the column of scores."""

    __slots__ = ("column", "state")

    def __init__(self, state: Any) -> None:
        self.state = state
        self.column: KeptColumn | None = None


class ScoreCache:
    """One plugin's scores of every node, for the latest signatures."""

    __slots__ = ("_by_signature", "_name", "_of", "_reads_pods", "_sign")

    def __init__(self, plugin: Plugin, sign: Callable[[Any], Hashable | None]) -> None:
        self._name = plugin.name
        self._reads_pods = plugin.reads is Reads.PODS
        self._sign = sign
        self._of: State | None = None
        self._by_signature: dict[Hashable, _CachedScores] = {}

    def get(
        self,
        cycle: EngineCycle,
        nodes: Rows,
        score: Callable[[Rows], IntArray],
        score_one: Callable[[RowView], int],
    ) -> IntArray | None:
        """The scores of these nodes; None: call the plugin. A signature is cached from its second pod on."""
        signature = self._sign(cycle.pod)
        if signature is None:
            return None
        if self._of is not cycle.state:
            self._of = cycle.state
            self._by_signature.clear()
        state = cycle.score_states.get(self._name)
        cached = self._by_signature.pop(signature, None)
        if cached is None or cached.state != state:
            if len(self._by_signature) >= MAX_SIGNATURES:
                del self._by_signature[next(iter(self._by_signature))]
            self._by_signature[signature] = _CachedScores(state)
            return None
        self._by_signature[signature] = cached  # the latest is the last to be evicted
        if cached.column is None:
            cached.column = cycle.state.keep_column(reads_pods=self._reads_pods)
        return cached.column.read(nodes, score, score_one)


def score_cache_of(plugin: Plugin) -> ScoreCache | None:
    """The cache of a plugin that declares `sign` and `reads`; None for others."""
    sign = getattr(plugin, "sign", None)
    if not callable(sign) or plugin.reads not in (Reads.NODE, Reads.PODS):
        return None
    return ScoreCache(plugin, sign)
