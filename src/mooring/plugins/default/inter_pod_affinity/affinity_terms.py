"""The affinity and anti-affinity terms of a pod, read once per pod template.

A term selects pods by labels and by namespace: one that the term names (its own pod's, if it names none and has no
namespace selector), or one whose labels the term's namespace selector matches.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import msgspec

from mooring.base.bounded import BoundedCache
from mooring.framework import Objects, Pod, PodsWhere, TermKind
from mooring.objects.core import Affinity, Namespace, PodAffinityTerm
from mooring.objects.pod_affinity import mistakes_in, named_namespaces, terms_of
from mooring.objects.pod_templates import TemplateFamily
from mooring.objects.selectors import Labels

FEW = 16
MOST_CACHED_BYTES = 16 * 1024 * 1024
TERM_BYTES = 1024
"""About what one takes in memory, besides its text."""

NO_PODS = PodsWhere(namespaces=frozenset())
"""What a term without a label selector selects."""

_encode = msgspec.msgpack.Encoder().encode


class IncomingPodTerms(msgspec.Struct, frozen=True):
    """The terms of a pod, as queries for other pods."""

    mistake: str | None = None
    """Why they cannot be read; then there are no others."""
    near: PodsWhere = NO_PODS
    """Required affinity needs a pod that matches all terms at once…"""
    near_keys: tuple[str, ...] = ()
    """…in the same domain of every one of these."""
    away: tuple[tuple[PodsWhere, str], ...] = ()
    """Required anti-affinity: such pods must not be in the same domain."""
    preferred: tuple[tuple[PodsWhere, str, int], ...] = ()
    """For each such pod in the same domain so much is added; anti-affinity weighs below zero."""
    version: int | None = None
    """The version of the namespaces that were looked through, if any were."""

    @property
    def size(self) -> int:
        """How many selectors there are."""
        return len(self.near.selectors) + len(self.near_keys) + len(self.away) + len(self.preferred)


NO_TERMS = IncomingPodTerms()


class IncomingPodTermReader:
    """Reads the terms of pods. All pods of a template have the same."""

    def __init__(self, namespaces: Objects[Namespace]) -> None:
        self._namespaces = namespaces
        self._known: BoundedCache[tuple[str, bytes], IncomingPodTerms] = BoundedCache(MOST_CACHED_BYTES)
        # With this reader, not with the pods or their families: those outlive it.
        self._noted: WeakKeyDictionary[TemplateFamily, IncomingPodTerms] = WeakKeyDictionary()
        self._key = object()
        """Of notes on pods."""

    def of(self, pod: Pod) -> IncomingPodTerms:
        affinity = pod.spec.affinity
        if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
            return NO_TERMS
        family = pod.template.family
        noted = self._noted.get(family) or (pod.notes.get(self._key) if "notes" in pod.__dict__ else None)
        if noted is not None and noted.version in (None, self._namespaces.version):
            return noted
        template = (pod.namespace, _encode((affinity.pod_affinity, affinity.pod_anti_affinity)))
        known = self._known.get(template)
        if known is None or known.version not in (None, self._namespaces.version):
            known = self._read(affinity, pod.namespace)
            self._known.put(template, known, len(template[1]) + TERM_BYTES * known.size)
        if known.size > FEW:  # dry runs read them often, and many terms take long to encode
            pod.notes.keep(self._key, known)
        else:
            self._noted[family] = known
        return known

    def namespace_labels(self, pod: Pod) -> Labels:
        """The labels of the pod's namespace; none if it is not in the cache."""
        namespace = self._namespaces.get(pod.namespace)
        return namespace.labels if namespace is not None else {}

    def _read(self, affinity: Affinity, own: str) -> IncomingPodTerms:
        if mistake := mistakes_in(affinity):
            return IncomingPodTerms(mistake)
        read = {kind: terms_of(affinity, kind) for kind in TermKind}
        near = read[TermKind.REQUIRED_AFFINITY]
        terms = [term for each in read.values() for _, term in each]
        return IncomingPodTerms(
            near=_all_of([self._selected(term, own) for _, term in near]),
            near_keys=tuple(dict.fromkeys(term.topology_key for _, term in near)),
            away=tuple(
                dict.fromkeys(
                    (self._selected(term, own), term.topology_key) for _, term in read[TermKind.REQUIRED_ANTI_AFFINITY]
                )
            ),
            preferred=tuple(
                (self._selected(term, own), term.topology_key, sign * weight)
                for kind, sign in ((TermKind.PREFERRED_AFFINITY, 1), (TermKind.PREFERRED_ANTI_AFFINITY, -1))
                for weight, term in read[kind]
            ),
            version=self._namespaces.version if any(term.namespace_selector is not None for term in terms) else None,
        )

    def _selected(self, term: PodAffinityTerm, own: str) -> PodsWhere:
        """The pods that a term selects."""
        if term.label_selector is None:
            return NO_PODS
        namespaces: frozenset[str] | None = named_namespaces(term, own)
        if (selector := term.namespace_selector) is not None:
            # kube-scheduler resolves the namespaces beforehand and then still matches the selector, against no labels
            # at all: one that matches those (`DoesNotExist`, `NotIn`) selects pods of every namespace.
            if selector.matches({}):
                namespaces = None
            else:
                found = (space.name for space in self._namespaces.all() if selector.matches(space.labels))
                namespaces = frozenset((*term.namespaces, *found))
        return PodsWhere(namespaces, (term.label_selector.requirements(),))


def _all_of(selected: list[PodsWhere]) -> PodsWhere:
    """The pods that every one of these selects."""
    limits = [where.namespaces for where in selected if where.namespaces is not None]
    if not selected:
        return NO_PODS
    return PodsWhere(
        frozenset.intersection(*limits) if limits else None,
        tuple(dict.fromkeys(selector for where in selected for selector in where.selectors)),
    )
