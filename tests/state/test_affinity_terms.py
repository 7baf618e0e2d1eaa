"""Terms that placed pods carry, by example; `test_any_history` has the general rule."""

from __future__ import annotations

from collections import Counter
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.framework import TermKind
from mooring.objects.core import Affinity, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from mooring.objects.placed import placed
from mooring.objects.selectors import LabelSelector, LabelSelectorRequirement
from mooring.state import State, affinity_terms
from mooring.testing import a_node_object, a_pod

WEB = LabelSelector(match_labels={"app": "web"})
UNREADABLE = LabelSelector(match_expressions=(LabelSelectorRequirement(key="app", operator="Near"),))
INCOMING = a_pod(labels={"app": "web"})
AWAY, PREFERABLY_AWAY = TermKind.REQUIRED_ANTI_AFFINITY, TermKind.PREFERRED_ANTI_AFFINITY


def away_from(*selectors: LabelSelector, preferably: tuple[LabelSelector, ...] = (), key: str = "zone") -> Affinity:
    return Affinity(
        pod_anti_affinity=PodAffinity(
            required=tuple(PodAffinityTerm(label_selector=selector, topology_key=key) for selector in selectors),
            preferred=tuple(
                WeightedPodAffinityTerm(
                    weight=7, pod_affinity_term=PodAffinityTerm(label_selector=selector, topology_key=key)
                )
                for selector in preferably
            ),
        )
    )


def two_zones(*carriers: Affinity) -> State:
    """Nodes `a` and `b` in zones of their own; the carriers on `a`."""
    state = State()
    for name in "ab":
        state.set_node(a_node_object(name, labels={"zone": name}))
    for affinity in carriers:
        state.set_pod(placed(a_pod(affinity=affinity), "a"))
    return state


def where(state: State, kind: TermKind = AWAY) -> list[dict[str, int]]:
    """The carriers per zone, term by term."""
    return [
        {zone: count for zone, count in tally.per_domain().items() if count}
        for _, tally in state.existing_affinity_terms(INCOMING, kind, {})
    ]


def test_equal_terms_of_different_pods_are_one() -> None:
    assert where(two_zones(away_from(WEB), away_from(WEB), away_from(WEB, preferably=(WEB,)))) == [{"a": 3}]


def test_carriers_move_with_their_nodes_label() -> None:
    state = two_zones(away_from(WEB))
    state.set_node(a_node_object("a", labels={"zone": "b"}))
    assert where(state) == [{"b": 1}]
    state.set_node(a_node_object("a"))
    assert where(state) == [{}]
    state.set_node(a_node_object("a", labels={"zone": "new"}))
    assert where(state) == [{"new": 1}]
    state.remove_node("a")
    assert where(state) == []


def test_a_column_that_was_read_follows() -> None:
    state = two_zones(away_from(WEB, key="kubernetes.io/hostname"))
    ((_, tally),) = state.existing_affinity_terms(INCOMING, AWAY, {})
    assert tally.at_rows(state.nodes).tolist() == [1, 0]
    for number in range(40):
        state.set_node(a_node_object(f"new-{number}"))
        state.set_pod(placed(a_pod(affinity=away_from(WEB, key="kubernetes.io/hostname")), f"new-{number}"))
    assert tally.at_rows(state.nodes).tolist() == [1, 0] + [1] * 40
    assert tally.compute(state.nodes, lambda here: here == 0).tolist() == [False, True] + [False] * 40
    assert [tally.at(view) for view in state.nodes][:3] == [1, 0, 1]
    assert tally.total == 41


def test_few_carriers_among_many_domains() -> None:
    rule = away_from(WEB, key="kubernetes.io/hostname")
    state = two_zones(rule)
    for number in range(100):
        state.set_node(a_node_object(f"new-{number}"))
    ((_, tally),) = state.existing_affinity_terms(INCOMING, AWAY, {})
    assert tally.at_rows(state.nodes).tolist() == [1] + [0] * 101
    for number in range(50):
        state.set_pod(placed(a_pod(affinity=rule), f"new-{number}"))
        assert tally.at_rows(state.nodes).tolist() == [1, 0] + [1] * (number + 1) + [0] * (99 - number)


UNREADABLE_CASES = {
    "one that cannot be read hides the others of its kind": (away_from(WEB, UNREADABLE), [], []),
    "and no other kind": (away_from(UNREADABLE, preferably=(WEB,)), [], [{"a": 1}]),
    "neither the other way round": (away_from(WEB, preferably=(UNREADABLE,)), [{"a": 1}], []),
}


@pytest.mark.parametrize(("affinity", "required", "preferred"), UNREADABLE_CASES.values(), ids=UNREADABLE_CASES.keys())
def test_terms_that_cannot_be_read(
    affinity: Affinity, required: list[dict[str, int]], preferred: list[dict[str, int]]
) -> None:
    state = two_zones(affinity)
    assert (where(state), where(state, PREFERABLY_AWAY)) == (required, preferred)


def a_selector(key: str, operator: str, value: str) -> LabelSelector:
    values = [value] if operator in ("In", "NotIn") else []
    return LabelSelector(
        match_expressions=(LabelSelectorRequirement(key=key, operator=operator, values=tuple(values)),)
    )


TERMS = st.builds(
    PodAffinityTerm,
    label_selector=st.builds(
        a_selector,
        st.sampled_from(["app", "tier", "none"]),
        st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
        st.sampled_from(["web", "db"]),
    ),
    topology_key=st.sampled_from(["zone", "host"]),
    namespaces=st.sampled_from([[], ["default"], ["other"]]),
    namespace_selector=st.sampled_from([None, LabelSelector(), LabelSelector(match_labels={"team": "a"})]),
)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.lists(st.tuples(st.integers(1, 3), TERMS), max_size=5)), max_size=8),
    st.sampled_from(list(TermKind)),
    st.sampled_from([{}, {"team": "a"}]),
)
def test_many_terms_that_select_a_pod_are_counted_together(carriers, kind, namespace_labels) -> None:
    state = State()
    for name in "abc":
        state.set_node(a_node_object(name, labels={"zone": name, **({"host": name} if name != "c" else {})}))
    for node, terms in carriers:
        preferred = [WeightedPodAffinityTerm(weight=weight, pod_affinity_term=term) for weight, term in terms]
        rules = PodAffinity(required=tuple(term for _, term in terms), preferred=tuple(preferred))
        state.set_pod(placed(a_pod(affinity=Affinity(pod_affinity=rules, pod_anti_affinity=rules)), node))

    def counted() -> Counter[tuple[int, str, str]]:
        found: Counter[tuple[int, str, str]] = Counter()
        for term, tally in state.existing_affinity_terms(INCOMING, kind, namespace_labels):
            assert tally.total == sum(tally.per_domain().values())
            for domain, count in tally.per_domain().items():
                found[term.weight, term.term.topology_key, domain] += count
        return +found

    one_by_one = counted()
    with mock.patch.object(affinity_terms, "MANY_SELECTING", 0):
        assert counted() == one_by_one
        together = state.existing_affinity_terms(INCOMING, kind, namespace_labels)
        assert len({(term.weight, term.term.topology_key) for term, _ in together}) == len(together)


def test_many_terms_are_read_once_however_often_their_pod_is_evicted_and_reprieved() -> None:
    state = two_zones()
    selectors = [LabelSelector(match_labels={"app": f"x-{number}"}) for number in range(affinity_terms.FEW_TERMS + 1)]
    victim = placed(a_pod(affinity=away_from(*selectors)), "a")
    with mock.patch.object(affinity_terms, "_encode", side_effect=affinity_terms._encode) as encode:
        state.set_pod(victim)
        for _ in range(5):
            with state.what_if("a", without=[victim]) as evicted:
                evicted.reprieve(victim)
                evicted.evict(victim)
    assert encode.call_count == 1
