"""Terms of pod affinity: by kind, their namespaces, and kube-scheduler's words for what cannot be read."""

from __future__ import annotations

import pytest

from mooring.objects.core import Affinity, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from mooring.objects.names import QUALIFIED_SENTENCE, SUBDOMAIN_SENTENCE, VALUE_SENTENCE
from mooring.objects.pod_affinity import TermKind, mistakes_in, named_namespaces, terms_of
from mooring.objects.selectors import LabelSelector, LabelSelectorRequirement, mistake_in


def expression(operator: str, *values: str, key: str = "app") -> LabelSelector:
    return LabelSelector(
        match_expressions=(LabelSelectorRequirement(key=key, operator=operator, values=tuple(values)),)
    )


EMPTY_SET = "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"

MISTAKES = {
    "no selector": (None, None),
    "an empty selector": (LabelSelector(), None),
    "labels and expressions": (LabelSelector(match_labels={"example.com/app": "web"}), None),
    "an unknown operator": (expression("Near"), '"Near" is not a valid label selector operator'),
    "an operator of node selectors": (expression("Gt", "1"), '"Gt" is not a valid label selector operator'),
    "In without values": (expression("In"), EMPTY_SET),
    "NotIn without values": (expression("NotIn"), EMPTY_SET),
    "Exists with values": (
        expression("Exists", "a", "b"),
        'values: Invalid value: ["a","b"]: values set must be empty for exists and does not exist',
    ),
    "two things wrong with one requirement": (
        expression("DoesNotExist", 'a"c'),
        '[values: Invalid value: ["a\\"c"]: values set must be empty for exists and does not exist, '
        f'values[0][app]: Invalid value: "a\\"c": {VALUE_SENTENCE}]',
    ),
    "a value that no label can have": (
        LabelSelector(match_labels={"app": "-"}),
        f'values[0][app]: Invalid value: "-": {VALUE_SENTENCE}',
    ),
    "a key that no label can have": (
        expression("In", "b", key="A_/c"),
        f'key: Invalid value: "A_/c": prefix part {SUBDOMAIN_SENTENCE}',
    ),
    "two sentences about one key": (
        LabelSelector(match_labels={"": "c"}),
        f'key: Invalid value: "": name part must be non-empty; {QUALIFIED_SENTENCE}',
    ),
    "too long a key and value": (
        expression("In", "x" * 64, key="y" * 64),
        f'[key: Invalid value: "{"y" * 64}": name part must be no more than 63 bytes, '
        f'values[0][{"y" * 64}]: Invalid value: "{"x" * 64}": must be no more than 63 bytes]',
    ),
}


@pytest.mark.parametrize(("selector", "mistake"), MISTAKES.values(), ids=MISTAKES.keys())
def test_selectors_that_cannot_be_read(selector, mistake):
    assert mistake_in(selector) == mistake


def a_term(selector: LabelSelector | None = None, *, namespace_selector: LabelSelector | None = None):
    return PodAffinityTerm(label_selector=selector, namespace_selector=namespace_selector, topology_key="zone")


def test_the_mistakes_of_all_kinds_are_one_text_each_kind_with_its_first():
    affinity = Affinity(
        pod_affinity=PodAffinity(
            required=(a_term(), a_term(expression("Near")), a_term(expression("Far"))),
            preferred=(WeightedPodAffinityTerm(weight=1, pod_affinity_term=a_term(expression("In"))),),
        ),
        pod_anti_affinity=PodAffinity(required=(a_term(namespace_selector=expression("Beside")),)),
    )
    assert mistakes_in(affinity) == (
        '[requiredAffinityTerms: "Near" is not a valid label selector operator, '
        'requiredAntiAffinityTerms: "Beside" is not a valid label selector operator, '
        f"preferredAffinityTerms: {EMPTY_SET}]"
    )
    assert mistakes_in(Affinity(pod_affinity=affinity.pod_anti_affinity)) == (
        'requiredAffinityTerms: "Beside" is not a valid label selector operator'
    )
    assert mistakes_in(Affinity()) is None
    assert mistakes_in(None) is None


def test_terms_by_kind():
    near, away, liked, disliked = (PodAffinityTerm(topology_key=key) for key in "abcd")
    affinity = Affinity(
        pod_affinity=PodAffinity(
            required=(near,), preferred=(WeightedPodAffinityTerm(weight=3, pod_affinity_term=liked),)
        ),
        pod_anti_affinity=PodAffinity(
            required=(away,), preferred=(WeightedPodAffinityTerm(weight=5, pod_affinity_term=disliked),)
        ),
    )
    assert {kind: terms_of(affinity, kind) for kind in TermKind} == {
        TermKind.REQUIRED_AFFINITY: [(0, near)],
        TermKind.REQUIRED_ANTI_AFFINITY: [(0, away)],
        TermKind.PREFERRED_AFFINITY: [(3, liked)],
        TermKind.PREFERRED_ANTI_AFFINITY: [(5, disliked)],
    }
    assert not any(terms_of(nothing, kind) for kind in TermKind for nothing in (None, Affinity()))


NAMESPACES = {
    "its pod's own, if it names none": (PodAffinityTerm(), {"own"}),
    "those it names": (PodAffinityTerm(namespaces=("shop", "lab")), {"shop", "lab"}),
    "none, if it only selects them": (PodAffinityTerm(namespace_selector=LabelSelector()), set()),
}


@pytest.mark.parametrize(("term", "named"), NAMESPACES.values(), ids=NAMESPACES.keys())
def test_the_namespaces_that_a_term_names(term, named):
    assert named_namespaces(term, "own") == named
