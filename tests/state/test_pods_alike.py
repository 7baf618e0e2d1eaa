"""Which classes of pods a what-if moves in a count: many classes at once as one by one."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest
from msgspec.structs import force_setattr

from mooring.framework import PodsWhere
from mooring.framework.what_if import labels_and_namespace
from mooring.objects.placed import placed
from mooring.objects.selectors import Requirement
from mooring.state import State, pods_by_importance
from mooring.state.moved_pods import moves
from mooring.testing import a_node_object, a_pod

SELECTORS: dict[str, tuple[tuple[Requirement, ...], ...]] = {
    "no selector": (),
    "a value": ((("app", "In", ("a", "x")),),),
    "another value": ((("app", "NotIn", ("a",)),),),
    "the label": ((("tier", "Exists", ()),),),
    "no such label": ((("tier", "DoesNotExist", ()),),),
    "two selectors": ((("app", "In", ("a",)),), (("tier", "Exists", ()),)),
}


def a_full_node() -> State:
    state = State()
    state.set_node(a_node_object("node", pods=1000))
    for number, (namespace, app, tier, is_going) in enumerate(
        product(("shop", "bank"), (None, "a", "b"), (None, "1"), (False, True))
    ):
        labels = {key: value for key, value in (("app", app), ("tier", tier)) if value is not None}
        pod = a_pod(f"p{number}", namespace=namespace, labels=labels, priority=0)
        if is_going:
            force_setattr(pod.metadata, "deletion_timestamp", "2026-01-01T00:00:00Z")
        state.set_pod(placed(pod, "node"))
    return state


@pytest.mark.parametrize("selectors", SELECTORS.values(), ids=SELECTORS.keys())
@pytest.mark.parametrize("namespaces", [None, frozenset(), frozenset(["shop"])])
@pytest.mark.parametrize("few_classes", [0, 1000])
def test_many_classes_are_matched_as_each_of_them(
    monkeypatch: pytest.MonkeyPatch,
    selectors: tuple[tuple[Requirement, ...], ...],
    namespaces: frozenset[str] | None,
    few_classes: int,
) -> None:
    monkeypatch.setattr(pods_by_importance, "FEW_CLASSES", few_classes)
    state = a_full_node()
    lower = state.lower_priority_pods(10, state.nodes)
    every_pod = lower.pods(np.ones(len(lower), np.bool_))
    for terminating, none, counts_all in product((False, True), repeat=3):
        where = PodsWhere(namespaces, selectors, terminating, none, counts_all)
        found = lower.numbers(where, partial(moves, where), labels_and_namespace)
        assert found.tolist() == [moves(where, pod) for pod in every_pod]
