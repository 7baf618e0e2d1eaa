"""One scheduling attempt of one pod: as the engine keeps it, and what plugins see of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, TypeVar
from weakref import ref

from mooring.base.errors import Fault, StateMissing
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.profile import Profile
from mooring.engine.stopwatch import Stopwatch
from mooring.engine.time_budget import TimeBudget
from mooring.framework import (
    ALL_NODES,
    DomainCounts,
    Image,
    NodesWhere,
    Plugin,
    Pod,
    PodsWhere,
    Published,
    Tally,
    Term,
    TermKind,
)
from mooring.framework.pod_metadata import NOTHING, BindingMetadata
from mooring.objects.selectors import Labels
from mooring.state import Rows, State

T = TypeVar("T")


class Stage(Enum):
    """How far the attempt is. Tallies are read before nodes are evaluated one by one."""

    OUTSIDE = "before the first plugin"
    PRE_FILTER = "pre_filter"
    FILTER = "filter"
    POST_FILTER = "post_filter"
    PRE_SCORE = "pre_score"
    SCORE = "score"
    DECIDED = "after the decision"
    BINDING = "bind, or after it"


class _ReadValue(NamedTuple):
    """Outside data that a plugin read."""

    plugin: str
    version: int
    value: Any
    about: str


class EngineCycle:
    """One attempt, as the engine and the scheduler keep it; `shown` is what plugins see of it."""

    def __init__(
        self,
        profile: Profile,
        pod: Pod,
        state: State,
        attempt: int = 1,
        seed: int = 0,
        *,
        watch: Stopwatch | None = None,
        budget: TimeBudget | None = None,
    ) -> None:
        self.profile = profile
        self.pod = pod
        self.state = state
        self.attempt = attempt
        self.seed = seed
        """Randomness as an input: it breaks ties."""
        self.start = 0
        """Where the search for feasible nodes begins."""
        self.stage = Stage.OUTSIDE
        self.watch = watch
        """Times the plugins, if the caller wants that. Filters in a what-if count for the plugin that runs it."""
        self.budget = budget
        """The time that plugins may use for this attempt, also in a what-if; None: any."""
        self.plugin = ""
        """The name of the plugin that runs."""
        self.point: ExtensionPoint | None = None
        """The extension point that runs."""
        self.filter_states: dict[str, Any] = {}
        self.score_states: dict[str, Any] = {}
        self.limits: dict[str, set[str]] = {}
        """The names of the only nodes to evaluate, by the plugin whose pre_filter returned them."""
        self.skipped_filters: set[str] = set()
        self.skipped_scores: set[str] = set()
        self.added_to_binding: BindingMetadata | None = None
        self.is_trial = False
        """Whether the pod is only tried on its node, with other pods of its group."""
        self._values: dict[int, _ReadValue] = {}
        self.shown = PluginCycle(self)

    def for_what_if(self, pod: Pod) -> EngineCycle:
        """A cycle to run filters again inside a what-if: with states of its own, but plugins that skipped still skip.

        States of pre_filters that do not read pods on nodes still hold. For another pod nothing of this one's does.
        """
        other = EngineCycle(self.profile, pod, self.state, self.attempt, self.seed, budget=self.budget)
        other._values = self._values
        if pod is not self.pod:
            return other
        other.skipped_filters = set(self.skipped_filters)
        for plugin in self.profile.pre_filters:
            if not plugin.pre_filter_reads_pods and plugin.name in self.filter_states:
                other.filter_states[plugin.name] = self.filter_states[plugin.name]
                if plugin.name in self.limits:
                    other.limits[plugin.name] = self.limits[plugin.name]
        return other

    def end(self) -> None:
        """The decision is taken; what comes now (reserve, permit, bind) may read anything again."""
        self.stage = Stage.DECIDED

    def begin_binding(self) -> None:
        """The binding is about to be written: nothing can be added to it any more."""
        self.stage = Stage.BINDING

    @property
    def nodes(self) -> Rows:
        return self.state.nodes

    @property
    def times_plugins(self) -> bool:
        """Whether every plugin is timed, also one whose results are cached."""
        return self.watch is not None and self.watch.times_plugins

    def value_of(self, published: Published[Any]) -> Any:
        """Within one cycle the value stays the same, whatever is published meanwhile."""
        known = self._values.get(id(published))
        if known is None:
            taken = sum(1 for name, *_ in self._values.values() if name.partition("#")[0] == self.plugin)
            name = f"{self.plugin}#{taken + 1}" if taken else self.plugin
            known = self._values[id(published)] = _ReadValue(name, published.version, published.latest, published.about)
        return known.value

    @property
    def used(self) -> dict[str, int]:
        """The version of outside data that was read, by the plugin that read it (a second one as `Name#2`)."""
        return {name: version for name, version, _, _ in self._values.values()}

    @property
    def used_data(self) -> dict[str, str]:
        """What the plugin that published this data stated about it, by the same names."""
        return {name: about for name, _, _, about in self._values.values() if about}


class PluginCycle:
    """The framework's `Cycle`: all that plugins see of an attempt. There is no way from it to the state."""

    __slots__ = ("_budget", "_filter_states", "_pod", "_reference", "_score_states", "_state")

    def __init__(self, cycle: EngineCycle) -> None:
        self._reference = ref(cycle)  # a cycle of references would keep every decision until a garbage collection
        self._pod, self._state, self._budget = cycle.pod, cycle.state, cycle.budget
        self._filter_states = cycle.filter_states
        self._score_states = cycle.score_states

    @property
    def _cycle(self) -> EngineCycle:
        cycle = self._reference()
        if cycle is None:
            raise Fault("the attempt of this cycle is over; do not keep a cycle across attempts")
        return cycle

    @property
    def attempt(self) -> int:
        return self._cycle.attempt

    @property
    def is_trial(self) -> bool:
        return self._cycle.is_trial

    @property
    def nodes(self) -> Rows:
        return self._state.nodes

    def filter_state(self, plugin: Plugin) -> Any:
        try:
            return self._filter_states[plugin.name]
        except KeyError:
            raise StateMissing(plugin.missing_state_message.format(f"PreFilter{plugin.name}")) from None

    def set_filter_state(self, plugin: Plugin, state: Any) -> None:
        self._filter_states[plugin.name] = state

    def score_state(self, plugin: Plugin) -> Any:
        try:
            return self._score_states[plugin.name]
        except KeyError:
            raise StateMissing(f'reading "PreScore{plugin.name}" from cycleState: not found') from None

    def tally(self, pods: PodsWhere, key: str, on: NodesWhere = ALL_NODES) -> Tally:
        cycle = self._cycle
        if cycle.stage is Stage.FILTER or cycle.stage is Stage.SCORE:
            raise Fault(
                f"cycle.tally was called in {cycle.stage.value}; call it in pre_filter or pre_score and keep the tally"
            )
        if cycle.budget is not None:  # the state is never interrupted: an attempt that spends its time there ends here
            cycle.budget.check()
        return cycle.state.tally(pods, key, on)

    def total(self, pods: PodsWhere, resource: str) -> int:
        if self._budget is not None:
            self._budget.check()
        return self._state.total(pods, resource)

    def existing_affinity_terms(self, kind: TermKind, namespace_labels: Labels) -> Sequence[tuple[Term, DomainCounts]]:
        if self._budget is not None:
            self._budget.check()
        return self._state.existing_affinity_terms(self._pod, kind, namespace_labels)

    def claim_uses(self, claims: Collection[str]) -> int:
        return self._state.claim_uses(self._pod.namespace, claims)

    def image(self, name: str) -> Image | None:
        return self._state.image(name)

    def add_to_binding(
        self,
        plugin: Plugin,
        *,
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        cycle = self._cycle
        if cycle.stage is not Stage.DECIDED:
            raise Fault(f"the binding was added to in {cycle.stage.value}; do so in reserve, permit or pre_bind")
        cycle.added_to_binding = cycle.added_to_binding or BindingMetadata()
        cycle.added_to_binding.add(plugin.name, annotations or NOTHING, labels or NOTHING)

    def value(self, published: Published[T]) -> T | None:
        value: T | None = self._cycle.value_of(published)
        return value
