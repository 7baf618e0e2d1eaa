"""The three forms mean the same."""

from __future__ import annotations

import pytest

from mooring.testing import a_cluster, a_node, a_plugin, a_pod

from .headroom import TOO_LITTLE, PlainHeadroom, SignedHeadroom, VectorHeadroom


@pytest.mark.parametrize("form", [PlainHeadroom, SignedHeadroom, VectorHeadroom])
def test_a_twentieth_stays_free_and_the_emptiest_is_chosen(form):
    nodes = [
        a_node("full", cpu="10", running=[a_pod(cpu="9")]),
        a_node("half", cpu="10", running=[a_pod(cpu="5")]),
        a_node("empty", cpu="10"),
    ]
    decision = a_cluster(*nodes, plugins=[a_plugin(form)]).decide(a_pod(cpu="600m"))
    assert decision.node == "empty"
    assert {node: refusal.reasons for node, (_, refusal) in decision.rejections.items()} == {"full": (TOO_LITTLE,)}
