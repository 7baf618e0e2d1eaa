"""The (anti-)affinity terms that pods on nodes carry: which of them select an incoming pod, and where carriers are.

Every placed pod's terms are known from the moment it is placed, read or not. Equal terms of different pods are
one term with a tally of its carriers per domain of the term's topology key. There may be a term for every workload
of the cluster, most with a handful of carriers: a tally costs what it counts, not a column per term.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.base.bounded import BoundedCache
from mooring.framework import BoolArray, IntArray, NodeRows, NodeView, PodsWhere, Term, TermKind
from mooring.objects import Pod
from mooring.objects.core import Affinity
from mooring.objects.placed import PlacedPod
from mooring.objects.pod_affinity import named_namespaces, terms_of, unreadable
from mooring.objects.pod_templates import TemplateFamily
from mooring.objects.selectors import Labels, Requirement
from mooring.state.columns import Column, InternedColumn
from mooring.state.selectors_by_label import SelectorsByLabel
from mooring.state.table import NodeTable
from mooring.state.tallies import MOSTLY_EMPTY
from mooring.state.views import Rows
from mooring.state.what_if_rows import WhatIfRows

_encode = msgspec.msgpack.Encoder().encode

MOST_CACHED_BYTES = 16 * 1024 * 1024
TERM_BYTES = 64
"""What a reference to one takes; the terms themselves live as long as they are carried."""
FEW_TERMS = 16
MOST_TEMPLATES = 1_024
MANY_SELECTING = 64
"""More terms than these are merged before nodes are scored or filtered by them."""

_Identity = tuple[TermKind, int, str, PodsWhere, frozenset[str], tuple[Requirement, ...] | None]


class TermTally:
    """How many existing pods carry a term, per value of a node label.

    Counts pods only: where a node changes, its pods are taken off before and put back after.
    """

    __slots__ = ("_by_domain", "_carried_by", "_column", "_shown", "_total")

    def __init__(self, table: NodeTable, key: str, carried_by: Callable[[PlacedPod], tuple[ExistingTerm, ...]]) -> None:
        """`carried_by`: all terms that a pod carries."""
        self._carried_by = carried_by
        self._column: InternedColumn[str | None] = table.label(key)
        self._column.pins += 1
        self._by_domain: dict[int, int] = {}
        self._shown: Column | None = None
        """The same as a column, once many nodes were read; if it is not mostly empty."""
        self._total = 0

    @property
    def total(self) -> int:
        return self._total

    def close(self) -> None:
        """The count is no longer kept."""
        self._column.pins -= 1

    def count(self, row: int, carriers: int) -> None:
        """So many more carriers on this row."""
        domain = self._column.codes.cells[row]
        if not domain:
            return
        left = self._by_domain.get(domain, 0) + carriers
        if left:
            self._by_domain[domain] = left
        else:
            del self._by_domain[domain]
        self._total += carriers
        if self._shown is not None:
            if domain < len(self._shown.data):
                self._shown.cells[domain] = left
            else:
                self._shown = None

    def at(self, node: NodeView) -> int | None:
        domain = self._column.codes.cells[node.row]
        return self._by_domain.get(domain, 0) if domain else None

    def at_rows(self, nodes: NodeRows) -> IntArray:
        counts: IntArray = self._counts().take(self._codes(nodes))
        moved = self._moved(nodes)
        return counts if moved is None else counts + moved

    def compute(self, nodes: NodeRows, rule: Callable[[IntArray], NDArray[Any]]) -> NDArray[Any]:
        codes = self._codes(nodes)
        if (moved := self._moved(nodes)) is not None:
            return rule(self._counts().take(codes) + moved)
        return self._column.of_codes(rule(self._counts()), nodes, codes)

    def total_at(self, nodes: NodeRows) -> int | IntArray:
        moved = self._moved(nodes)
        return self._total if moved is None else self._total + moved

    def _moved(self, nodes: NodeRows) -> IntArray | None:
        """How a what-if about each of these nodes changes the count in its domain; None: there is none."""
        if not isinstance(nodes, WhatIfRows):
            return None
        moved = nodes.moved(self, self._times_carried, self._carried_by)
        return np.where(self._codes(nodes) != 0, moved, 0)

    def _times_carried(self, pod: PlacedPod) -> int:
        return sum(carried.tally is self for carried in self._carried_by(pod))

    def merged(self) -> MergedTally:
        """The counts of now, to which those of others are added."""
        return MergedTally(self._column, self._carried_by)

    def lacking(self, nodes: NodeRows) -> BoolArray:
        lacking: BoolArray = self._codes(nodes) == 0
        return lacking

    def _codes(self, nodes: NodeRows) -> NDArray[np.intp]:
        rows: Rows = nodes  # type: ignore[assignment]  # `cast` is a call
        return rows.cells(self._column.codes)

    def _counts(self) -> IntArray:
        """The counts, with a cell for every domain there is by now."""
        size = self._column.size
        if self._shown is not None and len(self._shown.data) >= size:
            return self._shown.data
        is_worth_keeping = len(self._by_domain) * MOSTLY_EMPTY >= size
        shown = Column(size + size // 8 + 16 if is_worth_keeping else size, np.int64)
        for domain, carriers in self._by_domain.items():
            shown.cells[domain] = carriers
        self._shown = shown if is_worth_keeping else None
        return shown.data

    def per_domain(self) -> dict[str, int]:
        """The counts by domain, for people and tests."""
        domains = np.unique(self._column.codes.data).tolist()
        return {str(self._column.values[code]): self._by_domain.get(code, 0) for code in domains if code}


class MergedTally(TermTally):
    """The sum of the counts of many terms by the same label, as they are at one decision."""

    __slots__ = ("_of",)

    def __init__(
        self, column: InternedColumn[str | None], carried_by: Callable[[PlacedPod], tuple[ExistingTerm, ...]]
    ) -> None:
        self._column, self._carried_by = column, carried_by
        self._by_domain, self._shown, self._total = {}, None, 0
        self._of: set[TermTally] = set()

    def add(self, other: TermTally) -> None:
        """Count the carriers of this term, too."""
        self._of.add(other)
        for domain, carriers in other._by_domain.items():
            self._by_domain[domain] = self._by_domain.get(domain, 0) + carriers
        self._total += other.total

    def _times_carried(self, pod: PlacedPod) -> int:
        return sum(carried.tally in self._of for carried in self._carried_by(pod))


class ExistingTerm:
    """A term, which pods it selects, and a count of the pods that carry it."""

    __slots__ = (
        "absent_key",
        "carriers",
        "identity",
        "is_everywhere",
        "namespace_selector",
        "namespaces",
        "tally",
        "term",
        "term_and_tally",
        "where",
    )

    def __init__(self, term: Term, identity: _Identity, tally: TermTally) -> None:
        self.term = term
        self.identity = identity
        self.where, self.namespaces = identity[3:5]
        self.namespace_selector = term.term.namespace_selector
        self.is_everywhere = identity[5] == ()
        """Its namespace selector is empty: it selects pods of every namespace."""
        self.absent_key = _absent_key(self.where)
        self.tally = tally
        self.term_and_tally = term, tally
        self.carriers = 0
        """Also those on nodes that lack the topology key."""

    def selects(self, pod: Pod, namespace_labels: Labels) -> bool:
        if (
            not self.is_everywhere
            and pod.namespace not in self.namespaces
            and not (self.namespace_selector is not None and self.namespace_selector.matches(namespace_labels))
        ):
            return False
        return self.where.matches(pod.namespace, pod.labels)

    def selects_at_once(self, namespace: str, labels: Labels) -> bool:
        """Whether the parts that need no evaluation are enough to select such a pod."""
        return (
            self.absent_key is not None
            and self.absent_key not in labels
            and (self.is_everywhere or namespace in self.namespaces)
        )


class AffinityTerms:
    """All terms of placed pods."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._by_template: BoundedCache[tuple[str, bytes], tuple[ExistingTerm, ...]] = BoundedCache(MOST_CACHED_BYTES)
        self._of_large: dict[str, tuple[Affinity, tuple[ExistingTerm, ...]]] = {}
        """By uid, the terms of pods with many: to find them by the text would take as long as to count them."""
        self.unused = 0
        """How many terms no pod carries any more."""
        self._known: dict[_Identity, ExistingTerm] = {}
        self._index: dict[TermKind, SelectorsByLabel[ExistingTerm]] = {}
        """The terms of each kind, as far as there are any."""
        self._selecting: dict[tuple[TemplateFamily, TermKind], tuple[Labels, list[tuple[Term, TermTally]]]] = {}
        """What was found for a family, and for which labels of its namespace; until the terms are others."""

    def __iter__(self) -> Iterator[ExistingTerm]:
        return iter(self._known.values())

    def count(self, pod: PlacedPod, row: int, sign: int) -> None:
        """A pod with its terms came onto a row (1) or left it (-1)."""
        for carried in self._carried_by(pod):
            before = carried.carriers
            carried.carriers = after = before + sign
            if not before or not after:
                self.unused += (not after) - (not before)
                self._selecting.clear()
            carried.tally.count(row, sign)

    def forget(self, uid: str) -> None:
        """The pod is deleted, and will not be counted again."""
        self._of_large.pop(uid, None)

    def selecting(self, pod: Pod, kind: TermKind, namespace_labels: Labels) -> list[tuple[Term, TermTally]]:
        """The terms of this kind that select the pod, each with the count of its carriers.

        `namespace_labels` are those of the pod's namespace: some terms select by them. Many terms of the same weight
        and topology key are one, with the sum of their counts.
        """
        index = self._index.get(kind)
        if index is None:
            return []
        same = (pod.template.family, kind)
        known = self._selecting.get(same)
        if known is not None and known[0] == namespace_labels:
            found = known[1]
        else:
            namespace, labels = pod.namespace, pod.labels
            found = [
                carried.term_and_tally
                for carried in index.candidates(namespace, labels)
                if carried.carriers
                and (carried.selects_at_once(namespace, labels) or carried.selects(pod, namespace_labels))
            ]
            if len(found) <= MANY_SELECTING:
                if len(self._selecting) >= MOST_TEMPLATES:
                    self._selecting.clear()
                self._selecting[same] = namespace_labels, found
        return found if len(found) <= MANY_SELECTING else _merged(found)

    def drop_unused(self) -> None:
        """Drop terms that no pod carries any more."""
        for identity, carried in list(self._known.items()):
            if not carried.carriers:
                del self._known[identity]
                self._index[carried.term.kind].remove(carried.where, carried)
                carried.tally.close()
        self.unused = 0
        self._by_template.keep(_all_carried)
        self._of_large = {uid: large for uid, large in self._of_large.items() if _all_carried(large[1])}

    def _carried_by(self, pod: PlacedPod) -> tuple[ExistingTerm, ...]:
        affinity = pod.affinity
        if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
            return ()
        if (large := self._of_large.get(pod.uid)) is not None and large[0] is affinity:
            return large[1]
        template = (pod.namespace, _encode((affinity.pod_affinity, affinity.pod_anti_affinity)))
        terms = self._by_template.get(template)
        if terms is None:
            terms = tuple(self._intern(term, pod.namespace) for term in _terms(affinity))
            self._by_template.put(template, terms, len(template[1]) + TERM_BYTES * len(terms))
        if len(terms) > FEW_TERMS:
            self._of_large[pod.uid] = (affinity, terms)
        return terms

    def _intern(self, term: Term, namespace: str) -> ExistingTerm:
        identity = _identity(term, namespace)
        carried = self._known.get(identity)
        if carried is None:
            tally = TermTally(self._table, term.term.topology_key, self._carried_by)
            carried = self._known[identity] = ExistingTerm(term, identity, tally)
            self.unused += 1
            self._index.setdefault(term.kind, SelectorsByLabel()).add(carried.where, carried)
        return carried


def _merged(found: list[tuple[Term, TermTally]]) -> list[tuple[Term, TermTally]]:
    """A pod with thousands of terms must not cost every other pod as many columns."""
    sums: dict[tuple[int, str], tuple[Term, MergedTally]] = {}
    for term, tally in found:
        if not tally.total:
            continue
        same = (term.weight, term.term.topology_key)
        if (known := sums.get(same)) is None:
            known = sums[same] = term, tally.merged()
        known[1].add(tally)
    return list(sums.values())


def _absent_key(where: PodsWhere) -> str | None:
    """The label without which a pod is selected, where the selector requires nothing else."""
    if len(where.selectors) != 1 or len(where.selectors[0]) != 1:
        return None
    key, operator, _ = where.selectors[0][0]
    return key if operator in ("DoesNotExist", "NotIn") else None


def _all_carried(terms: tuple[ExistingTerm, ...]) -> bool:
    return all(carried.carriers for carried in terms)


def _terms(affinity: Affinity) -> Iterator[Term]:
    """The terms that can select a pod. One without a selector selects no pod, and where one of a kind is invalid,
    kube-scheduler has none of that kind."""
    for kind in TermKind:
        terms = terms_of(affinity, kind)
        if terms and not unreadable(terms):
            for weight, term in terms:
                if term.label_selector is not None:
                    yield Term(kind, weight, term)


def _identity(term: Term, namespace: str) -> _Identity:
    """All that matters of a term; terms that are equal in it are one."""
    own = term.term
    assert own.label_selector is not None
    namespaces = named_namespaces(own, namespace)
    by_labels = own.namespace_selector.requirements() if own.namespace_selector is not None else None
    # A namespace selector may match namespaces that do not exist yet: indexed under any namespace.
    where = PodsWhere(namespaces if by_labels is None else None, (own.label_selector.requirements(),))
    return term.kind, term.weight, own.topology_key, where, namespaces, by_labels
