"""Which evictions violate a PodDisruptionBudget, and what computing it costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile.work import calls_of
from tests.plugins.default.default_preemption.made import a_preempting_cluster, a_running, an_important

from mooring.engine import decide
from mooring.engine.time_budget import TimeBudget
from mooring.objects import ObjectMeta
from mooring.objects.placed import PlacedPod, placed
from mooring.objects.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from mooring.objects.selectors import LabelSelector, LabelSelectorRequirement
from mooring.plugins.default.default_preemption import budget_selectors, budgets
from mooring.plugins.default.default_preemption.budgets import Budgets
from mooring.state import State
from mooring.testing import a_node, a_node_object, a_pod
from mooring.testing.services import MemoryObjects

NAMESPACES, NAMES = ("shop", "bank"), ("a", "b", "c", "d")
LABELS: tuple[dict[str, str], ...] = ({}, {"app": "x"}, {"app": "y", "tier": "1"})


def a_budget(
    name: str, namespace: str, selector: LabelSelector | None, allowed: int, disrupted: Iterable[str] = ()
) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=PodDisruptionBudgetSpec(selector=selector),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed, disrupted_pods=dict.fromkeys(disrupted)),
    )


def an_expression(operator: str, values: Sequence[str] = ()) -> LabelSelector:
    return LabelSelector(
        match_expressions=(LabelSelectorRequirement(key="app", operator=operator, values=tuple(values)),)
    )


SELECTORS = st.sampled_from(
    [
        None,
        LabelSelector(),
        LabelSelector(match_labels={"app": "x"}),
        LabelSelector(match_labels={"tier": "1"}),
        an_expression("In", ["x", "y"]),
        an_expression("NotIn", ["x"]),
        an_expression("Exists"),
        an_expression("DoesNotExist"),
    ]
)
BUDGETS = st.builds(
    a_budget,
    st.sampled_from(NAMES),
    st.sampled_from(NAMESPACES),
    SELECTORS,
    st.integers(-1, 3),
    st.lists(st.sampled_from(["p0", "p1"]), unique=True),
)
CHANGES = st.lists(BUDGETS | st.tuples(st.sampled_from(NAMESPACES), st.sampled_from(NAMES)), max_size=4)
"""Budgets are written; those with these names are deleted."""


def naively(pods: Sequence[PlacedPod], every: Iterable[PodDisruptionBudget]) -> set[str]:
    """The uids of pods that violate a budget, evicted in this order."""
    left = {each.key: each.status.disruptions_allowed for each in every}
    violating = set()
    for pod in pods:
        for each in every:
            selector = each.spec.selector
            if selector is None or selector == LabelSelector() or not pod.labels or each.namespace != pod.namespace:
                continue
            if selector.matches(pod.labels) and pod.name not in each.status.disrupted_pods:
                left[each.key] -= 1
                if left[each.key] < 0:
                    violating.add(pod.uid)
    return violating


@pytest.mark.parametrize("most_pairs", [1, budgets.MOST_PAIRS], ids=["in parts", "at once"])
@pytest.mark.parametrize("most_cells", [0, budget_selectors.MOST_CELLS], ids=["nothing kept", "all kept"])
@given(
    pods=st.lists(st.tuples(st.sampled_from(NAMESPACES), st.sampled_from(LABELS), st.integers(0, 2)), min_size=1),
    rounds=st.lists(CHANGES, min_size=1, max_size=4),
)
def test_whatever_changes_each_pod_is_counted_against_the_budgets_of_now(
    most_pairs: int, most_cells: int, pods: list[Any], rounds: list[Any]
) -> None:
    state = State()
    for number in range(3):
        state.set_node(a_node_object(f"n{number}", pods=1000))
    for number, (namespace, labels, node) in enumerate(pods):
        state.set_pod(placed(a_pod(f"p{number % 3}", namespace=namespace, labels=labels, priority=0), f"n{node}"))
    objects = MemoryObjects()
    read = Budgets(objects)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budget_selectors, "MOST_CELLS", most_cells)
        patch.setattr(budgets, "MOST_PAIRS", most_pairs)
        for changes in rounds:
            for change in changes:
                if isinstance(change, tuple):
                    objects.discard("/".join(change))
                else:
                    objects.put(change)
            lower = state.lower_priority_pods(10, state.nodes)
            every_pod = lower.pods(np.ones(len(lower), np.bool_))
            violating = read.violating(lower)
            found = set() if violating is None else {pod.uid for pod in lower.pods(violating)}
            of_nodes = [[pod for pod in every_pod if pod.node == view.name] for view in state.nodes]
            expected = [naively(of_node, list(objects.all())) for of_node in of_nodes]
            assert found == set().union(*expected)
            assert [read.violating_pods(of_node) for of_node in of_nodes] == expected


def a_large_budget(number: int, tag: str = "v", namespace: str = "evil") -> PodDisruptionBudget:
    values = [f"{tag}{number}-{each}" for each in range(50)]
    return a_budget(f"b{number}", namespace, an_expression("NotIn", values), 0)


def a_protected_cluster(every: Iterable[PodDisruptionBudget]) -> Any:
    running = [
        a_node(
            f"n{number}",
            running=[
                a_running(f"p{number}-{each}", namespace="evil", labels={"app": f"{number}-{each}"})
                for each in range(4)
            ],
        )
        for number in range(50)
    ]
    return a_preempting_cluster(*running, budgets=every)


def test_a_changed_budget_alone_is_held_against_the_pods_again() -> None:
    cluster = a_protected_cluster([a_large_budget(number) for number in range(100)])
    objects = cluster.services.objects(PodDisruptionBudget)

    def attempt() -> int:
        return calls_of(lambda: cluster.decide(an_important(namespace="victim")))

    first, again = attempt(), attempt()
    objects.put(a_large_budget(7, "w"))
    objects.put(a_large_budget(0, namespace="others"))
    after_change = attempt()
    assert after_change < 3 * again < first, (first, again, after_change)


def test_budgets_are_not_held_against_each_pod() -> None:
    """200 pods of which no two are alike, and 100 budgets: a call for each pair would be 20,000."""
    without = a_protected_cluster([])
    cluster = a_protected_cluster([a_large_budget(number) for number in range(100)])
    alone, beside = (calls_of(partial(each.decide, an_important())) for each in (without, cluster))
    assert beside < alone + 20_000, (alone, beside)


@pytest.mark.parametrize(("namespace", "is_charged"), [("evil", True), ("victim", False)])
def test_time_for_the_budgets_of_others_is_theirs(namespace: str, is_charged: bool) -> None:
    cluster, budget = a_protected_cluster([a_large_budget(0)]), TimeBudget(60.0)
    decide(cluster.profile, an_important(namespace=namespace), cluster.state, budget=budget)
    assert (budget.others_seconds == 0.0) is is_charged
