"""What is kept from one decision to the next, so that a pod like an earlier one costs the rows that changed since.

Per plugin and signature its results for every node (`plugin_columns`); per signature of all plugins together, which
nodes are feasible and their totals (`ranking`); per template, and per family of templates, what plugins sign and return
before nodes are evaluated (`Common`). All are kept from the second pod of a signature on: a pod unlike any
other costs no more than without a cache. The number of signatures is bounded, by what the columns take in memory.

A caller that decides many pods owns a `DecisionCache` and passes it to `decide`. Without one, decisions are the same.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakSet

from mooring.base.foreign_code import is_its_own, raised
from mooring.base.log import Log
from mooring.engine.cycle import EngineCycle
from mooring.engine.plugin_call import calling
from mooring.engine.plugin_columns import Changes, FilterColumn, PluginColumn, ScoreColumn, widest_log
from mooring.engine.plugin_scores import CachedScores
from mooring.engine.profile import FilterPlugin, Profile, ScorePlugin
from mooring.engine.ranking import Ranking
from mooring.engine.time_budget import AttemptTimeout
from mooring.framework import Plugin
from mooring.state import State

_log = Log("engine")

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

    __slots__ = ("_seen", "_seen_before", "_values", "most")

    def __init__(self, most: int) -> None:
        self._values: dict[Hashable, V] = {}
        self._seen: set[int] = set()
        self._seen_before: set[int] = set()
        """Hashes of keys: the keys themselves may be large. Two with the same hash do no harm."""
        self.most = most

    def get(self, key: Hashable) -> V | None:
        values = self._values
        value = values.get(key)
        if value is not None and 2 * len(values) > self.most:  # as long as there is room, the order does not matter
            values[key] = values.pop(key)
        return value

    def put(self, key: Hashable, value: V) -> None:
        self._values[key] = value
        while len(self._values) > self.most:
            del self._values[next(iter(self._values))]

    def drop(self, key: Hashable) -> None:
        self._values.pop(key, None)

    def is_new(self, key: Hashable) -> bool:
        """Whether this is the first use of the key, as far as is known."""
        code = hash(key)
        if code in self._seen or code in self._seen_before:
            self._seen.discard(code)
            self._seen_before.discard(code)
            return False
        self._seen.add(code)
        if len(self._seen) > MOST_SEEN // 2:
            self._seen, self._seen_before = set(), self._seen
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
        self._filterers = profile.filterers
        self._can_rank = profile.has_small_totals
        evaluated: list[FilterPlugin | ScorePlugin] = [*profile.filterers, *profile.scorers]
        self._log = widest_log(each.plugin for each in evaluated)
        """The change log that rankings follow: scores may read pods though filters do not."""
        self._latest: weakref.ref[ReadsCache] | None = None
        self._of: State | None = None
        self._capacity = 0
        self._changes: Changes
        self._signs: Mapping[str, Hashable] = {}
        """What plugins signed of the pod that is being decided."""
        self._signature: tuple[Hashable, ...] = ()
        """The same of all plugins together."""
        self._of_template = _Sharing(profile.per_template, profile.signed)
        self._of_family = _Sharing(profile.per_family, profile.signed)
        self.common: Common | None = None
        """What plugins return for all pods like the one that is being decided."""

    def set_latest(self, decision: ReadsCache) -> None:
        """The decision before this one stops reading the cached columns, and frees its own."""
        previous = self._latest() if self._latest is not None else None
        if previous is not None:
            previous.release()
        self._latest = weakref.ref(decision)

    def begin(self, cycle: EngineCycle, call: calling) -> Sequence[Plugin]:
        """A pod is about to be decided: what plugins sign of it, and what they return for all pods like it.

        Returns the PreFilter plugins that are left to run; all of them where plugins are timed.
        """
        state = cycle.state
        if self._of is not state or self._capacity != state.row_capacity:
            self._of, self._capacity = state, state.row_capacity
            self._changes = Changes(state)
            self._columns: _Kept[FilterColumn | ScoreColumn | _Failed] = _Kept(_most(state, COLUMN_BYTES))
            self._rankings: _Kept[Ranking] = _Kept(_most(state, RANKING_BYTES))
        self._changes.look()
        template, sharing = cycle.pod.template, self._of_template
        common = sharing.among(template, cycle, call)
        if common is None:  # the first pod of its template
            sharing = self._of_family
            common = sharing.among(template.family, cycle, call)
        self.common = common
        if common is None:
            self._signs = _signs(self._signed, cycle, call)
            self._signature = self._signature_of(self._signs)
            return cycle.profile.pre_filters
        if sharing.signed_each_time:
            self._signs = common.signs | _signs(sharing.signed_each_time, cycle, call)
            self._signature = self._signature_of(self._signs)
        else:
            if not common.signature:
                common.signature = self._signature_of(common.signs)
            self._signs, self._signature = common.signs, common.signature
        common.give(cycle)
        if common.pre_filters is None or cycle.times_plugins:
            return cycle.profile.pre_filters
        call.note_cached(common.cached_filters)
        return common.pre_filters

    def _signature_of(self, signs: Mapping[str, Hashable]) -> tuple[Hashable, ...]:
        return tuple([signs[plugin.name] for plugin in self._signed])

    def pre_filtered(self, cycle: EngineCycle) -> None:
        """All pre_filters have run, and none refused the pod."""
        if self.common is not None and self.common.pre_filters is None:
            self.common.take_filters(cycle)

    def pre_scores(self, cycle: EngineCycle, call: calling) -> Sequence[Plugin]:
        """The PreScore plugins that are left to run, as `begin` returns PreFilter plugins."""
        common = self.common
        if common is None or common.pre_scores is None or cycle.times_plugins:
            return cycle.profile.pre_scores
        call.note_cached(common.cached_scores)
        return common.pre_scores

    def pre_scored(self, cycle: EngineCycle) -> None:
        """All pre_scores have run."""
        if self.common is not None and self.common.pre_scores is None:
            self.common.take_scores(cycle)

    # Filters

    def filter_column(
        self, filterer: FilterPlugin, cycle: EngineCycle, *, is_seen: bool = False
    ) -> FilterColumn | None:
        """The filter's verdicts for pods like this one, up to date; None: run it. `is_seen`: keep them from now on."""
        if not filterer.is_cacheable or (sign := self._signs[filterer.name]) is None:
            return None
        key = (FilterColumn, filterer.name, sign)
        column: FilterColumn | None = self._column(key, filterer, is_seen=is_seen)
        state = cycle.filter_states.get(filterer.name)
        if column is None or column.is_current(self._changes.now, state):
            return column
        return column if self._advance(key, column, cycle, state) else None

    def scores(self, scorer: ScorePlugin, cycle: EngineCycle, ranking: Ranking | None) -> CachedScores | None:
        """The scores of a cacheable plugin for pods like this one, up to date; None: run it."""
        name = scorer.name
        if (sign := self._signs[name]) is None:
            return None
        scores = ranking.scores.get(name) if ranking is not None else None
        if scores is None:
            column: ScoreColumn | None = self._column((ScoreColumn, name, sign), scorer)
            if column is None:
                return None
            scores = CachedScores(scorer, column)
            if ranking is not None:
                ranking.scores[name] = scores
        state = cycle.score_states.get(name)
        if not scores.column.is_current(self._changes.now, state) and not self._advance(
            (ScoreColumn, name, sign), scores.column, cycle, state
        ):
            if ranking is not None:
                del ranking.scores[name]
            return None
        if scores.shape != scores.column.shape:
            scores.settle()
        return scores

    def _column(self, key: tuple[Any, ...], plugin: FilterPlugin | ScorePlugin, *, is_seen: bool = False) -> Any:
        """What is kept under this key; None: nothing yet, or the plugin fails on some node."""
        column = self._columns.get(key)
        if column is None and (is_seen or not self._columns.is_new(key)):
            column = key[0](plugin)
            self._columns.put(key, column)
        return None if column is _FAILED else column

    def _advance(self, key: Hashable, column: PluginColumn, cycle: EngineCycle, state: Any) -> bool:
        """Bring it up to date. False: the plugin fails on some node, and there is no column from now on."""
        try:
            column.advance(cycle, self._changes, state)
        except BaseException as error:
            _raise_unless_its_own(error)
            self._columns.put(key, _FAILED)
            return False
        return True

    def ranking(self, cycle: EngineCycle, call: calling) -> Ranking | None:
        """The nodes as pods like this one see them; None: filters run one by one."""
        if not self._can_rank:
            return None
        signature, skipped = self._signature, cycle.skipped_filters
        ranking = self._rankings.get(signature)
        if ranking is None and self._rankings.is_new(signature):
            return None
        if ranking is None or ranking.skipped != skipped:
            filterers = [filterer for filterer in self._filterers if filterer.name not in skipped]
            cacheable = self._cacheable(filterers)
            if ranking is None or ranking.cacheable != cacheable:
                ranking = Ranking(cacheable, self._filter_columns(cacheable, cycle), self._log)
                self._rankings.put(signature, ranking)
            ranking.skipped, ranking.others = frozenset(skipped), filterers[len(ranking.filters) :]
        try:
            ranking.advance(cycle, self._changes, call)
        except BaseException as error:
            self._rankings.drop(signature)
            _raise_unless_its_own(error)
            call.restart()
            return None
        if not ranking.count:
            call.restart()
            return None
        return ranking

    def _cacheable(self, filterers: Sequence[FilterPlugin]) -> Sequence[FilterPlugin]:
        """The first of these filters, as far as they can be cached."""
        for place, filterer in enumerate(filterers):
            if not filterer.is_cacheable or self._signs[filterer.name] is None:
                return filterers[:place]
        return filterers

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


_unsigned: WeakSet[Plugin] = WeakSet()
"""The plugins whose `sign` has failed: it is logged once for each, not for each pod."""


def _signs(plugins: Iterable[Plugin], cycle: EngineCycle, call: calling) -> dict[str, Hashable]:
    """What each plugin signs of the pod. None: its results are not shared; nor where it cannot sign the pod."""
    signs: dict[str, Hashable] = {}
    for plugin in plugins:
        call.plugin = plugin  # whose turn it is not, but what is raised now is its own
        try:
            sign = plugin.sign(cycle.pod)
            hash(sign)
        except Exception as error:
            sign = None
            if plugin not in _unsigned:
                _unsigned.add(plugin)
                _log.error(
                    "sign failed; results of the plugin are not cached",
                    plugin=plugin.name,
                    **raised(error, plugin.sign),
                )
        signs[plugin.name] = sign
    return signs


class _Sharing:
    """What plugins return for pods that are alike: of one template, or of one family of templates."""

    def __init__(self, shared: Sequence[Plugin], signed: Iterable[Plugin]) -> None:
        self._shared = shared
        self.signed_each_time = tuple(plugin for plugin in signed if plugin not in shared)
        self._kept: _Kept[Common] = _Kept(MOST_KEPT)

    def among(self, alike: Hashable, cycle: EngineCycle, call: calling) -> Common | None:
        """What is shared among these pods; None: the cycle's pod is the first of them."""
        common = self._kept.get(alike)
        if common is None and not self._kept.is_new(alike):
            common = Common(_signs(self._shared, cycle, call))
            self._kept.put(alike, common)
        return common


class Common:
    """What plugins return for all pods that are alike, whatever the cluster is like: signatures, states and skips."""

    __slots__ = (
        "_filter_states",
        "_score_states",
        "_skipped_filters",
        "_skipped_scores",
        "cached_filters",
        "cached_scores",
        "pre_filters",
        "pre_scores",
        "signature",
        "signs",
    )

    def __init__(self, signs: dict[str, Hashable]) -> None:
        self.signs = signs
        self.signature: tuple[Hashable, ...] = ()
        """What all plugins sign together, where it is the same for all these pods."""
        self._filter_states: dict[str, Any] = {}
        self._skipped_filters: set[str] = set()
        self._score_states: dict[str, Any] = {}
        self._skipped_scores: set[str] = set()
        self.pre_filters: tuple[Plugin, ...] | None = None
        self.pre_scores: tuple[Plugin, ...] | None = None
        """The plugins that run for each pod; None: all, because they have not run for such a pod yet."""
        self.cached_filters: tuple[str, ...] = ()
        self.cached_scores: tuple[str, ...] = ()
        """The names of the others."""

    def give(self, cycle: EngineCycle) -> None:
        """Leave what is known in a cycle: these plugins do not run again."""
        cycle.filter_states.update(self._filter_states)
        cycle.skipped_filters.update(self._skipped_filters)
        cycle.score_states.update(self._score_states)
        cycle.skipped_scores.update(self._skipped_scores)

    def take_filters(self, cycle: EngineCycle) -> None:
        """All pre_filters have run, and none refused the pod."""
        shared = self._shared(cycle.profile.pre_filters, cycle)
        self._filter_states = {name: state for name, state in cycle.filter_states.items() if name in shared}
        self._skipped_filters = cycle.skipped_filters & shared
        self.pre_filters = tuple(plugin for plugin in cycle.profile.pre_filters if plugin.name not in shared)
        self.cached_filters = tuple(shared)

    def take_scores(self, cycle: EngineCycle) -> None:
        """All pre_scores have run."""
        shared = self._shared(cycle.profile.pre_scores, cycle)
        self._score_states = {name: state for name, state in cycle.score_states.items() if name in shared}
        self._skipped_scores = cycle.skipped_scores & shared
        self.pre_scores = tuple(plugin for plugin in cycle.profile.pre_scores if plugin.name not in shared)
        self.cached_scores = tuple(shared)

    def _shared(self, plugins: Iterable[Plugin], cycle: EngineCycle) -> set[str]:
        """The plugins whose results hold for all these pods."""
        return {
            plugin.name
            for plugin in plugins
            if self.signs.get(plugin.name) is not None and plugin.name not in cycle.limits
        }


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
