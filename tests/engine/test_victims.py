"""The victims of each node, computed for all nodes at once, are those of a dry run that reprieves pods one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import force_setattr
from tests.engine.builders import a_profile, a_state, made

from mooring.base.clock import timestamp
from mooring.engine import decide
from mooring.framework import Plugin, Pod, Reads, Refusal, Rejection, Rejections
from mooring.objects.placed import PlacedPod, placed
from mooring.plugins.default.inter_pod_affinity import InterPodAffinity
from mooring.plugins.default.node_ports import NodePorts
from mooring.plugins.default.node_resources_fit import NodeResourcesFit
from mooring.plugins.default.node_unschedulable import NodeUnschedulable
from mooring.plugins.default.pod_topology_spread import PodTopologySpread
from mooring.state import State
from mooring.testing import a_constraint, a_node_object, a_plugin, a_pod, a_term, pod_rules

FITTING = (NodeUnschedulable, NodePorts, NodeResourcesFit, PodTopologySpread, InterPodAffinity)
ZONE, HOST = "zone", "kubernetes.io/hostname"

Outcomes = dict[str, Any]
"""By node why it is no candidate, or its victims."""


def lower(node: Any, pod: Any, *, backwards: bool) -> list[PlacedPod]:
    """In the order in which they are reprieved."""
    pods = [each for each in node.pods if each.priority < pod.priority]
    pods.sort(key=lambda each: (-each.priority, each.started))
    return pods[::-1] if backwards else pods


def dry_run(pod: Any, node: Any, what_if: Any, *, backwards: bool) -> Any:
    found = []
    away = lower(node, pod, backwards=backwards)
    with what_if.without(node, away) as evicted:
        if (refusal := what_if.refusal(pod, node)) is not None:
            return refusal
        for each in away:
            evicted.reprieve(each)
            if not what_if.fits(pod, node):
                evicted.evict(each)
                found.append(each)
    return found


def computed(
    state: State, pod: Any, *filters: Plugin, backwards: bool = False, ahead: bool = True
) -> tuple[Outcomes, Outcomes]:
    """What is computed at once, and a dry run of each node that has pods of lower priority."""
    at_once: Outcomes = {}
    tried: Outcomes = {}

    def post_filter(pod: Any, refused: Any, what_if: Any) -> Refusal:
        nodes = refused.resolvable_nodes()
        nodes = nodes.take(np.arange(len(nodes))[:: 1 if ahead else -1])
        pods = what_if.lower_priority_pods(pod, nodes)
        order = np.lexsort((-np.arange(len(pods)), pods.node)) if backwards else None
        found = what_if.victims(pod, pods, order) if len(pods) else None
        for place, node in enumerate(pods.nodes):
            tried[node.name] = dry_run(pod, node, what_if, backwards=backwards)
            if found is not None and found.is_known[place]:
                begin = pods.first[place]
                of_node = order[begin:][: pods.counts[place]] if order is not None else begin + np.arange(99)
                of_node = of_node[: pods.counts[place]]
                every_pod = pods.pods(np.ones(len(pods), np.bool_))
                victims = [every_pod[at] for at in of_node.tolist() if found.is_victim[at]]
                [refusal] = [refusal for rows, refusal in found.refusals if node.row in rows] or [None]
                assert (refusal is not None) == found.is_refused[place]
                at_once[node.name] = victims if refusal is None else refusal
        return Refusal()

    plugins = filters or tuple(a_plugin(cls) for cls in FITTING)
    decide(a_profile(*plugins, made("Look", post_filter=post_filter)), pod, state)
    return at_once, tried


LABELS = st.fixed_dictionaries({}, optional={"app": st.sampled_from("ab"), "tier": st.sampled_from("xy")})
TERMS = st.builds(a_term, st.sampled_from([{"app": "a"}, {"app": "b"}, {"tier": "x"}]), st.sampled_from([ZONE, HOST]))
RULES = st.none() | st.builds(
    lambda near, away: pod_rules(near=near, away=away), st.lists(TERMS, max_size=2), st.lists(TERMS, max_size=2)
)
CONSTRAINTS = st.builds(
    lambda key, skew, labels, domains: a_constraint(key, skew=skew, labels=labels, min_domains=domains),
    st.sampled_from([ZONE, HOST]),
    st.integers(1, 2),
    st.sampled_from([{"app": "a"}, {"tier": "x"}, {}]),
    st.sampled_from([None, None, 3]),
)


def a_drawn_pod(cpu: int, memory: int, priority: int, started: int, *, is_going: bool = False, **more: Any) -> Pod:
    pod = a_pod(cpu=cpu, memory=f"{memory}Gi", priority=priority, **more)
    force_setattr(pod.status, "start_time", timestamp(started))
    if is_going:
        force_setattr(pod.metadata, "deletion_timestamp", timestamp(1.0))
    return pod


SIZES = (st.integers(0, 4), st.integers(0, 3), st.integers(0, 4), st.integers(0, 3))
RUNNING = st.builds(
    a_drawn_pod,
    *SIZES,
    ports=st.sampled_from([(), (), (80,)]),
    labels=LABELS,
    affinity=RULES,
    is_going=st.sampled_from([False, False, True]),
)
INCOMING = st.builds(
    a_drawn_pod,
    *SIZES,
    ports=st.sampled_from([(), (), (), (80,)]),
    labels=LABELS,
    affinity=RULES,
    spread=st.lists(CONSTRAINTS, max_size=2),
)
NODES = st.lists(
    st.tuples(
        st.integers(0, 6),
        st.integers(1, 6),
        st.booleans(),
        st.sampled_from(["a", "b", None]),
        st.lists(RUNNING, max_size=5),
    ),
    min_size=1,
    max_size=5,
)


def a_cluster_of(nodes: Any, nominated: Any) -> State:
    state = State()
    for number, (cpu, most, cordoned, zone, running) in enumerate(nodes):
        labels = {ZONE: zone} if zone else {}
        name = f"n{number}"
        node = a_node_object(name, cpu=cpu, memory="6Gi", pods=most, unschedulable=cordoned, labels=labels)
        state.set_node(node)
        for each in running:
            state.set_pod(placed(each, name))
    for waiting, number in nominated:
        state.nominations.set(waiting, f"n{number}")
    return state


@given(NODES, INCOMING, st.lists(st.tuples(RUNNING, st.integers(0, 3)), max_size=4), st.booleans(), st.booleans())
def test_it_agrees_with_every_dry_run(nodes, pod, nominated, backwards, ahead):
    state = a_cluster_of(nodes, nominated)
    at_once, tried = computed(state, pod, backwards=backwards, ahead=ahead)
    for name, found in at_once.items():
        assert found == tried[name]
    if not pod.spec.containers[0].ports and not nominated:
        assert at_once == tried


def a_full_node() -> State:
    state = a_state("n")
    for cpu in ("1", "2", "1"):
        state.set_pod(placed(a_drawn_pod(int(cpu), 0, 0, 0), "n"))
    return state


def test_a_pod_stays_where_the_others_make_enough_room():
    at_once, tried = computed(a_full_node(), a_pod("wanted", cpu="2", priority=5))
    assert at_once == tried
    assert sum(each.requests.amounts["cpu"] for each in at_once["n"]) == 2000


def test_a_node_that_is_kept_for_a_nominated_pod_is_rejected_at_once():
    state = a_full_node()
    state.nominations.set(a_pod("first", cpu="3", priority=5), "n")
    at_once, tried = computed(state, a_pod("wanted", cpu="2", priority=5))
    assert at_once == tried == {"n": Rejection("Insufficient cpu")}

    state.nominations.set(a_pod("second", uid="second", cpu="1", priority=4), "n")
    at_once, tried = computed(state, a_pod("wanted", cpu="2", priority=6))
    assert at_once == tried
    assert isinstance(at_once["n"], list), "pods of lower priority do not count"


def test_pods_of_other_than_lower_priority_are_not_evicted():
    state = a_full_node()
    state.set_pod(placed(a_pod(cpu="0", priority=9), "n"))
    at_once, tried = computed(state, a_pod("wanted", cpu="4", priority=5))
    assert len(at_once["n"]) == 3
    assert at_once == tried


def test_pods_that_come_and_go_are_noticed():
    state = a_state("n")
    low, high = a_pod(cpu="2", priority=0), a_pod(cpu="2", priority=9)
    state.set_pod(placed(low, "n"))
    state.set_pod(placed(high, "n"))
    wanted = a_pod("wanted", cpu="3", priority=5)
    assert computed(state, wanted)[0] == {"n": Rejection("Insufficient cpu")}
    state.remove_pod(high.uid)
    state.set_pod(placed(a_pod(cpu="1", priority=0), "n"))
    [victim] = computed(state, wanted)[0]["n"]
    assert victim.uid == low.uid
    state.set_pod(placed(a_pod(uid=low.uid, cpu="2", priority=9), "n"))
    assert computed(state, wanted)[0] == {"n": Rejection("Insufficient cpu")}


def test_nodes_that_come_later_are_known():
    state = a_state("n")
    state.set_pod(placed(a_pod(cpu="4", priority=0), "n"))
    wanted = a_pod("wanted", cpu="3", priority=5)
    assert list(computed(state, wanted)[0]) == ["n"]
    for number in range(100):
        state.set_node(a_node_object(f"more-{number}", cpu=4))
        state.set_pod(placed(a_pod(cpu="4", priority=0), f"more-{number}"))
    at_once, tried = computed(state, wanted)
    assert (at_once == tried, len(at_once)) == (True, 101)


class PerPod(Plugin):
    """Has no form for many nodes."""

    reads = Reads.PODS

    def filter(self, pod: Any, node: Any, cycle: Any) -> Rejection | None:
        return None


class ReadsAnything(PerPod):
    reads = Reads.ANYTHING


class CountsInAdvance(PerPod):
    """What its pre_filter finds depends on the pods on nodes."""

    def pre_filter(self, pod: Any, cycle: Any) -> int:
        return sum(len(node.pods) for node in cycle.nodes)


class CountsPods(Plugin):
    """Reads what is not known without the pods of lower priority."""

    reads = Reads.PODS

    def filter(self, pod: Any, node: Any, cycle: Any) -> None: ...

    def filter_nodes(self, pod: Any, nodes: Any, cycle: Any) -> Any:
        yield Rejections(nodes.where_port_taken([("0.0.0.0", "TCP", 81)]), "taken")


def test_nothing_is_computed_where_a_filter_has_no_vector_form():
    for cls in (PerPod, ReadsAnything, CountsInAdvance, CountsPods):
        at_once, tried = computed(a_full_node(), a_pod(cpu="2", priority=5), a_plugin(NodeResourcesFit), cls())
        assert (at_once, bool(tried["n"])) == ({}, True)


def test_what_filters_before_it_reject_is_known_nevertheless():
    state = a_full_node()
    state.set_pod(placed(a_pod(cpu="0", priority=9), "n"))
    state.set_pod(placed(a_pod(cpu="1", priority=9), "n"))
    for cls in (PerPod, CountsInAdvance, CountsPods):
        at_once, tried = computed(state, a_pod(cpu="4", priority=5), a_plugin(NodeResourcesFit), cls())
        assert at_once == tried == {"n": Rejection("Insufficient cpu")}


def test_nothing_is_computed_from_sums_that_no_64_bits_hold():
    state = State()
    state.set_node(a_node_object("n", cpu=4, memory="4Gi"))
    state.set_pod(placed(a_drawn_pod(1, 16 * 1024 * 1024, 0, 0), "n"))
    at_once, tried = computed(state, a_pod(cpu="2", memory="1Gi", priority=5))
    assert (at_once, bool(tried["n"])) == ({}, True)


def test_each_of_several_refused_nodes_has_its_refusal():
    """Each takes one pod, and has one of higher priority besides one that may be evicted."""
    nodes = [(4, 1, False, "a", [a_drawn_pod(0, 0, 5, 0), a_drawn_pod(0, 0, 0, 0)]) for _ in range(3)]
    at_once, tried = computed(a_cluster_of(nodes, []), a_drawn_pod(0, 0, 1, 0))
    assert at_once == tried == dict.fromkeys(["n0", "n1", "n2"], Rejection("Too many pods"))
