"""Whatever happens, in whatever order: columns, counts, sums and carried terms equal a computation from scratch."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest import mock

import msgspec
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import force_setattr
from tests.state.naive import Naive, counts, rows_of, without_zeros

from mooring.framework import ALL_NODES, NodesWhere, PodsWhere, TermKind
from mooring.objects.core import (
    Affinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    Taint,
    Toleration,
    WeightedPodAffinityTerm,
)
from mooring.objects.placed import PlacedPod, placed
from mooring.objects.selectors import LabelSelector, LabelSelectorRequirement
from mooring.state import State, pod_classes, tallies
from mooring.state.columns import LARGEST
from mooring.testing import a_node_object, a_pod

NODES = [f"n{number}" for number in range(5)]
NAMESPACES = ["shop", "lab"]
RESOURCES = ["cpu", "memory", "example.com/gpu"]

labels = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["a", "b"]), max_size=2)
domains = st.fixed_dictionaries({}, optional={"zone": st.sampled_from(["east", "west"]), "rack": st.sampled_from("12")})
requests = st.dictionaries(st.sampled_from(RESOURCES), st.sampled_from(["0", "1", "3", "9E"]), max_size=3)
selectors = st.builds(
    LabelSelector,
    match_labels=labels,
    match_expressions=st.lists(
        st.sampled_from(
            [
                LabelSelectorRequirement(key="app", operator="In", values=("a", "b")),
                LabelSelectorRequirement(key="tier", operator="NotIn", values=("b",)),
                LabelSelectorRequirement(key="tier", operator="Exists"),
                LabelSelectorRequirement(key="app", operator="DoesNotExist"),
            ]
        ),
        max_size=1,
    ),
)
pod_wheres = st.builds(
    lambda selectors, namespaces, terminating, what_if_counts_all: msgspec.structs.replace(
        PodsWhere.selected(*selectors, namespaces=namespaces, terminating=terminating),
        what_if_counts_all=what_if_counts_all,
    ),
    st.lists(selectors, max_size=2),
    st.none() | st.sets(st.sampled_from(NAMESPACES)),
    st.booleans(),
    st.booleans(),
)
node_wheres = st.just(ALL_NODES) | st.builds(
    NodesWhere,
    keys=st.sampled_from([(), ("rack",)]),
    node_selector=st.sampled_from([(), (("zone", "east"),)]),
    affinity=st.none()
    | st.just(
        NodeSelector(
            node_selector_terms=(
                NodeSelectorTerm(
                    match_expressions=(NodeSelectorRequirement(key="zone", operator="NotIn", values=("east",)),)
                ),
            )
        )
    ),
    tolerations=st.sampled_from([None, (), (Toleration(operator="Exists"),)]),
)
terms = st.builds(
    PodAffinityTerm,
    label_selector=st.none() | selectors,
    namespaces=st.lists(st.sampled_from(NAMESPACES), max_size=1),
    namespace_selector=st.none() | st.sampled_from([LabelSelector(), LabelSelector(match_labels={"team": "red"})]),
    topology_key=st.sampled_from(["zone", "rack"]),
)
pod_affinities = st.builds(
    PodAffinity,
    required=st.lists(terms, max_size=1),
    preferred=st.lists(
        st.builds(WeightedPodAffinityTerm, weight=st.integers(1, 3), pod_affinity_term=terms), max_size=1
    ),
)
affinities = st.none() | st.builds(
    Affinity, pod_affinity=st.none() | pod_affinities, pod_anti_affinity=st.none() | pod_affinities
)
pods = st.builds(
    a_pod,
    namespace=st.sampled_from(NAMESPACES),
    labels=labels,
    requests=requests,
    affinity=affinities,
    ports=st.sampled_from([[], [], [80], [80, 81]]),
)
nodes = st.builds(
    a_node_object,
    st.sampled_from(NODES),
    cpu=st.sampled_from(["0", "4"]),
    pods=st.integers(0, 3),
    labels=domains,
    taints=st.lists(st.sampled_from([Taint(key="k", effect="NoSchedule"), Taint(key="p", effect="PreferNoSchedule")])),
    unschedulable=st.booleans(),
    images=st.dictionaries(st.sampled_from(["app:1", "db:1"]), st.just(7)),
)


class History(RuleBasedStateMachine):
    """Events in any order, with reads in between whose counts are kept from then on."""

    @initialize(first=st.lists(nodes, max_size=3))
    def begin(self, first: list[Any]) -> None:
        self.state, self.naive = State(), Naive()
        self.tallies: dict[Any, Any] = {}
        self.totals: set[Any] = set()
        for node in first:
            self.node_is_set(node)

    def some_pod(self, data: Any) -> Any:
        return data.draw(st.sampled_from(sorted(self.naive.pods.values(), key=lambda pod: pod.uid)), "pod")

    @rule(node=nodes)
    def node_is_set(self, node: Any) -> None:
        assert self.state.set_node(node) is self.naive.nodes.get(node.name)
        self.naive.nodes[node.name] = node

    @rule(name=st.sampled_from(NODES))
    def node_is_removed(self, name: str) -> None:
        assert self.state.remove_node(name) is self.naive.nodes.pop(name, None)

    @rule(pod=pods, node=st.sampled_from(NODES))
    def pod_is_assumed(self, pod: Any, node: str) -> None:
        self.naive.pods[pod.uid] = self.state.assume(pod, node, at=1.0)

    @rule(pod=pods, node=st.sampled_from(NODES))
    def pod_appears(self, pod: Any, node: str) -> None:
        record = placed(pod, node)
        assert self.state.set_pod(record) is None
        self.naive.pods[pod.uid] = record

    @precondition(lambda self: self.naive.pods)
    @rule(data=st.data(), newer=pods, node=st.sampled_from(NODES), same=st.booleans(), terminating=st.booleans())
    def pod_is_updated(self, data: Any, newer: Any, node: str, same: bool, terminating: bool) -> None:
        old = self.some_pod(data)
        uid = old.uid
        force_setattr(newer.metadata, "uid", uid)
        force_setattr(newer.metadata, "namespace", old.namespace)
        if terminating:
            force_setattr(newer.metadata, "deletion_timestamp", "2026-01-01T00:00:00Z")
        record = placed(newer, old.node if same else node)
        assert self.state.set_pod(record) is old
        assert not self.state.is_assumed(uid)
        self.naive.pods[uid] = record

    @precondition(lambda self: self.naive.pods)
    @rule(data=st.data())
    def pod_goes(self, data: Any) -> None:
        pod = self.some_pod(data)
        gone = self.state.forget(pod.uid) if self.state.is_assumed(pod.uid) else self.state.remove_pod(pod.uid)
        assert gone is self.naive.pods.pop(pod.uid)

    @rule(name=st.sampled_from(NAMESPACES), labels=st.sampled_from([{}, {"team": "red"}]))
    def namespace_is_labelled(self, name: str, labels: dict[str, str]) -> None:
        self.naive.namespaces[name] = labels

    @rule(where=pod_wheres, key=st.sampled_from(["zone", "rack"]), on=node_wheres)
    def tally_is_read(self, where: PodsWhere, key: str, on: NodesWhere) -> None:
        tally = self.state.tally(where, key, on)
        assert self.tallies.setdefault((where, key, on), tally) is tally, "a standing tally keeps its identity"

    @rule(where=pod_wheres, resource=st.sampled_from([*RESOURCES, "pods"]))
    def total_is_read(self, where: PodsWhere, resource: str) -> None:
        self.totals.add((where, resource))

    @precondition(lambda self: any(pod.node in self.naive.nodes for pod in self.naive.pods.values()))
    @rule(data=st.data(), extra=st.lists(pods, max_size=1), where=pod_wheres)
    def a_what_if(self, data: Any, extra: list[Any], where: PodsWhere) -> None:
        node = data.draw(
            st.sampled_from(sorted({pod.node for pod in self.naive.pods.values()} & set(self.naive.nodes)))
        )
        there = [pod for pod in self.naive.pods.values() if pod.node == node]
        gone = data.draw(st.lists(st.sampled_from(there), unique_by=lambda pod: pod.uid))
        before = self.everything()
        back = data.draw(st.lists(st.sampled_from(gone), unique_by=lambda pod: pod.uid)) if gone else []
        with self.state.what_if(node, without=gone, adding=[placed(pod, node) for pod in extra]) as what_if:
            self.agree_with_some(data, self.without(gone, node, extra))
            for pod in back:
                what_if.reprieve(pod)
            self.tallies[where, "zone", ALL_NODES] = self.state.tally(where, "zone")  # new, in a what-if
            self.totals.add((where, "cpu"))
            self.agree_with_some(data, self.without([pod for pod in gone if pod not in back], node, extra))
            for pod in back:
                what_if.evict(pod)
            self.agree_with_some(data, self.without(gone, node, extra))
        after = self.everything()
        assert {key: after[key] for key in before} == before

    def agree_with_some(self, data: Any, naive: Naive) -> None:
        """Read everything, a single count, or nothing: counts follow a what-if when they are read."""
        read = data.draw(st.sampled_from(["everything", "a count", "nothing"]))
        if read == "everything":
            self.agree_with(naive)
        elif read == "a count" and self.tallies:
            key = data.draw(st.sampled_from(sorted(self.tallies, key=repr)))
            assert self.tallies[key].per_domain() == self.expected(naive, *key)

    def without(self, gone: list[PlacedPod], node: str, extra: list[Any]) -> Naive:
        """The naive model of a what_if."""
        added = Naive()
        added.nodes, added.namespaces = self.naive.nodes, self.naive.namespaces
        added.pods = {uid: pod for uid, pod in self.naive.pods.items() if pod not in gone}
        added.pods |= {pod.uid: placed(pod, node) for pod in extra}
        added.going_and_gone = [pod for pod in gone if pod.is_terminating]
        return added

    def everything(self) -> dict[Any, Any]:
        """All that can be seen from outside, with the order in which it is seen."""
        seen: dict[Any, Any] = {("row", name): row for name, row in rows_of(self.state).items()}
        seen |= {("order", view.name): [pod.uid for pod in view.pods] for view in self.state.nodes}
        seen["placed"] = [pod.uid for pod in self.state.placed(PodsWhere())]
        seen["generations"] = (
            self.state.node_changes.generation,
            self.state.request_changes.generation,
            self.state.pod_changes.generation,
        )
        seen |= {("tally", key): tally.per_domain() for key, tally in self.tallies.items()}
        seen |= {("total", total): self.state.total(*total) for total in self.totals}
        return seen

    def expected(self, naive: Naive, where: PodsWhere, key: str, on: NodesWhere) -> dict[str, int]:
        """Pods per domain."""
        expected = naive.per_domain(naive.matching(where), key, on)
        for domain, pods_less in naive.per_domain(naive.evicted_from(where), key, on).items():
            expected[domain] -= pods_less
        return expected

    def agree_with(self, naive: Naive) -> None:
        assert without_zeros(rows_of(self.state)) == without_zeros(saturated(naive.rows()))
        for (where, key, on), tally in self.tallies.items():
            expected = self.expected(naive, where, key, on)
            assert tally.per_domain() == expected
            assert (tally.total, tally.domains) == (sum(expected.values()), len(expected))
            assert tally.lowest == min(expected.values(), default=0)
            at = {view.name: tally.at(view) for view in self.state.nodes}
            assert at == {
                name: expected.get(node.labels[key], 0) if key in node.labels else None
                for name, node in naive.nodes.items()
            }
            rows = self.state.nodes
            assert tally.at_rows(rows).tolist() == [at[name] or 0 for name in rows.names]
            assert tally.lacking(rows).tolist() == [at[name] is None for name in rows.names]
            self.agree_beyond_domains(naive, where, key, on, tally)
        for where, resource in self.totals:
            assert self.state.total(where, resource) == naive.total(where, resource)
            assert {pod.uid for pod in self.state.placed(where)} == {pod.uid for pod in naive.matching(where)}
        for namespace in NAMESPACES:
            incoming = a_pod(namespace=namespace, labels={"app": "a"})
            for kind in TermKind:
                found = Counter(
                    (term.term.topology_key, term.weight, tuple(sorted(tally.per_domain().items())))
                    for term, tally in self.state.existing_affinity_terms(
                        incoming, kind, naive.namespaces.get(namespace, {})
                    )
                )
                assert found == naive.existing_affinity_terms(incoming, kind)

    def agree_beyond_domains(self, naive: Naive, where: PodsWhere, key: str, on: NodesWhere, tally: Any) -> None:
        rows, matching = self.state.nodes, naive.matching(where)
        here = {name: sum(pod.node == name for pod in matching) for name in naive.nodes}
        for pod in naive.evicted_from(where):
            here[pod.node] -= 1
        assert {view.name: tally.on(view) for view in rows} == here
        assert tally.on_rows(rows).tolist() == [here[name] for name in rows.names]
        without = [name for name, node in naive.nodes.items() if key not in node.labels and counts(on, node)]
        assert tally.without_key == sum(here[name] for name in without)
        doubled = tally.compute(rows, lambda pods: pods * 2)
        assert doubled.tolist() == [2 * pods for pods in tally.at_rows(rows).tolist()]
        values = [naive.nodes[name].labels.get(key) for name in rows.names]
        is_even = np.arange(len(rows)) % 2 == 0
        assert tally.spans(rows) == (None not in values)
        assert tally.spans(rows.where(is_even)) == (None not in values[::2])
        assert tally.domains_among(rows) == len(set(values) - {None})
        assert tally.domains_among(rows, is_even) == len(set(values[::2]) - {None})
        assert tally.domains_among(rows.where(is_even)) == len(set(values[::2]) - {None})

    @invariant()
    def state_agrees_with_a_computation_from_scratch(self) -> None:
        self.agree_with(self.naive)

    @invariant()
    def columns_show_what_the_views_show(self) -> None:
        rows, views = self.state.nodes, list(self.state.nodes)
        some = rows.where(np.arange(len(rows)) % 2 == 0)
        for chosen, expected in ((rows, views), (some, views[::2])):
            assert list(chosen.names) == [view.name for view in expected]
            assert chosen.places_of([view.row for view in expected[1:]]).tolist() == list(range(1, len(expected)))
            for resource in [*RESOURCES, "pods", "unknown"]:
                assert chosen.allocatable(resource).tolist() == [view.allocatable(resource) for view in expected]
                assert chosen.requested(resource).tolist() == [view.requested(resource) for view in expected]
                assert chosen.free(resource).tolist() == [view.free(resource) for view in expected]
                nonzero = [view.requested_nonzero(resource) for view in expected]
                assert chosen.requested_nonzero(resource).tolist() == nonzero
            assert chosen.is_unschedulable.tolist() == [view.is_unschedulable for view in expected]
            in_east = [view.labels.get("zone") == "east" for view in expected]
            assert chosen.where_label("zone", lambda zone: zone == "east").tolist() == in_east
            numbers = [int(view.labels.get("rack", "-1")) for view in expected]
            assert chosen.label_numbers("rack", lambda rack: int(rack or "-1")).tolist() == numbers
            assert chosen.where_taints(bool).tolist() == [bool(view.taints) for view in expected]
            taken = [any(port[2] == 80 for pod in view.pods for port in pod.ports) for view in expected]
            assert chosen.where_port_taken([("10.0.0.1", "TCP", 80)]).tolist() == taken
            with_app = [any("app:1" in image.names for image in view.images) for view in expected]
            app = self.state.image("app:1")
            assert (app.on_rows(chosen).tolist() if app is not None else [False] * len(expected)) == with_app
            assert chosen.count_taints(len).tolist() == [len(view.taints) for view in expected]

    @invariant()
    def the_comparer_finds_no_drift(self) -> None:
        confirmed = [pod for pod in self.naive.pods.values() if pod.assumed_at is None]
        assert self.state.compare(self.naive.nodes.values(), confirmed) == []


def saturated(rows: dict[str, Any]) -> dict[str, Any]:
    """Columns hold 64 bits: a larger sum shows as the largest number."""
    for row in rows.values():
        row["requested"] = {name: min(amount, LARGEST) for name, amount in row["requested"].items()}
        for field in ("nonzero cpu", "nonzero memory"):
            row[field] = min(row[field], LARGEST)
    return rows


TestAnyHistory = History.TestCase
TestAnyHistory.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)


class TestAnyHistoryAtOnce(History.TestCase):  # type: ignore[misc,valid-type]
    """The same where pods, classes and domains are counted at once, as they are where they are many."""

    settings = TestAnyHistory.settings

    def setUp(self) -> None:
        self.enterContext(mock.patch.object(pod_classes, "FEW_CLASSES", 0))
        self.enterContext(mock.patch.object(tallies, "FEW_DOMAINS", 0))
