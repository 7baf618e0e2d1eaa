"""A detour ends where it began, and it is a detour."""

from __future__ import annotations

import json

import msgspec
import pytest

from mooring.objects.placed import placed
from mooring_conformance.cases import Case
from mooring_conformance.generate import generate
from mooring_conformance.history import churn
from mooring_conformance.situation import Situation


def a_situation(family: str) -> Situation:
    return Situation(msgspec.json.decode(json.dumps(generate(family, "history", 1)), type=Case))


@pytest.mark.parametrize("family", ["mixed", "preemption", "dra", "interpod"])
def test_the_cluster_is_the_same_afterwards(family):
    situation = a_situation(family)
    state, parts = situation.state, situation.parts
    nominations = {node: {pod.uid for pod in state.nominations.at(node)} for node in state.nominations.nodes}
    before = state.pod_changes.generation
    churn(situation)
    assert state.compare(parts.nodes, [placed(pod) for pod in parts.pods if situation.is_placed(pod)]) == []
    assert {node: {pod.uid for pod in state.nominations.at(node)} for node in state.nominations.nodes} == nominations
    assert not state.is_assumed(situation.pod.uid)
    for item in parts.others:
        assert situation.services.objects(type(item)).get(item.name, item.namespace or None) is item
    assert state.pod_changes.generation > before
