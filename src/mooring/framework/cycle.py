"""What a plugin may read during one scheduling attempt of one pod, beyond the pod and the node."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
from numpy.typing import NDArray

from mooring.framework.nodes import NodeRows, NodeView
from mooring.framework.verdicts import BoolArray, IntArray
from mooring.objects.core import NodeSelector, PodAffinityTerm, Toleration
from mooring.objects.placement_rules import Tolerations
from mooring.objects.pod_affinity import TermKind
from mooring.objects.selectors import Labels, LabelSelector, Requirement, selects

if TYPE_CHECKING:
    from mooring.framework.plugin import Plugin
    from mooring.framework.services import Published

T = TypeVar("T")


class PodsWhere(msgspec.Struct, frozen=True, cache_hash=True):
    """Which pods: in these namespaces (None: in all), matched by every one of these selectors.

    Comparable and hashable, because it is the key of a standing count: the hash is computed once.
    """

    namespaces: frozenset[str] | None = None
    selectors: tuple[tuple[Requirement, ...], ...] = ()
    terminating: bool = True
    """Whether pods that are being deleted count."""
    none: bool = False
    """Count none of them."""
    what_if_counts_all: bool = False
    """In a what-if, added (nominated) and evicted pods move a tally if namespace and selectors match, whether they
    count or not: as in kube-scheduler's topology spread."""

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
        if self.none or (is_terminating and not self.terminating):
            return False
        if not self.selectors:
            return self.namespaces is None or namespace in self.namespaces
        return self.names(namespace, labels)

    def some_label(self) -> list[tuple[str, str]] | None:
        """Labels of which a matching pod has exactly one: those of the first `In`. None: no requirement names any."""
        for selector in self.selectors:
            for key, operator, values in selector:
                if operator == "In":
                    return [(key, value) for value in dict.fromkeys(values)]
        return None

    def names(self, namespace: str, labels: Labels) -> bool:
        """Whether namespace and selectors match; `matches` is whether such a pod counts."""
        if self.namespaces is not None and namespace not in self.namespaces:
            return False
        for selector in self.selectors:  # noqa: SIM110  # runs for every pod that is added, and `all` takes twice as long
            if not selects(selector, labels):
                return False
        return True


class NodesWhere(msgspec.Struct, frozen=True, dict=True):
    """Which nodes count into a tally: those with all these keys, admitted by node affinity and taint policy.

    A pod may have thousands of constraints over the same nodes, each with this as a key: the hash is computed once.
    """

    keys: tuple[str, ...] = ()
    node_selector: tuple[tuple[str, str], ...] = ()
    affinity: NodeSelector | None = None
    tolerations: tuple[Toleration, ...] | None = None
    """None ignores taints; otherwise nodes with an untolerated NoSchedule or NoExecute taint are left out."""
    compare_numbers: bool = False
    """Whether tolerations compare numbers (the gate TaintTolerationComparisonOperators)."""

    @cached_property
    def _hash(self) -> int:
        return hash(msgspec.msgpack.encode(self))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def tolerated(self) -> Tolerations | None:
        """`tolerations`, read once."""
        return None if self.tolerations is None else Tolerations(self.tolerations)


ALL_NODES = NodesWhere()


class Term(msgspec.Struct, frozen=True):
    """A pod (anti-)affinity term that an existing pod carries."""

    kind: TermKind
    weight: int
    term: PodAffinityTerm


class DomainCounts(Protocol):
    """Pods counted per value of a node label (a domain); `state` keeps them up to date. Equal by identity."""

    @property
    def total(self) -> int:
        """Those on nodes that have the label."""
        ...

    def at(self, node: NodeView) -> int | None:
        """The count in the node's domain; None if the node lacks the key."""
        ...

    def at_rows(self, nodes: NodeRows) -> IntArray:
        """As `at`, for many nodes; 0 where the key is lacking."""
        ...

    def compute(self, nodes: NodeRows, rule: Callable[[IntArray], NDArray[Any]]) -> NDArray[Any]:
        """A rule of the count, for many nodes; it runs once per domain. A node without the key counts 0."""
        ...

    def total_at(self, nodes: NodeRows) -> int | IntArray:
        """As `total`; in a what-if about these nodes, one for each."""
        ...

    def lacking(self, nodes: NodeRows) -> BoolArray:
        """Where the node lacks the key."""
        ...


class Tally(DomainCounts, Protocol):
    """A standing count of pods (a `PodsWhere`) over nodes (a `NodesWhere`)."""

    @property
    def lowest(self) -> int:
        """The smallest count over the domains."""
        ...

    def lowest_at(self, nodes: NodeRows) -> int | IntArray:
        """As `lowest`; in a what-if about these nodes, one for each."""
        ...

    @property
    def domains(self) -> int:
        """How many domains there are."""
        ...

    @property
    def without_key(self) -> int:
        """The matching pods on nodes that count but are in no domain, because they lack the key."""
        ...

    def on(self, node: NodeView) -> int:
        """The matching pods on this node itself, whether or not it counts."""
        ...

    def on_rows(self, nodes: NodeRows) -> IntArray:
        """As `on`, for many nodes."""
        ...

    def spans(self, nodes: NodeRows) -> bool:
        """Whether every one of these nodes has the key: then nothing is `lacking`."""
        ...

    def domains_among(self, nodes: NodeRows, where: BoolArray | None = None) -> int:
        """How many domains these nodes are in, or those of them where the mask is true."""
        ...


class Image(Protocol):
    """An image that some nodes have, by one of its names."""

    @property
    def size_bytes(self) -> int: ...
    @property
    def node_count(self) -> int:
        """How many nodes have it."""
        ...

    def on(self, node: NodeView) -> bool: ...
    def on_rows(self, nodes: NodeRows) -> BoolArray: ...


class Cycle(Protocol):
    """One attempt to place one pod."""

    @property
    def attempt(self) -> int:
        """1 for the pod's first attempt."""
        ...

    @property
    def is_trial(self) -> bool:
        """Whether the pod is only tried on its node, with other pods of its group: reserve and permit of the trial are
        undone, and called again if the group fits."""
        ...

    @property
    def nodes(self) -> NodeRows:
        """Every node there is, feasible or not. The same object as long as no node comes or goes."""
        ...

    def filter_state(self, plugin: Plugin) -> Any:
        """What the plugin's pre_filter returned or set. If there is nothing: StateMissing, as upstream's Error."""
        ...

    def set_filter_state(self, plugin: Plugin, state: Any) -> None:
        """From pre_filter: what `filter_state` returns later, also if pre_filter skips or refuses."""
        ...

    def score_state(self, plugin: Plugin) -> Any:
        """What the plugin's pre_score returned. If it did not run or skipped: StateMissing, as upstream's Error."""
        ...

    def tally(self, pods: PodsWhere, key: str, on: NodesWhere = ALL_NODES) -> Tally:
        """The standing count of these pods per value of the label. Call it in pre_filter or pre_score only."""
        ...

    def total(self, pods: PodsWhere, resource: str) -> int:
        """The standing sum of what these placed pods request of the resource ("pods" counts them)."""
        ...

    def existing_affinity_terms(self, kind: TermKind, namespace_labels: Labels) -> Sequence[tuple[Term, DomainCounts]]:
        """The terms of existing pods that select this pod, each with counts of the pods that carry it.

        `namespace_labels` are those of this pod's namespace: some terms select by them.
        """
        ...

    def claim_uses(self, claims: Collection[str]) -> int:
        """How many of these PersistentVolumeClaims of the pod's namespace are used by pods on nodes.

        In a what-if, less one for each volume of an evicted pod that has a claim of that name, plus one for each of an
        added pod: as kube-scheduler counts.
        """
        ...

    def image(self, name: str) -> Image | None:
        """The image that nodes list under this name; None if no node does."""
        ...

    def add_to_binding(
        self,
        plugin: Plugin,
        *,
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """From reserve, permit or pre_bind: set these on the pod in the write that binds it, whichever plugin does.

        If the attempt fails they are dropped. A malformed key or value, and a value other than another plugin has
        given the same key, raise `Fault` and change nothing. An extender that binds the pod cannot carry them: the
        attempt then fails with a message.
        """
        ...

    def value(self, published: Published[T]) -> T | None:
        """The latest outside data (None before the first); the decision records which version it used."""
        ...
