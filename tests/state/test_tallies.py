"""Standing counts, by example; `test_any_history` has the general rule."""

from __future__ import annotations

import pytest
from msgspec.structs import force_setattr

from mooring.base.errors import Fault
from mooring.framework import NodesWhere, PodsWhere, TermKind
from mooring.objects.core import Affinity, PodAffinity, PodAffinityTerm, Taint, Toleration
from mooring.objects.placed import placed
from mooring.objects.selectors import LabelSelector
from mooring.state import State, pod_sets
from mooring.testing import a_node_object, a_pod

WEB = PodsWhere.labelled({"app": "web"}, namespaces=["default"])


def zones(*names: str) -> State:
    """One node per name, each in a zone of the name's first letter."""
    state = State()
    for name in names:
        state.set_node(a_node_object(name, labels={"zone": name[0]}))
    return state


def put(state: State, node: str, *, app: str = "web", **more: object) -> str:
    pod = a_pod(labels={"app": app}, **more)  # type: ignore[arg-type]
    state.set_pod(placed(pod, node))
    return pod.uid


def test_a_tally_counts_matching_pods_per_domain() -> None:
    state = zones("a1", "a2", "b1")
    put(state, "a1")
    put(state, "a2")
    put(state, "b1", app="db")
    tally = state.tally(WEB, "zone")
    assert tally.at(state.node("a2")) == 2  # type: ignore[arg-type]
    assert (tally.lowest, tally.domains, tally.total) == (0, 2, 2)


def test_a_tally_follows_what_happens_after_it_was_first_read() -> None:
    state = zones("a1", "b1")
    tally = state.tally(WEB, "zone")
    uid = put(state, "a1")
    put(state, "b1")
    assert tally.lowest == 1
    state.remove_pod(uid)
    assert tally.lowest == 0
    state.set_node(a_node_object("a1", labels={"zone": "b"}))
    assert (tally.domains, tally.lowest) == (1, 1)
    state.remove_node("b1")
    assert (tally.domains, tally.total, tally.lowest) == (1, 0, 0)


def test_a_node_without_the_key_has_no_count() -> None:
    state = zones("a1")
    state.set_node(a_node_object("nowhere"))
    tally = state.tally(WEB, "zone")
    assert tally.at(state.node("nowhere")) is None  # type: ignore[arg-type]
    assert tally.lacking(state.nodes).tolist() == [False, True]
    assert tally.at_rows(state.nodes).tolist() == [0, 0]


def test_untolerated_taints_keep_a_node_out_of_the_count_where_required() -> None:
    state = zones("a1")
    state.set_node(a_node_object("b1", labels={"zone": "b"}, taints=[Taint(key="k", effect="NoSchedule")]))
    put(state, "b1")
    everywhere = state.tally(WEB, "zone")
    honoured = state.tally(WEB, "zone", NodesWhere(tolerations=()))
    tolerated = state.tally(WEB, "zone", NodesWhere(tolerations=(Toleration(operator="Exists"),)))
    assert [(tally.domains, tally.total) for tally in (everywhere, honoured, tolerated)] == [(2, 1), (1, 0), (2, 1)]


def test_without_domains_the_lowest_count_is_zero() -> None:
    assert State().tally(WEB, "zone").lowest == 0


def test_a_terminating_pod_counts_only_where_required() -> None:
    state = zones("a1")
    leaving = a_pod(labels={"app": "web"})
    force_setattr(leaving.metadata, "deletion_timestamp", "2026-01-01T00:00:00Z")
    state.set_pod(placed(leaving, "a1"))
    staying = PodsWhere.labelled({"app": "web"}, terminating=False)
    assert state.tally(WEB, "zone").total == 1
    assert state.tally(staying, "zone").total == 0


@pytest.mark.parametrize("none", [False, True])
def test_what_does_not_count_may_still_be_evicted_in_a_what_if(none: bool) -> None:
    state = zones("a1", "b1")
    leaving = a_pod(labels={"app": "web"})
    force_setattr(leaving.metadata, "deletion_timestamp", "2026-01-01T00:00:00Z")
    state.set_pod(placed(leaving, "a1"))
    put(state, "b1")
    where = PodsWhere(frozenset(["default"]), WEB.selectors, terminating=False, none=none, what_if_counts_all=True)
    tally = state.tally(where, "zone")
    standing = {"a": 0, "b": 0 if none else 1}
    assert tally.per_domain() == standing
    with state.what_if("a1", without=[placed(leaving, "a1")], adding=[placed(a_pod(labels={"app": "db"}), "a1")]):
        assert tally.per_domain() == standing | {"a": -1}
        assert tally.lowest == -1
    with state.what_if("a1", adding=[placed(a_pod(labels={"app": "web"}), "a1")]):
        assert tally.per_domain() == standing | {"a": 1}
    assert tally.per_domain() == standing


def test_a_total_is_a_standing_sum_of_requests() -> None:
    state = zones("a1")
    put(state, "a1", cpu="1")
    assert state.total(WEB, "cpu") == 1000
    put(state, "a1", cpu="2")
    put(state, "a1", app="db", cpu="4")
    assert (state.total(WEB, "cpu"), state.total(WEB, "pods")) == (3000, 2)


def test_counts_that_are_not_read_any_more_are_dropped_and_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_sets, "UNUSED_CHANGES", 10)
    state = zones("a1", "b1")
    used = state.tally(PodsWhere(), "zone")
    unused = state.tally(WEB, "zone")
    for _ in range(30):
        state.tally(PodsWhere(), "zone")
        put(state, "a1")
    assert state.tally(PodsWhere(), "zone") is used
    again = state.tally(WEB, "zone")
    assert again is not unused
    assert again.total == 30


def spreading(namespaces: list[str] | None = None, every_namespace: bool = False) -> Affinity:
    """Not two `app=web` in one zone."""
    return Affinity(
        pod_anti_affinity=PodAffinity(
            required=(
                PodAffinityTerm(
                    label_selector=LabelSelector(match_labels={"app": "web"}),
                    topology_key="zone",
                    namespaces=tuple(namespaces or []),
                    namespace_selector=LabelSelector() if every_namespace else None,
                ),
            )
        )
    )


CARRIER_CASES = {
    "a term without namespaces means the carrier's own": (spreading(), "default", True),
    "and no other": (spreading(), "shop", False),
    "a term may name namespaces": (spreading(namespaces=["shop"]), "shop", True),
    "and then its own is not meant": (spreading(namespaces=["shop"]), "default", False),
    "an empty namespace selector means all, also unknown ones": (spreading(every_namespace=True), "new", True),
}


@pytest.mark.parametrize(("affinity", "namespace", "selected"), CARRIER_CASES.values(), ids=CARRIER_CASES.keys())
def test_which_terms_of_existing_pods_select_a_pod(affinity: Affinity, namespace: str, selected: bool) -> None:
    state = zones("a1", "b1")
    state.set_pod(placed(a_pod(affinity=affinity), "a1"))
    incoming = a_pod(namespace=namespace, labels={"app": "web"})
    found = state.existing_affinity_terms(incoming, TermKind.REQUIRED_ANTI_AFFINITY, {})
    assert [tally.at(state.node("a1")) for _, tally in found] == ([1] if selected else [])  # type: ignore[arg-type]
    assert state.existing_affinity_terms(incoming, TermKind.REQUIRED_AFFINITY, {}) == []
    assert state.existing_affinity_terms(a_pod(namespace=namespace), TermKind.REQUIRED_ANTI_AFFINITY, {}) == []


def test_terms_that_appear_later_are_known_and_those_that_went_are_not() -> None:
    state, incoming = zones("a1"), a_pod(labels={"app": "web"})
    assert state.existing_affinity_terms(incoming, TermKind.REQUIRED_ANTI_AFFINITY, {}) == []
    carrier = a_pod(affinity=spreading())
    state.assume(carrier, "a1", at=1.0)
    assert len(state.existing_affinity_terms(incoming, TermKind.REQUIRED_ANTI_AFFINITY, {})) == 1
    state.forget(carrier.uid)
    assert state.existing_affinity_terms(incoming, TermKind.REQUIRED_ANTI_AFFINITY, {}) == []


def test_many_departures_leave_no_unused_terms_behind() -> None:
    state = zones("a1")
    for number in range(4_200):
        carrier = a_pod(namespace=f"ns-{number}", affinity=spreading())
        state.set_pod(placed(carrier, "a1"))
        state.remove_pod(carrier.uid)
    assert len(list(state._terms)) < 200


def test_a_what_if_without_a_pod_that_is_elsewhere_is_refused() -> None:
    state = zones("a1", "b1")
    pod = state.assume(a_pod(), "a1", at=1.0)
    with pytest.raises(Fault, match="not on node b1"), state.what_if("b1", without=[pod]):
        pass
    with pytest.raises(Fault, match="no node c1"), state.what_if("c1"):
        pass


def test_a_what_if_is_undone_when_something_breaks_inside() -> None:
    state = zones("a1")
    pod = state.assume(a_pod(cpu="1"), "a1", at=1.0)
    with pytest.raises(ZeroDivisionError), state.what_if("a1", without=[pod]):
        1 / 0  # noqa: B018
    assert state.nodes.requested("cpu").tolist() == [1000]


def test_the_comparer_names_each_difference() -> None:
    state = zones("a1", "b1")
    state.set_pod(placed(a_pod("moved", uid="1"), "a1"))
    state.set_pod(placed(a_pod("gone", uid="2"), "a1"))
    state.assume(a_pod("assumed", uid="3"), "a1", at=1.0)
    listed = [placed(a_pod("moved", uid="1"), "b1"), placed(a_pod("new", uid="4"), "b1")]
    assert state.compare([a_node_object("b1"), a_node_object("c1")], listed) == [
        "Node c1 exists and is not in the cache.",
        "Node a1 is in the cache and does not exist.",
        "Pod default/moved runs on node b1; the cache has it on node a1.",
        "Pod default/new runs on node b1 and is not in the cache.",
        "Pod default/gone is on no node; the cache has it on node a1.",
    ]


def test_a_terminating_pod_that_a_what_if_evicts_is_taken_off_a_count_that_counts_all() -> None:
    """As in kube-scheduler's dry runs, though it never counted; and nothing of it stays."""
    state = zones("a1")
    going = a_pod(labels={"app": "web"})
    force_setattr(going.metadata, "deletion_timestamp", "2026-01-01T00:00:00Z")
    record = placed(going, "a1")
    state.set_pod(placed(a_pod(labels={"app": "web"}), "a1"))
    state.set_pod(record)
    where = PodsWhere(selectors=((("app", "In", ("web",)),),), terminating=False, what_if_counts_all=True)
    standing = state.tally(where, "zone")
    with state.what_if("a1", without=[record]) as evicted:
        fresh = state.tally(where, "kubernetes.io/hostname")
        assert (standing.total, fresh.total) == (0, 0)
        evicted.reprieve(record)
        assert (standing.total, fresh.total) == (1, 1)
        evicted.evict(record)
        assert (standing.total, fresh.total) == (0, 0)
    assert (standing.total, fresh.total) == (1, 1)


def test_a_mask_by_domain_follows_the_labels_of_nodes() -> None:
    state = zones("a1", "b1")
    put(state, "a1")
    tally = state.tally(WEB, "zone")

    def with_pods() -> list[bool]:
        return list(tally.compute(state.nodes, lambda there: there > 0))

    assert with_pods() == with_pods() == [True, False]
    state.set_node(a_node_object("b1", labels={"zone": "a"}))
    assert with_pods() == [True, True]
    state.set_node(a_node_object("a2", labels={"zone": "a"}))
    assert with_pods() == [True, True, True]


def test_nodes_without_those_of_a_mask_are_listed_again_where_the_mask_shows_a_column() -> None:
    state = zones("a1", "b1")
    nodes = state.nodes
    assert list(nodes.without(nodes.is_unschedulable).names) == ["a1", "b1"]
    state.set_node(a_node_object("a1", labels={"zone": "a"}, unschedulable=True))
    assert list(nodes.without(nodes.is_unschedulable).names) == ["b1"]
