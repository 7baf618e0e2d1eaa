"""What one tenant's objects add to the attempts of another tenant's pods. Counted in calls, not in seconds."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.hostile.work import calls_of

from mooring.bench.decide import default_profile
from mooring.engine import Profile, decide
from mooring.objects import Pod
from mooring.objects.placed import placed
from mooring.objects.selectors import LabelSelector, LabelSelectorRequirement
from mooring.state import State
from mooring.testing import Services, a_constraint, a_node_object, a_pod, a_term, pod_rules

NODES, PODS_PER_NODE = 60, 6
HOST = "kubernetes.io/hostname"


def full_cluster(services: Services) -> State:
    """Nodes full of pods of low priority, of which no two are alike."""
    state = services.state
    for number in range(NODES):
        name = f"node-{number}"
        state.set_node(a_node_object(name, cpu="4", labels={HOST: name, "zone": f"z{number % 4}"}))
        for each in range(PODS_PER_NODE):
            labels = {"app": f"a{each}", "idx": f"x{number}-{each}"}
            state.set_pod(placed(a_pod(f"low-{number}-{each}", cpu="600m", labels=labels, priority=0), name))
    return state


def nearly_all_pods(number: int) -> LabelSelector:
    """One selector of many, each another."""
    return LabelSelector(
        match_expressions=(LabelSelectorRequirement(key="idx", operator="NotIn", values=(f"i{number}",)),)
    )


def preemptor(**spec: Any) -> Pod:
    """It fits nowhere without evicting; its host port makes dry runs go node by node."""
    return a_pod("victim", namespace="victim", cpu="3500m", priority=1000, ports=[8080], **spec)


def hostile(kind: str, terms: int) -> Pod:
    """A small pod that has most pods counted very often."""
    every = [a_term(nearly_all_pods(each), HOST) for each in range(terms)]
    match kind:
        case "preferred":
            return a_pod("evil", cpu="1m", affinity=pod_rules(rather_near=[(1, t) for t in every]))
        case "required":
            return a_pod("evil", cpu="1m", affinity=pod_rules(away=every))
    constraints = [a_constraint(HOST, skew=each + 1, soft=True, labels=nearly_all_pods(each)) for each in range(terms)]
    return a_pod("evil", cpu="1m", spread=constraints)


def preempt(profile: Profile, state: State) -> None:
    assert decide(profile, preemptor(), state).plan is not None


@pytest.mark.parametrize("kind", ["preferred", "required", "spread"])
@pytest.mark.parametrize("is_bound", [False, True], ids=["never placed", "bound"])
def test_a_preemption_costs_the_same_beside_a_pod_with_many_terms(kind: str, is_bound: bool) -> None:
    calls = []
    for terms in (0, 50, 300):
        services = Services()
        profile, state = default_profile(services), full_cluster(services)
        if terms:
            pod = hostile(kind, terms)
            decide(profile, pod, state)
            if is_bound:
                state.set_pod(placed(pod, "node-0"))
        preempt(profile, state)
        calls.append(calls_of(partial(preempt, profile, state)))
    alone, *beside = calls
    # A bound one is counted itself: once where it runs.
    assert max(beside) < 1.5 * alone, calls


def place_one(profile: Profile, state: State) -> None:
    pod = a_pod(cpu="1m", labels={"app": "a1"})
    node = decide(profile, pod, state).node
    assert node is not None
    state.assume(pod, node, 0.0)


def test_placing_a_pod_costs_little_more_beside_pods_with_many_terms() -> None:
    calls = []
    for hostile_pods in (0, 6):
        services = Services()
        profile, state = default_profile(services), full_cluster(services)
        for number in range(hostile_pods):
            every = [a_term(nearly_all_pods(number * 300 + each), HOST) for each in range(300)]
            decide(profile, a_pod(cpu="1m", affinity=pod_rules(rather_near=[(1, term) for term in every])), state)
        for _ in range(3):  # what is kept is bounded from the first on
            place_one(profile, state)
        calls.append(calls_of(partial(place_one, profile, state)))
    alone, beside = calls
    assert beside < 5 * alone, calls


def test_a_preemptor_with_many_terms_is_matched_with_all_pods_at_once() -> None:
    """240 pods of which no two are alike, and 300 terms: a call for each pair would be 72,000."""
    services = Services()
    profile, state = default_profile(services), full_cluster(services)
    away = [a_term({"idx": f"none-{each}"}, HOST) for each in range(300)]
    pod = a_pod("many", namespace="victim", cpu="3500m", priority=1000, affinity=pod_rules(away=away))
    assert calls_of(partial(decide, profile, pod, state)) < 200_000


def test_a_preemptor_that_many_terms_of_running_pods_select_is_evaluated_on_all_nodes_at_once() -> None:
    calls = []
    for terms in (0, 150, 600):
        services = Services()
        profile, state = default_profile(services), full_cluster(services)
        if terms:
            away = [a_term(nearly_all_pods(each), HOST, namespaces=["victim"]) for each in range(terms)]
            state.set_pod(placed(a_pod("evil", cpu="1m", affinity=pod_rules(away=away)), "node-0"))
        pod = a_pod("victim", namespace="victim", cpu="3500m", priority=1000)
        assert decide(profile, pod, state).plan is not None
        calls.append(calls_of(partial(decide, profile, pod, state)))
    alone, *beside = calls
    # Each term is held against the pod, once.
    assert [beside[0] < alone + 150 * 40, beside[1] < alone + 600 * 40] == [True, True], calls
