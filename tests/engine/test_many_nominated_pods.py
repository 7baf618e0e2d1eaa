"""Nodes with nominated pods are filtered at once, and with the result of one what-if for each."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.engine.test_victims import FITTING, INCOMING, NODES, RUNNING, a_cluster_of

from mooring.engine import Form, Profile, decide, filtering
from mooring.framework.points import points_of
from mooring.state import State
from mooring.testing import a_node_object, a_plugin, a_pod


def rejections(state: State, pod: Any, form: Form) -> dict[str, Any]:
    plugins = [a_plugin(cls) for cls in FITTING]
    points: dict[Any, Any] = {}
    for plugin in plugins:
        for point in points_of(type(plugin)):
            points.setdefault(point, []).append((plugin, 1))
    return dict(decide(Profile("test", points, form=form), pod, state).rejections)


@given(NODES, INCOMING, st.lists(st.tuples(RUNNING, st.integers(0, 4)), min_size=1, max_size=6))
def test_the_verdicts_are_those_of_one_node_at_a_time(nodes, pod, nominated):
    state = a_cluster_of(nodes, nominated)
    assert rejections(state, pod, Form.FASTER) == rejections(state, pod, Form.PLAIN)


def test_no_node_needs_a_what_if_of_its_own(monkeypatch):
    def one_node(*_: Any) -> None:
        raise AssertionError("one node at a time")

    monkeypatch.setattr(filtering, "refusal_among_nominated", one_node)
    state = State()
    for number in range(3):
        state.set_node(a_node_object(f"n{number}", cpu=4))
        state.nominations.set(a_pod(cpu="3", priority=number), f"n{number}")
    rejected = rejections(state, a_pod(cpu="2", priority=1), Form.FASTER)
    assert {node: refusal.reasons for node, (_, refusal) in rejected.items()} == {
        "n1": ("Insufficient cpu",),
        "n2": ("Insufficient cpu",),
    }
