"""Which nodes a pod's spec admits, and which taints its tolerations cover."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.objects.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Taint, Toleration
from mooring.objects.placement_rules import (
    Tolerations,
    admits,
    first_untolerated,
    selector_matches,
    term_matches,
    tolerates,
)
from mooring.testing import a_pod, a_taint, a_toleration, requires


def wants(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator=operator, values=tuple(values))


DISK = {"disk": "ssd"}
TERMS = {
    "an empty term matches nothing": (NodeSelectorTerm(), False),
    "an expression that holds": (NodeSelectorTerm(match_expressions=(wants("disk", "In", "ssd"),)), True),
    "one of two expressions fails": (
        NodeSelectorTerm(match_expressions=(wants("disk", "Exists"), wants("gpu", "Exists"))),
        False,
    ),
    "the node's name": (NodeSelectorTerm(match_fields=(wants("metadata.name", "In", "node-1"),)), True),
    "another node's name": (NodeSelectorTerm(match_fields=(wants("metadata.name", "In", "node-2"),)), False),
    "any name but another's": (NodeSelectorTerm(match_fields=(wants("metadata.name", "NotIn", "node-2"),)), True),
    "fields know In and NotIn alone": (NodeSelectorTerm(match_fields=(wants("metadata.name", "Exists"),)), False),
    "name and label": (
        NodeSelectorTerm(
            match_expressions=(wants("disk", "In", "hdd"),), match_fields=(wants("metadata.name", "In", "node-1"),)
        ),
        False,
    ),
}


@pytest.mark.parametrize(("term", "holds"), TERMS.values(), ids=TERMS.keys())
def test_a_term_holds_when_all_of_it_holds(term, holds):
    assert term_matches(term, "node-1", DISK) is holds


def test_any_term_of_a_selector_will_do_and_none_is_none():
    fits, fails = (NodeSelectorTerm(match_expressions=(wants("disk", "In", disk),)) for disk in ("ssd", "hdd"))
    assert selector_matches(NodeSelector(node_selector_terms=(fails, fits)), "node-1", DISK)
    assert not selector_matches(NodeSelector(node_selector_terms=(fails,)), "node-1", DISK)
    assert not selector_matches(NodeSelector(), "node-1", DISK)


def test_a_pod_without_node_affinity_is_admitted_anywhere():
    assert admits(a_pod(), "node-1", {})


def test_node_selector_and_affinity_must_both_hold():
    pod = a_pod(node_selector={"zone": "a"}, affinity=requires([("disk", "In", ["ssd"])]))
    assert admits(pod, "node-1", {"zone": "a", "disk": "ssd"})
    assert not admits(pod, "node-1", {"zone": "a"})
    assert not admits(pod, "node-1", {"disk": "ssd"})


TOLERATIONS = {
    "the same key, value and effect": (Toleration(key="k", value="v", effect="NoSchedule"), True),
    "Equal is the default": (Toleration(key="k", operator="Equal", value="v"), True),
    "another value": (Toleration(key="k", value="w"), False),
    "another key": (Toleration(key="l", value="v"), False),
    "another effect": (Toleration(key="k", value="v", effect="NoExecute"), False),
    "any effect": (Toleration(key="k", value="v"), True),
    "any value": (Toleration(key="k", operator="Exists"), True),
    "everything": (Toleration(operator="Exists"), True),
    "no key is every key (the API server does not admit it)": (Toleration(value="v"), True),
    "an unknown operator covers nothing": (Toleration(key="k", operator="Like", value="v"), False),
}


@pytest.mark.parametrize(("toleration", "covers"), TOLERATIONS.values(), ids=TOLERATIONS.keys())
def test_a_toleration_covers_a_taint(toleration, covers):
    assert tolerates(toleration, Taint(key="k", value="v", effect="NoSchedule")) is covers


COMPARISONS = {
    "a greater taint": ("Gt", "5", "10", True),
    "a smaller taint for Gt": ("Gt", "10", "5", False),
    "a smaller taint": ("Lt", "10", "5", True),
    "the same number": ("Lt", "5", "5", False),
    "a bound of thousands of digits": ("Gt", "9" * 5000, "10", False),
    "a taint that is no number": ("Gt", "5", "many", False),
}


@pytest.mark.parametrize(("operator", "bound", "value", "covers"), COMPARISONS.values(), ids=COMPARISONS.keys())
def test_numbers_are_compared_where_the_gate_is_on(operator, bound, value, covers):
    toleration, taint = Toleration(key="k", operator=operator, value=bound), Taint(key="k", value=value, effect="x")
    assert tolerates(toleration, taint, compare_numbers=True) is covers
    assert not tolerates(toleration, taint)


def test_the_first_taint_that_nothing_tolerates_is_named():
    soft, first, second = a_taint("soft:PreferNoSchedule"), a_taint("first:NoSchedule"), a_taint("second:NoExecute")
    assert first_untolerated([soft, first, second], []) == first
    assert first_untolerated([soft, first, second], [a_toleration("first")]) == second
    assert first_untolerated([soft, first, second], [a_toleration("first"), a_toleration("second")]) is None
    assert first_untolerated([soft, first], [], ["PreferNoSchedule"]) == soft


words = st.sampled_from(["", "k", "l", "5", "10", "many"])
effects = st.sampled_from(["", "NoSchedule", "NoExecute", "PreferNoSchedule"])
some_tolerations = st.builds(
    Toleration,
    key=words,
    operator=st.sampled_from(["", "Equal", "Exists", "Gt", "Lt", "Like"]),
    value=words,
    effect=effects,
)


@given(st.lists(some_tolerations, max_size=6), st.builds(Taint, key=words, value=words, effect=effects), st.booleans())
def test_many_tolerations_cover_what_one_of_them_covers(tolerations, taint, compare_numbers):
    covers = any(tolerates(each, taint, compare_numbers=compare_numbers) for each in tolerations)
    assert Tolerations(tolerations).cover(taint, compare_numbers=compare_numbers) is covers
    first = first_untolerated([taint], tolerations, compare_numbers=compare_numbers)
    assert Tolerations(tolerations).first_uncovered([taint], compare_numbers=compare_numbers) == first
