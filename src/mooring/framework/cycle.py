"""What a plugin may ask during one attempt to place one pod, beyond the pod and the node in front of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from mooring.framework.nodes import NodeRows, NodeView
from mooring.framework.verdicts import BoolArray, IntArray, Refusal
from mooring.objects.core import NodeSelector, Pod, PodAffinityTerm, Toleration
from mooring.objects.placed import PlacedPod
from mooring.objects.selectors import Labels, LabelSelector, Requirement, selects

if TYPE_CHECKING:
    from mooring.framework.plugin import Plugin
    from mooring.framework.services import Published

T = TypeVar("T")


class PodsWhere(msgspec.Struct, frozen=True):
    """Which pods: in these namespaces (None: in all), matched by every one of these selectors.

    Comparable and hashable, because it is the key of a standing count.
    """

    namespaces: frozenset[str] | None = None
    selectors: tuple[tuple[Requirement, ...], ...] = ()
    terminating: bool = True
    """Whether pods that are being deleted count."""

    @classmethod
    def labelled(
        cls, labels: Labels, *, namespaces: Collection[str] | None = None, terminating: bool = True
    ) -> PodsWhere:
        """Pods that carry all these labels."""
        parts: tuple[Requirement, ...] = tuple((key, "In", (value,)) for key, value in sorted(labels.items()))
        return cls(None if namespaces is None else frozenset(namespaces), (parts,) if parts else (), terminating)

    @classmethod
    def selected(
        cls, *selectors: LabelSelector, namespaces: Collection[str] | None = None, terminating: bool = True
    ) -> PodsWhere:
        """Pods that match every one of the selectors."""
        return cls(
            None if namespaces is None else frozenset(namespaces),
            tuple(selector.requirements() for selector in selectors),
            terminating,
        )

    def matches(self, namespace: str, labels: Labels, *, is_terminating: bool = False) -> bool:
        if is_terminating and not self.terminating:
            return False
        if self.namespaces is not None and namespace not in self.namespaces:
            return False
        return all(selects(selector, labels) for selector in self.selectors)


class NodesWhere(msgspec.Struct, frozen=True):
    """Which nodes count into a tally: those with all these keys, admitted by node affinity and taint policy."""

    keys: tuple[str, ...] = ()
    node_selector: tuple[tuple[str, str], ...] = ()
    affinity: NodeSelector | None = None
    tolerations: tuple[Toleration, ...] | None = None
    """None ignores taints; otherwise nodes with an untolerated NoSchedule or NoExecute taint are left out."""

    def __hash__(self) -> int:
        return hash(msgspec.msgpack.encode(self))


ALL_NODES = NodesWhere()


class TermKind(Enum):
    """The four kinds of terms by which existing pods select an incoming one."""

    REQUIRED_AFFINITY = "required affinity"
    PREFERRED_AFFINITY = "preferred affinity"
    REQUIRED_ANTI_AFFINITY = "required anti-affinity"
    PREFERRED_ANTI_AFFINITY = "preferred anti-affinity"


class Term(msgspec.Struct, frozen=True):
    """A pod (anti-)affinity term that an existing pod carries."""

    kind: TermKind
    weight: int
    term: PodAffinityTerm


class Tally(Protocol):
    """A standing count of matching pods per topology domain; `state` keeps it up to date. Equal by identity."""

    @property
    def lowest(self) -> int:
        """The smallest count over the domains."""
        ...

    @property
    def domains(self) -> int:
        """How many domains there are."""
        ...

    @property
    def total(self) -> int: ...
    def at(self, node: NodeView) -> int | None:
        """The count in the node's domain; None if the node lacks the key."""
        ...

    def at_rows(self, nodes: NodeRows) -> IntArray:
        """As `at`, for many nodes; 0 where the key is lacking."""
        ...

    def lacking(self, nodes: NodeRows) -> BoolArray:
        """Where the node lacks the key."""
        ...


class Cycle(Protocol):
    """One attempt to place one pod."""

    @property
    def attempt(self) -> int:
        """1 for the pod's first attempt."""
        ...

    @property
    def nodes(self) -> NodeRows:
        """Every node there is, feasible or not."""
        ...

    def filter_state(self, plugin: Plugin) -> Any:
        """What the plugin's pre_filter returned. If it did not run or skipped: StateMissing, as upstream's Error."""
        ...

    def score_state(self, plugin: Plugin) -> Any:
        """What the plugin's pre_score returned. If it did not run or skipped: StateMissing, as upstream's Error."""
        ...

    def tally(self, pods: PodsWhere, key: str, on: NodesWhere = ALL_NODES) -> Tally:
        """The standing count of these pods per value of the label. Ask in pre_filter or pre_score only."""
        ...

    def total(self, pods: PodsWhere, resource: str) -> int:
        """The standing sum of what these placed pods request of the resource ("pods" counts them)."""
        ...

    def carriers(self, kind: TermKind) -> Sequence[tuple[Term, Tally]]:
        """The terms of existing pods that select this pod, each with where their carriers are."""
        ...

    def value(self, published: Published[T]) -> T | None:
        """The latest outside data (None before the first); the decision records which version it used."""
        ...


class Evidence(Protocol):
    """What refused the pod, for post_filter."""

    @property
    def rejections(self) -> Mapping[str, tuple[str, Refusal]]:
        """Node name → the plugin that rejected it and its rejection."""
        ...

    def curable(self) -> Iterable[NodeView]:
        """The nodes where evicting pods could help."""
        ...


class WhatIf(Protocol):
    """The same state, changed and undone: for post_filter."""

    def without(self, node: NodeView, pods: Iterable[PlacedPod]) -> AbstractContextManager[None]:
        """Inside the `with`, these pods are not on the node."""
        ...

    def fits(self, pod: Pod, node: NodeView) -> bool:
        """Whether every filter would accept the node as things stand now (inside a `without`: without them)."""
        ...
