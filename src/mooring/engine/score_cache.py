"""Score columns cached from one pod to the next.

A plugin declares what it reads of the pod (`sign`) and of the cluster (`reads`: the node, or the node and its pods).
Pods with the same signature get the same score on a node that has not changed, so only the rows that changed since the
last such pod are scored again: usually those that took the last pods.

A caller that decides many pods owns a `DecisionCache` and passes it to `decide`. Without one, decisions are the same.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Protocol

from mooring.engine.cycle import EngineCycle
from mooring.engine.profile import Profile, ScorePlugin
from mooring.framework import IntArray, Reads
from mooring.state import CachedColumn, Rows, RowView, State

MAX_SIGNATURES = 8
"""Deployments that scale up at the same time alternate; each signature gets a column."""


class _CachedScores:
    """One signature: the plugin's pre_score state, and from its second pod on the column of scores."""

    __slots__ = ("column", "state")

    def __init__(self, state: Any) -> None:
        self.state = state
        self.column: CachedColumn | None = None


class ScoreCache:
    """One plugin's scores of every node, for the latest signatures."""

    __slots__ = ("_by_signature", "_name", "_of", "_reads_pods", "_sign")

    def __init__(self, scorer: ScorePlugin) -> None:
        self._name = scorer.name
        self._reads_pods = scorer.plugin.reads is Reads.PODS
        self._sign: Callable[[Any], Hashable | None] = scorer.plugin.sign
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
            cached.column = cycle.state.cached_column(reads_pods=self._reads_pods)
        return cached.column.read(nodes, score, score_one)


ScoreCaches = Mapping[str, ScoreCache]
"""By the name of the score plugin; plugins whose scores cannot be cached are missing."""


class ReadsCache(Protocol):
    """A decision: its score columns may be those of a cache, which the next decision overwrites."""

    def release(self) -> None:
        """Stop reading them."""
        ...


class ProfileCache:
    """The score caches of one profile, and the decision that reads them."""

    __slots__ = ("_latest", "scores")

    def __init__(self, profile: Profile) -> None:
        self.scores: ScoreCaches = {
            scorer.name: ScoreCache(scorer) for scorer in profile.scorers if scorer.is_cacheable
        }
        self._latest: weakref.ref[ReadsCache] | None = None

    def set_latest(self, decision: ReadsCache) -> None:
        """The decision before this one stops reading the cached columns, and frees its own."""
        previous = self._latest() if self._latest is not None else None
        if previous is not None:
            previous.release()
        self._latest = weakref.ref(decision)


class DecisionCache:
    """What is kept from one decision to the next, per profile. The caller of `decide` owns it.

    One for each state: columns of another state are dropped.
    """

    def __init__(self) -> None:
        self._by_profile: weakref.WeakKeyDictionary[Profile, ProfileCache] = weakref.WeakKeyDictionary()

    def of(self, profile: Profile) -> ProfileCache:
        cached = self._by_profile.get(profile)
        if cached is None:
            cached = self._by_profile[profile] = ProfileCache(profile)
        return cached

    def drop(self, profile: Profile) -> None:
        """Drop the cache of this profile: its entries are wrong."""
        self._by_profile.pop(profile, None)


NO_SCORE_CACHES: ScoreCaches = {}
