"""The (anti-)affinity terms that pods on nodes carry: which of them select an incoming pod, and where carriers are.

Every placed pod's terms are known from the moment it is placed, asked for or not. Equal terms of different pods are
one term with a tally of its carriers per domain of the term's topology key.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from mooring.framework import ALL_NODES, PodsWhere, Term, TermKind
from mooring.objects import Pod
from mooring.objects.core import Affinity, PodAffinity, PodAffinityTerm
from mooring.objects.placed import PlacedPod
from mooring.objects.selectors import Labels, LabelSelector
from mooring.state.selector_index import SelectorIndex
from mooring.state.table import NodeTable
from mooring.state.tallies import StandingTally

_encode = msgspec.msgpack.Encoder().encode


class CarriedTerm:
    """A term, whom it selects, and a count of its carriers."""

    __slots__ = ("carriers", "namespace_selector", "namespaces", "tally", "term", "where")

    def __init__(self, term: Term, carrier_namespace: str, tally: StandingTally) -> None:
        own = term.term
        self.term = term
        self.tally = tally
        self.carriers = 0
        self.namespaces = frozenset(own.namespaces)
        self.namespace_selector = own.namespace_selector
        if not own.namespaces and own.namespace_selector is None:
            self.namespaces = frozenset((carrier_namespace,))
        selector = own.label_selector or LabelSelector()
        # A namespace selector may match namespaces that nobody has heard of yet: filed under any namespace.
        self.where = PodsWhere(self.namespaces if self.namespace_selector is None else None, (selector.requirements(),))

    def selects(self, pod: Pod, namespace_labels: Labels) -> bool:
        if pod.namespace not in self.namespaces and not (
            self.namespace_selector is not None and self.namespace_selector.matches(namespace_labels)
        ):
            return False
        return self.where.matches(pod.namespace, pod.labels)


class CarriedTerms:
    """All terms of placed pods."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._by_pod_template: dict[tuple[str, bytes], tuple[CarriedTerm, ...]] = {}
        self._known: dict[tuple[str, bytes], CarriedTerm] = {}
        self._index: dict[TermKind, SelectorIndex[CarriedTerm]] = {kind: SelectorIndex() for kind in TermKind}

    def __iter__(self) -> Iterator[StandingTally]:
        return (carried.tally for carried in self._known.values())

    def count(self, pod: PlacedPod, row: int, sign: int) -> None:
        """A pod with its terms came onto a row (1) or left it (-1)."""
        for carried in self._carried_by(pod):
            carried.carriers += sign
            carried.tally.count(row, sign)

    def selecting(self, pod: Pod, kind: TermKind, namespace_labels: Labels) -> list[tuple[Term, StandingTally]]:
        """The terms of this kind that select the pod, each with the count of its carriers."""
        return [
            (carried.term, carried.tally)
            for carried in self._index[kind].candidates(pod.namespace, pod.labels)
            if carried.carriers and carried.selects(pod, namespace_labels)
        ]

    def drop_unused(self) -> None:
        """Forget terms that no pod carries any more."""
        for key, carried in list(self._known.items()):
            if not carried.carriers:
                del self._known[key]
                self._index[carried.term.kind].remove(carried.where, carried)
                carried.tally.close()
        self._by_pod_template = {
            key: terms
            for key, terms in self._by_pod_template.items()
            if terms and all(carried.carriers for carried in terms)
        }

    def _carried_by(self, pod: PlacedPod) -> tuple[CarriedTerm, ...]:
        affinity = pod.affinity
        if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
            return ()
        template = (pod.namespace, _encode(affinity))
        terms = self._by_pod_template.get(template)
        if terms is None:
            terms = tuple(self._intern(term, pod.namespace) for term in _terms(affinity))
            self._by_pod_template[template] = terms
        return terms

    def _intern(self, term: Term, namespace: str) -> CarriedTerm:
        key = (namespace, _encode(term))
        carried = self._known.get(key)
        if carried is None:
            tally = StandingTally(self._table, term.term.topology_key, ALL_NODES)
            carried = self._known[key] = CarriedTerm(term, namespace, tally)
            self._index[term.kind].add(carried.where, carried)
        return carried


def _terms(affinity: Affinity) -> Iterator[Term]:
    """The terms that can select a pod; one without a selector selects nobody."""
    for wanted, required, preferred in (
        (affinity.pod_affinity, TermKind.REQUIRED_AFFINITY, TermKind.PREFERRED_AFFINITY),
        (affinity.pod_anti_affinity, TermKind.REQUIRED_ANTI_AFFINITY, TermKind.PREFERRED_ANTI_AFFINITY),
    ):
        for kind, weight, term in _of(wanted or PodAffinity(), required, preferred):
            if term.label_selector is not None:
                yield Term(kind, weight, term)


def _of(
    wanted: PodAffinity, required: TermKind, preferred: TermKind
) -> Iterator[tuple[TermKind, int, PodAffinityTerm]]:
    for term in wanted.required:
        yield required, 0, term
    for weighted in wanted.preferred:
        yield preferred, weighted.weight, weighted.pod_affinity_term
