"""A decision is the same whichever form its plugins have: node by node, or all at once."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.engine.builders import a_profile

from mooring.engine import decide
from mooring.framework import UNRESOLVABLE, UNSCHEDULABLE, Plugin, Rejection, Rejections, ToMax
from mooring.objects.placed import placed
from mooring.state import State
from mooring.testing import a_node_object, a_pod

RESOURCES = ("pods", "cpu", "memory")


def wanted(pod: Any, resource: str) -> int:
    return 1 if resource == "pods" else int(pod.request(resource))


class PlainFit(Plugin):
    name = "Fit"
    normalizer = ToMax()

    def filter(self, pod: Any, node: Any, cycle: Any) -> Any:
        lacking = [resource for resource in RESOURCES if wanted(pod, resource) > node.free(resource)]
        is_final = any(wanted(pod, resource) > node.allocatable(resource) for resource in lacking)
        reasons = [f"Insufficient {resource}" for resource in lacking]
        return Rejection(*reasons, code=UNRESOLVABLE if is_final else UNSCHEDULABLE) if lacking else None

    def score(self, pod: Any, node: Any, cycle: Any) -> Any:
        return node.free("cpu")


class FastFit(Plugin):
    name = "Fit"
    normalizer = ToMax()

    def filter_nodes(self, pod: Any, nodes: Any, cycle: Any) -> Any:
        for resource in RESOURCES:
            amount = wanted(pod, resource)
            lacking = nodes.free(resource) < amount
            yield Rejections(lacking, f"Insufficient {resource}", nodes.allocatable(resource) < amount)

    def score_nodes(self, pod: Any, nodes: Any, cycle: Any) -> Any:
        return nodes.free("cpu")


class PlainTaints(Plugin):
    name = "Taints"
    normalizer = ToMax(reverse=True)

    def filter(self, pod: Any, node: Any, cycle: Any) -> Any:
        return Rejection("cordoned", code=UNRESOLVABLE) if node.is_unschedulable else None

    def score(self, pod: Any, node: Any, cycle: Any) -> Any:
        return int(node.labels.get("weight", "0"))


class FastTaints(Plugin):
    name = "Taints"
    normalizer = ToMax(reverse=True)

    def filter_nodes(self, pod: Any, nodes: Any, cycle: Any) -> Any:
        yield Rejections(nodes.is_unschedulable, "cordoned", True)

    def score_nodes(self, pod: Any, nodes: Any, cycle: Any) -> Any:
        return nodes.label_numbers("weight", lambda weight: int(weight or "0"))


pods = st.builds(a_pod, cpu=st.sampled_from(["0", "1", "2", "9"]), memory=st.sampled_from(["0", "1Gi", "99Gi"]))


@st.composite
def states(draw: Any) -> State:
    """Nodes that came and went, with pods on them."""
    state = State()
    for number in range(draw(st.integers(0, 8))):
        labels = draw(st.sampled_from([{}, {"weight": "3"}, {"weight": "7"}]))
        node = a_node_object(
            f"n{number}",
            cpu=draw(st.sampled_from(["1", "4"])),
            pods=draw(st.integers(0, 3)),
            labels=labels,
            unschedulable=draw(st.booleans()),
        )
        state.set_node(node)
        for pod in draw(st.lists(pods, max_size=2)):
            state.set_pod(placed(pod, node.name))
    for number in draw(st.sets(st.integers(0, 7), max_size=3)):
        state.remove_node(f"n{number}")
    return state


@given(states(), pods, st.integers(0, 5), st.sampled_from([None, 0, 50]))
def test_the_forms_of_a_rule_decide_alike(state: State, pod: Any, seed: int, percentage: int | None) -> None:
    plain = decide(a_profile(PlainTaints(), (PlainFit(), 2), percentage=percentage), pod, state, seed=seed)
    fast = decide(a_profile(FastTaints(), (FastFit(), 2), percentage=percentage), pod, state, seed=seed)
    assert plain.evidence() == fast.evidence()
    assert dict(plain.rejections) == dict(fast.rejections)
    assert (plain.message, plain.rejectors, plain.next_start) == (fast.message, fast.rejectors, fast.next_start)
