"""Nodes to run a plugin on, one at a time or as a small cluster in memory that schedules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from mooring.base.errors import StateMissing
from mooring.engine import (
    Decision,
    DecisionCache,
    Permitted,
    PlacementRefused,
    Profile,
    decide,
    permit,
    reserve,
    unreserve,
)
from mooring.engine.verification import first_difference
from mooring.framework import (
    ALL_NODES,
    DomainCounts,
    Image,
    NodeRows,
    NodesWhere,
    NodeView,
    OnlyNodes,
    Plugin,
    Pod,
    PodsWhere,
    Point,
    Published,
    Refusal,
    Skip,
    Tally,
    Term,
    TermKind,
)
from mooring.framework.pod_metadata import BindingMetadata
from mooring.framework.points import points_of
from mooring.objects.core import Taint
from mooring.objects.placed import placed
from mooring.objects.quantity import QuantityText
from mooring.objects.selectors import Labels
from mooring.state import RowView, State
from mooring.testing.builders import a_node_object
from mooring.testing.services import Services

T = TypeVar("T")


def a_node(
    name: str = "node",
    *,
    cpu: QuantityText = "4",
    memory: QuantityText = "16Gi",
    pods: int = 110,
    resources: Mapping[str, QuantityText] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Sequence[Taint] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    running: Sequence[Pod] = (),
) -> NodeView:
    """A node with pods on it, as a filter or score sees it. Several of these make `a_cluster`."""
    state = State()
    state.set_node(
        a_node_object(
            name,
            cpu=cpu,
            memory=memory,
            pods=pods,
            resources=resources,
            labels=labels,
            annotations=annotations,
            taints=taints,
            unschedulable=unschedulable,
            images=images,
        )
    )
    for pod in running:
        state.set_pod(placed(pod, name))
    view = state.node(name)
    assert view is not None
    return view


class TestCycle:
    """A cycle to hand to a plugin's methods directly.

    It runs the plugin's own pre_filter or pre_score when the state they leave is read.
    """

    __test__ = False  # not a test class, whatever its name

    def __init__(self, pod: Pod, state: State, attempt: int = 1) -> None:
        self._pod, self._state = pod, state
        self.attempt = attempt
        self.is_trial = False
        self._filter_states: dict[Plugin, Any] = {}
        self._score_states: dict[Plugin, Any] = {}
        self.added_to_binding = BindingMetadata()
        """What plugins added: `.annotations` and `.labels`."""
        self.versions: dict[Published[Any], int] = {}
        """Which version of which outside data was used."""

    @property
    def nodes(self) -> NodeRows:
        return self._state.nodes

    def filter_state(self, plugin: Plugin) -> Any:
        if plugin not in self._filter_states:
            result = plugin.pre_filter(self._pod, self) if hasattr(plugin, "pre_filter") else Skip()
            if plugin not in self._filter_states or not isinstance(result, Skip | Refusal):
                self._filter_states[plugin] = result.state if isinstance(result, OnlyNodes) else result
        return self._left(self._filter_states[plugin], plugin, "pre_filter")

    def set_filter_state(self, plugin: Plugin, state: Any) -> None:
        self._filter_states[plugin] = state

    def score_state(self, plugin: Plugin) -> Any:
        if plugin not in self._score_states:
            self._score_states[plugin] = (
                plugin.pre_score(self._pod, self.nodes, self) if hasattr(plugin, "pre_score") else Skip()
            )
        return self._left(self._score_states[plugin], plugin, "pre_score")

    def _left(self, state: Any, plugin: Plugin, point: str) -> Any:
        if isinstance(state, Skip | Refusal):
            raise StateMissing(f"{plugin.name}.{point} left no state: it returned {state!r}")
        return state

    def tally(self, pods: PodsWhere, key: str, on: NodesWhere = ALL_NODES) -> Tally:
        return self._state.tally(pods, key, on)

    def total(self, pods: PodsWhere, resource: str) -> int:
        return self._state.total(pods, resource)

    def existing_affinity_terms(self, kind: TermKind, namespace_labels: Labels) -> Sequence[tuple[Term, DomainCounts]]:
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
        self.added_to_binding.add(plugin.name, annotations or {}, labels or {})

    def value(self, published: Published[T]) -> T | None:
        self.versions[published] = published.version
        return published.latest


def a_cycle(pod: Pod, cluster: Cluster | None = None, *, attempt: int = 1) -> TestCycle:
    """An attempt to place the pod: in the cluster, or where there is nothing."""
    return TestCycle(pod, cluster.state if cluster is not None else State(), attempt)


class Cluster:
    """A small cluster in memory, with a profile of plugins. See `a_cluster`."""

    def __init__(
        self, nodes: Iterable[NodeView], services: Services, plugins: Sequence[Plugin | tuple[Plugin, int]]
    ) -> None:
        self.services = services
        self.state = services.state
        self.profile = Profile("test", _points(plugins))
        self._cache = DecisionCache()
        self._attempts: Counter[str] = Counter()
        self._placing = 0
        self._ends: list[tuple[Decision, PlacementRefused | None]] = []
        """Of pods that waited on permit, and have been allowed or rejected."""
        for node in nodes:
            row = cast(RowView, node)
            if self.state.set_node(row.object) is not None:
                raise ValueError(f"two nodes of the cluster are called {node.name}")
            for pod in row.pods:
                self.state.set_pod(pod)

    @property
    def nodes(self) -> NodeRows:
        """All nodes, for a plugin's vector form."""
        return self.state.nodes

    def node(self, name: str) -> NodeView:
        found = self.state.node(name)
        if found is None:
            raise KeyError(f"the cluster has no node {name}")
        return found

    def decide(self, pod: Pod) -> Decision:
        """What the plugins decide about the pod as things stand; nothing changes."""
        known = self.state.remove_pending(pod.uid)
        self.state.set_pending(pod)
        try:
            return decide(self.profile, pod, self.state, attempt=self._attempts[pod.uid] + 1, cache=self._cache)
        finally:
            self.state.remove_pending(pod.uid)
            if known is not None:
                self.state.set_pending(known)

    def verify(self, pod: Pod) -> Decision:
        """`decide`, with results that were cached for earlier pods and again without. Raises AssertionError if the two
        differ: a plugin reads more than its `reads` and `sign` declare. What `sign` raises leaves as it is.
        """
        for plugin in self.profile.signed:
            hash(plugin.sign(pod))
        cached, decisions_before = self.decide(pod), self._cache
        self._cache = DecisionCache()
        fresh = self.decide(pod)
        self._cache = decisions_before
        difference = first_difference(cached, fresh)
        if difference is not None:
            raise AssertionError(f"{difference}; it reads more than its `reads` and `sign` declare")
        return cached

    def schedule(self, pod: Pod) -> Decision:
        """Decide, and if a node was found count the pod there from now on: reserve it, and run permit.

        If a reserve or permit plugin refuses, everything is undone and the decision has no node. A pod that a permit
        plugin makes wait is among `services.waiting_pods` until it is allowed, rejected or `expire`d. What follows
        (pre_bind, bind, post_bind) is left out, and so is the queue (pre_enqueue, sort_key); a plan of post_filter is
        not carried out. Call those methods of a plugin directly.
        """
        self.state.set_pending(pod)
        self._attempts[pod.uid] += 1
        decision = decide(self.profile, pod, self.state, attempt=self._attempts[pod.uid], cache=self._cache)
        if decision.node is not None:
            self._place(decision, decision.node)
        return decision

    def _place(self, decision: Decision, node: str) -> None:
        pod = decision.pod
        self.state.assume(pod, node, self.services.clock.now())
        # What plugins allow or reject meanwhile takes effect afterwards, as in the scheduler.
        self._placing += 1
        try:
            result = reserve(self.profile, decision) or permit(self.profile, decision)
            if isinstance(result, Permitted):
                for plugin, seconds in result.waits.items():
                    self.services.waiting_pods.put(pod, node, plugin, seconds, partial(self._ended, decision))
                if not result.waits:
                    self.state.remove_pending(pod.uid)
            else:
                self._undo(decision)
                if isinstance(result, PlacementRefused):
                    decision.withdraw(result.message, result.rejectors)
                else:
                    decision.withdraw(str(result), fault=result)
        finally:
            self._placing -= 1
        self._settle()

    def _ended(self, decision: Decision, refused: PlacementRefused | None) -> None:
        self._ends.append((decision, refused))
        self._settle()

    def _settle(self) -> None:
        while self._ends and not self._placing:
            decision, refused = self._ends.pop(0)
            if refused is None:
                self.state.remove_pending(decision.pod.uid)
            else:
                self._undo(decision)

    def _undo(self, decision: Decision) -> None:
        self._placing += 1
        try:
            for fault in _result(unreserve(self.profile, decision)):
                raise fault
        finally:
            self._placing -= 1
            self.state.forget(decision.pod.uid)


def _result(work: Coroutine[Any, Any, T]) -> T:
    """Of work that awaits nothing but services in memory, which never wait."""
    try:
        work.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    work.close()
    raise RuntimeError("unreserve waits for something that no service in memory waits for; call it in an async test")


def _points(plugins: Sequence[Plugin | tuple[Plugin, int]]) -> dict[Point, list[tuple[Plugin, int]]]:
    weighted = [one if isinstance(one, tuple) else (one, 1) for one in plugins]
    return {
        point: [(plugin, weight) for plugin, weight in weighted if point in points_of(type(plugin))] for point in Point
    }


def a_cluster(
    *nodes: NodeView,
    plugins: Sequence[Plugin | tuple[Plugin, int]] = (),
    services: Services | None = None,
) -> Cluster:
    """A cluster of these nodes (`a_node`) that schedules with these plugins, each perhaps with a weight.

    With `services`, the plugins made with them see this cluster's pods.
    """
    return Cluster(nodes, services or Services(), plugins)
