"""The victims of each node, computed for all nodes at once, are those of a dry run that reprieves pods one by one."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.engine.builders import a_profile, a_state, made

from mooring.engine import decide
from mooring.framework import Plugin, Reads, Refusal, Rejection
from mooring.objects.placed import PlacedPod, placed
from mooring.plugins.default.node_ports import NodePorts
from mooring.plugins.default.node_resources_fit import NodeResourcesFit
from mooring.plugins.default.node_unschedulable import NodeUnschedulable
from mooring.state import State
from mooring.testing import a_node_object, a_plugin, a_pod

PODS = st.builds(
    lambda cpu, memory, priority, ports: a_pod(cpu=cpu, memory=f"{memory}Gi", priority=priority, ports=ports),
    st.integers(0, 4),
    st.integers(0, 3),
    st.integers(0, 4),
    st.sampled_from([(), (), (80,)]),
)
NODES = st.lists(
    st.tuples(st.integers(0, 6), st.integers(1, 6), st.booleans(), st.lists(PODS, max_size=6)), min_size=1, max_size=4
)
FITTING = (NodeUnschedulable, NodePorts, NodeResourcesFit)
Victims = dict[str, list[PlacedPod]]


def lower(node: Any, pod: Any) -> list[PlacedPod]:
    """In an order that is not the table's."""
    return sorted(
        (each for each in node.pods if each.priority < pod.priority), key=lambda each: (each.priority, each.uid)
    )


def one_by_one(pod: Any, node: Any, what_if: Any) -> list[PlacedPod] | None:
    """Those that cannot stay; None if evicting all would not help."""
    found = []
    away = lower(node, pod)
    with what_if.without(node, away) as evicted:
        if not what_if.fits(pod, node):
            return None
        for each in away:
            evicted.reprieve(each)
            if not what_if.fits(pod, node):
                evicted.evict(each)
                found.append(each)
    return found


def computed(state: State, pod: Any, *filters: Plugin) -> tuple[Victims, Victims]:
    """What is computed at once, and a dry run of each node."""
    at_once: Victims = {}
    tried: Victims = {}

    def post_filter(pod: Any, refused: Any, what_if: Any) -> Refusal:
        nodes = list(refused.resolvable_nodes())
        at_once.update(what_if.victims(pod, [(node, lower(node, pod)) for node in reversed(nodes)]))
        for node in nodes:
            if (found := one_by_one(pod, node, what_if)) is not None:
                tried[node.name] = found
        return Refusal()

    plugins = filters or tuple(a_plugin(cls) for cls in FITTING)
    decide(a_profile(*plugins, made("Look", post_filter=post_filter)), pod, state)
    return at_once, tried


@given(NODES, PODS, st.lists(st.tuples(PODS, st.integers(0, 3)), max_size=2))
def test_it_agrees_with_every_trial(nodes, pod, nominated):
    state = State()
    for number, (cpu, most, cordoned, running) in enumerate(nodes):
        state.set_node(a_node_object(f"n{number}", cpu=cpu, memory="6Gi", pods=most, unschedulable=cordoned))
        for each in running:
            state.set_pod(placed(each, f"n{number}"))
    for waiting, node in nominated:
        state.nominations.set(waiting, f"n{node}")
    at_once, tried = computed(state, pod)
    for node, found in at_once.items():
        assert found == tried[node]
    if not pod.spec.containers[0].ports and not nominated:
        assert at_once == tried


def a_full_node() -> State:
    state = a_state("n")
    for cpu in ("1", "2", "1"):
        state.set_pod(placed(a_pod(cpu=cpu, priority=0), "n"))
    return state


def test_a_pod_stays_where_the_others_make_enough_room():
    at_once, tried = computed(a_full_node(), a_pod("wanted", cpu="2", priority=5))
    assert at_once == tried
    assert sum(each.requests.amounts["cpu"] for each in at_once["n"]) == 2000


def test_who_is_not_of_lower_priority_is_not_counted_as_away():
    state = a_full_node()
    state.set_pod(placed(a_pod(cpu="0", priority=9), "n"))
    at_once, tried = computed(state, a_pod("wanted", cpu="4", priority=5))
    assert len(at_once["n"]) == 3
    assert at_once == tried


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


def test_nothing_is_computed_where_a_filter_has_no_vector_form():
    for cls in (PerPod, ReadsAnything, CountsInAdvance):
        at_once, tried = computed(a_full_node(), a_pod(cpu="2", priority=5), a_plugin(NodeResourcesFit), cls())
        assert (at_once, bool(tried["n"])) == ({}, True)


def test_nothing_is_computed_from_sums_that_no_64_bits_hold():
    state = a_full_node()
    state.set_pod(placed(a_pod(cpu="1", memory="16Pi", priority=0), "n"))
    at_once, tried = computed(state, a_pod(cpu="2", priority=5))
    assert (at_once, bool(tried["n"])) == ({}, True)
