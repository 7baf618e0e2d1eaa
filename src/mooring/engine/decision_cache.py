"""What is kept from one decision to the next, so that a pod like an earlier one costs the rows that changed since.

Per plugin and signature its results for every node (`plugin_columns`); per signature of all plugins together, which
nodes are feasible and their totals (`ranking`). Both are kept from the second pod of a signature on: a pod unlike any
other costs no more than without a cache. The number of signatures is bounded, by what the columns take in memory.

A caller that decides many pods owns a `DecisionCache` and passes it to `decide`. Without one, decisions are the same.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from mooring.base.foreign_code import is_its_own
from mooring.engine.cycle import EngineCycle
from mooring.engine.plugin_call import calling
from mooring.engine.plugin_columns import Changes, FilterColumn, ScoreColumn
from mooring.engine.plugin_scores import PluginScores
from mooring.engine.profile import FilterPlugin, Profile, ScorePlugin
from mooring.engine.ranking import Ranking, can_rank
from mooring.engine.time_budget import AttemptTimeout
from mooring.framework import Plugin
from mooring.state import State

MOST_BYTES = 64 * 1024 * 1024
"""Of columns, and as much of rankings."""
COLUMN_BYTES, RANKING_BYTES = 10, 16
"""About what one takes a row."""
FEWEST_KEPT, MOST_KEPT = 8, 512
MOST_SEEN = 4_096
"""Signatures that were seen once."""

V = TypeVar("V")


class _Kept(Generic[V]):
    """Values by key, from a key's second use on; the least recently used are dropped."""

    __slots__ = ("_seen", "_values", "most")

    def __init__(self, most: int) -> None:
        self._values: dict[Hashable, V] = {}
        self._seen: dict[int, None] = {}
        """Hashes of keys: the keys themselves may be large. Two with the same hash do no harm."""
        self.most = most

    def take(self, key: Hashable) -> V | None:
        """Take it out, to be put back after use."""
        return self._values.pop(key, None)

    def put(self, key: Hashable, value: V) -> None:
        self._values[key] = value
        while len(self._values) > self.most:
            del self._values[next(iter(self._values))]

    def is_new(self, key: Hashable) -> bool:
        """Whether this is the first use of the key, as far as is known."""
        code = hash(key)
        if code in self._seen:
            del self._seen[code]
            return False
        self._seen[code] = None
        if len(self._seen) > MOST_SEEN:
            del self._seen[next(iter(self._seen))]
        return True


class _Failed:
    """In place of a column: the plugin fails on nodes that other filters reject, so it runs every time."""


_FAILED = _Failed()


class ReadsCache(Protocol):
    """A decision: what it reads may be columns of a cache, which the next decision overwrites."""

    def release(self) -> None:
        """Stop reading them."""
        ...


class ProfileCache:
    """What is kept for one profile, and the decision that reads it."""

    def __init__(self, profile: Profile) -> None:
        # Not the profile itself: `DecisionCache` drops this when nothing else holds the profile any more.
        self._signed = profile.signed
        self._per_template = profile.per_template
        self._filterers = profile.filterers
        self._signed_each_time = tuple(plugin for plugin in profile.signed if not plugin.per_template)
        self._can_rank = can_rank(profile)
        self._latest: weakref.ref[ReadsCache] | None = None
        self._of: State | None = None
        self._capacity = 0
        self._changes: Changes
        self._signs: dict[str, Hashable] = {}
        """What plugins signed of the pod that is being decided."""
        self._common: _Kept[Common] = _Kept(MOST_KEPT)
        self.common: Common | None = None
        """What plugins return for all pods like the one that is being decided."""

    def set_latest(self, decision: ReadsCache) -> None:
        """The decision before this one stops reading the cached columns, and frees its own."""
        previous = self._latest() if self._latest is not None else None
        if previous is not None:
            previous.release()
        self._latest = weakref.ref(decision)

    def begin(self, cycle: EngineCycle, call: calling) -> None:
        """A pod is about to be decided: what plugins sign of it, and what they return for all pods like it."""
        state = cycle.state
        if self._of is not state or self._capacity != state.row_capacity:
            self._of, self._capacity = state, state.row_capacity
            self._changes = Changes(state)
            self._columns: _Kept[FilterColumn | ScoreColumn | _Failed] = _Kept(_most(state, COLUMN_BYTES))
            self._rankings: _Kept[Ranking] = _Kept(_most(state, RANKING_BYTES))
        self._changes.look()
        template = cycle.pod.template
        common = self._common.take(template)
        if common is None and self._common.is_new(template):
            self.common, self._signs = None, _signs(self._signed, cycle, call)
        else:
            if common is None:
                common = Common(_signs(self._per_template, cycle, call))
            self._common.put(template, common)
            self.common, self._signs = common, common.signs
            if self._signed_each_time:
                self._signs = common.signs | _signs(self._signed_each_time, cycle, call)
            common.give(cycle)

    def pre_filtered(self, cycle: EngineCycle) -> None:
        """All pre_filters have run, and none refused the pod."""
        if self.common is not None and not self.common.is_filtered:
            self.common.take_filters(cycle)

    def pre_scored(self, cycle: EngineCycle) -> None:
        """All pre_scores have run."""
        if self.common is not None and not self.common.is_scored:
            self.common.take_scores(cycle)

    # Filters

    def filter_column(
        self, filterer: FilterPlugin, cycle: EngineCycle, *, is_seen: bool = False
    ) -> FilterColumn | None:
        """The filter's verdicts for pods like this one, up to date; None: run it. `is_seen`: keep them from now on."""
        if not filterer.is_cacheable or (sign := self._signs[filterer.name]) is None:
            return None
        key = (FilterColumn, filterer.name, sign)
        column = self._columns.take(key)
        if column is None and not is_seen and self._columns.is_new(key):
            return None
        state = cycle.filter_states.get(filterer.name)
        advanced: FilterColumn | None = self._advanced(key, column or FilterColumn(filterer), cycle, state)
        return advanced

    def scores(self, scorer: ScorePlugin, cycle: EngineCycle, ranking: Ranking | None) -> PluginScores | None:
        """The plugin's scores for pods like this one, up to date; None: run it."""
        if not scorer.is_cacheable or (sign := self._signs[scorer.name]) is None:
            return None
        state = cycle.score_states.get(scorer.name)
        known = ranking.scores.get(scorer.name) if ranking is not None else None
        if known is not None and known.column is not None and known.column.is_current(self._changes.now, state):
            return known
        key = (ScoreColumn, scorer.name, sign)
        kept = self._columns.take(key)
        if known is None and kept is None and self._columns.is_new(key):
            return None
        column = known.column if known is not None else kept or ScoreColumn(scorer)
        column = self._advanced(key, column, cycle, state)
        if column is None:
            known = None
        elif known is None:
            known = PluginScores(scorer, column)
        if ranking is not None:
            ranking.scores[scorer.name] = known
        return known

    def _advanced(self, key: Hashable, column: Any, cycle: EngineCycle, state: Any) -> Any:
        if column is not _FAILED:
            try:
                column.advance(cycle, self._changes, state)
            except BaseException as error:
                _raise_unless_its_own(error)
                column = _FAILED
        self._columns.put(key, column)
        return None if column is _FAILED else column

    def ranking(self, cycle: EngineCycle, call: calling) -> Ranking | None:
        """The nodes as pods like this one see them; None: filters run one by one."""
        if not self._can_rank:
            return None
        cacheable = self._cacheable_filters(cycle.skipped_filters)
        signature = tuple([self._signs[plugin.name] for plugin in self._signed])
        ranking = self._rankings.take(signature)
        if ranking is None and self._rankings.is_new(signature):
            return None
        if ranking is None or ranking.cacheable != cacheable:
            ranking = Ranking(cacheable, self._filter_columns(cacheable, cycle))
        try:
            ranking.advance(cycle, self._changes, call)
        except BaseException as error:
            _raise_unless_its_own(error)
            call.restart()
            return None
        self._rankings.put(signature, ranking)
        if not ranking.count:
            call.restart()
            return None
        return ranking

    def _cacheable_filters(self, skipped: set[str]) -> list[FilterPlugin]:
        """The profile's first filters that run for this pod, as far as they can be cached."""
        first: list[FilterPlugin] = []
        for filterer in self._filterers:
            if filterer.name in skipped:
                continue
            if not filterer.is_cacheable or self._signs[filterer.name] is None:
                break
            first.append(filterer)
        return first

    def _filter_columns(self, filterers: Sequence[FilterPlugin], cycle: EngineCycle) -> list[FilterColumn]:
        """Their columns, up to the first that fails."""
        columns: list[FilterColumn] = []
        for filterer in filterers:
            column = self.filter_column(filterer, cycle, is_seen=True)
            if column is None:
                break
            columns.append(column)
        return columns


def _raise_unless_its_own(error: BaseException) -> None:
    """A plugin may fail on a node that does not reach it. It runs on those that do, and may fail there."""
    if isinstance(error, AttemptTimeout) or not is_its_own(error):
        raise error


def _most(state: State, row_bytes: int) -> int:
    return max(FEWEST_KEPT, min(MOST_KEPT, MOST_BYTES // (row_bytes * state.row_capacity)))


def _signs(plugins: Iterable[Plugin], cycle: EngineCycle, call: calling) -> dict[str, Hashable]:
    """What each plugin signs of the pod. None: its results are not shared; nor where it cannot sign the pod."""
    signs: dict[str, Hashable] = {}
    for plugin in plugins:
        call.attribute_to(plugin)
        try:
            sign = plugin.sign(cycle.pod)
            hash(sign)
        except Exception:
            sign = None
        signs[plugin.name] = sign
    return signs


class Common:
    """What plugins return for all pods of one template, whatever the cluster is like: signatures, states and skips."""

    __slots__ = (
        "_filter_states",
        "_score_states",
        "_skipped_filters",
        "_skipped_scores",
        "is_filtered",
        "is_scored",
        "signs",
    )

    def __init__(self, signs: Mapping[str, Hashable]) -> None:
        self.signs = dict(signs)
        self._filter_states: dict[str, Any] = {}
        self._skipped_filters: set[str] = set()
        self._score_states: dict[str, Any] = {}
        self._skipped_scores: set[str] = set()
        self.is_filtered = self.is_scored = False
        """Whether pre_filters, and pre_scores, have run for such a pod."""

    def give(self, cycle: EngineCycle) -> None:
        """Leave what is known in a cycle: these plugins do not run again."""
        cycle.filter_states.update(self._filter_states)
        cycle.skipped_filters.update(self._skipped_filters)
        cycle.score_states.update(self._score_states)
        cycle.skipped_scores.update(self._skipped_scores)

    def take_filters(self, cycle: EngineCycle) -> None:
        """All pre_filters have run, and none refused the pod."""
        self.is_filtered = True
        for plugin in cycle.profile.pre_filters:
            name = plugin.name
            if self.signs.get(name) is None or name in cycle.limits:
                continue
            if name in cycle.filter_states:
                self._filter_states[name] = cycle.filter_states[name]
            if name in cycle.skipped_filters:
                self._skipped_filters.add(name)

    def take_scores(self, cycle: EngineCycle) -> None:
        """All pre_scores have run."""
        self.is_scored = True
        for plugin in cycle.profile.pre_scores:
            name = plugin.name
            if self.signs.get(name) is None:
                continue
            if name in cycle.score_states:
                self._score_states[name] = cycle.score_states[name]
            if name in cycle.skipped_scores:
                self._skipped_scores.add(name)


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
