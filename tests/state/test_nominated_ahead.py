"""Which nominated pods count for a pod: of the same or a higher priority, on nodes that exist, without itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mooring.objects import Pod
from mooring.state import State
from mooring.testing import a_node_object, a_pod, a_term, pod_rules

NODES = st.integers(0, 3).map(lambda number: f"n{number}")
NEAR = pod_rules(near=[a_term({"app": "a"}, "zone")])


def a_waiting_pod(number: int, priority: int = 0) -> Pod:
    affinity = NEAR if number % 3 == 2 else None
    return a_pod(f"pod-{number}", uid=f"uid-{number}", cpu=number, priority=priority, affinity=affinity)


PODS = st.builds(a_waiting_pod, st.integers(0, 5), st.integers(0, 2))
STEPS = st.one_of(
    st.tuples(st.just("nominate"), PODS, NODES),
    st.tuples(st.just("remove"), PODS, NODES),
    st.tuples(st.just("add node"), PODS, NODES),
    st.tuples(st.just("remove node"), PODS, NODES),
)


def expected(state: State, pod: Pod) -> dict[int, tuple[int, bool]]:
    """By row how much CPU is added, and whether a pod there has affinity to others."""
    found = {}
    for name in state.nominations.nodes:
        there = [each for each in state.nominations.at(name) if each.priority >= pod.priority and each.uid != pod.uid]
        if there and (view := state.node(name)) is not None:
            cpu = sum(each.request("cpu") for each in there)
            found[view.row] = cpu, any(each.affinity is not None for each in there)
    return found


@given(st.lists(st.tuples(STEPS, PODS), max_size=20))
def test_it_is_that_of_the_nominations_and_nodes_there_are_now(steps):
    """Q47: nominated pods of the same or a higher priority are added."""
    state = State()
    for (act, about, node), pod in steps:
        match act:
            case "nominate":
                state.nominations.set(about, node)
            case "remove":
                state.nominations.remove(about.uid)
            case "add node":
                state.set_node(a_node_object(node))
            case _ if state.node(node) is not None:
                state.remove_node(node)
        ahead = state.nominated_ahead_of(pod)
        cpu = ahead.addition.moved("cpu", lambda each: each.request("cpu"), None).tolist()
        found = zip(ahead.rows.tolist(), zip(cpu, ahead.has_affinity.tolist(), strict=True), strict=True)
        assert dict(found) == expected(state, pod)
