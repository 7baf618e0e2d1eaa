"""What one hostile pod may cost: an attempt, and what is kept after it.

Every pod here is one that kube-apiserver accepts. The bounds are CPU seconds of a whole child process, of which the
imports and the making of the case take about one; the machine may be busy.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest
from tests.hostile.bounds import bounded, peak_kib

from mooring.base.memory import keep_collector_calm
from mooring.bench.decide import default_profile
from mooring.engine import Profile, decide
from mooring.framework import Point
from mooring.objects import Pod
from mooring.objects.placed import placed
from mooring.objects.selectors import LabelSelector, LabelSelectorRequirement
from mooring.state import State, pod_sets, table
from mooring.testing import Services, a_constraint, a_node_object, a_pod, a_term, pod_rules
from mooring_conformance.cases import Case
from mooring_conformance.generate.hostile import SHAPES, Recipe, hostile_case
from mooring_conformance.situation import Situation
from mooring_conformance.slow import SLOW_SECONDS, Measured, measure, search, shrunk

HERE = "tests.hostile.test_pods"
ATTEMPT_SECONDS = 3
"""Wide: each takes a tenth of a second. What is repaired took 6 to 190 s."""

CACHED_BYTES = 16 * 1024 * 1024
"""What each cache of constraints or terms may weigh. A test fills it: without the bound it would weigh more."""


def attempt(amounts: dict[str, int], nodes: int, running: int) -> dict[str, object]:
    """Decide the pod of a recipe twice, as it is retried. Returns the decision and the slower one's CPU seconds."""
    recipe = Recipe(amounts, nodes, running)
    case = msgspec.json.decode(msgspec.json.encode(hostile_case(recipe)), type=Case)
    situation = Situation(case)
    profile = Profile(situation.configuration.scheduler_name, situation.points)
    slowest = 0.0
    for _ in range(2):
        began = time.process_time()
        decision = decide(profile, situation.pod, situation.state)
        decision.evidence()
        slowest = max(slowest, time.process_time() - began)
    return {"node": decision.node, "message": decision.message, "seconds": slowest}


LACKING = "node(s) didn't match pod topology spread constraints (missing required label)"
AWAY = "node(s) didn't match pod anti-affinity rules"
NEAR = "node(s) didn't match pod affinity rules"
SELECTED = "node(s) didn't match Pod's node affinity/selector"

Hostile = dict[str, tuple[dict[str, int], str | None]]
"""What the pod has much of, and the reason why it does not fit (None: it fits)."""

ATTEMPTS: dict[str, Hostile] = {
    "hard constraints": {
        "400": ({"hard-spread-unknown-keys": 400}, LACKING),
        "1000": ({"hard-spread-unknown-keys": 1000}, LACKING),
        "2000": ({"hard-spread-unknown-keys": 2000}, LACKING),
        "400 on labels that nodes have": ({"hard-spread": 400}, None),
        "1500 among pods of which no two are alike": (
            {"hard-spread-unknown-keys": 1500, "unlike-running-pods": 5000},
            LACKING,
        ),
    },
    "soft constraints": {
        "400": ({"soft-spread-unknown-keys": 400}, None),
        "1000": ({"soft-spread-unknown-keys": 1000}, None),
        "2000": ({"soft-spread-unknown-keys": 2000}, None),
        "400 on labels that nodes have": ({"soft-spread": 400}, None),
    },
    "affinity to pods": {
        "3000 anti-affinity terms": ({"required-anti-affinity": 3000}, AWAY),
        "3000 affinity terms": ({"required-affinity": 3000}, NEAR),
        "3000 affinity terms that match": ({"matched-affinity": 3000}, None),
        "3000 preferred affinity terms": ({"preferred-affinity": 3000}, None),
        "3000 anti-affinity terms among pods of which no two are alike": (
            {"required-anti-affinity": 3000, "unlike-running-pods": 5000},
            AWAY,
        ),
        "a running pod with 3000 anti-affinity terms": ({"anti-affinity-of-a-running-pod": 3000}, None),
    },
    "affinity to nodes": {
        "5000 terms": ({"node-terms": 5000}, None),
        "4000 terms that match no node": ({"vain-node-terms": 4000}, SELECTED),
        "300 terms with long lists of values": ({"long-value-lists": 300}, SELECTED),
        "5000 terms that name a node each": ({"node-names": 5000}, None),
        "5000 labels in the node selector": ({"node-selector": 5000}, SELECTED),
        "8000 tolerations": ({"tolerations": 8000}, None),
    },
    "everything else": {
        "3000 containers": ({"containers": 3000}, None),
        "8000 host ports": ({"host-ports": 8000}, None),
        "5000 extended resources": ({"extended-resources": 5000}, "Insufficient tenant.example.com/r0"),
        "1500 claims": ({"claims": 1500}, None),
        "3000 disks": ({"disks": 3000}, None),
        "10000 labels": ({"labels": 10_000}, None),
    },
}


def attempts(group: str) -> dict[str, dict[str, object]]:
    return {name: attempt(amounts, 200, 400) for name, (amounts, _) in ATTEMPTS[group].items()}


@pytest.mark.parametrize("group", ATTEMPTS)
def test_an_attempt_is_cheap(group: str) -> None:
    decisions = bounded(f"{HERE}:attempts", group, cpu_seconds=ATTEMPT_SECONDS * len(ATTEMPTS[group]), memory_mib=500)
    for name, (_, reason) in ATTEMPTS[group].items():
        decision = decisions[name]
        assert decision["seconds"] < ATTEMPT_SECONDS, name
        assert (decision["node"] is None) is (reason is not None), name
        assert reason is None or reason in decision["message"], name


def large_attempts() -> dict[str, float]:
    shapes = {
        "hard-spread-unknown-keys": 2000,
        "soft-spread-unknown-keys": 2000,
        "required-anti-affinity": 2000,
        "vain-node-terms": 2000,
        "tolerations": 8000,
    }
    return {shape: attempt({shape: amount}, 2000, 8000)["seconds"] for shape, amount in shapes.items()}  # type: ignore[misc]


def test_an_attempt_in_a_large_cluster_is_cheap() -> None:
    seconds = bounded(f"{HERE}:large_attempts", cpu_seconds=60, memory_mib=900)
    assert max(seconds.values()) < ATTEMPT_SECONDS, seconds


def test_preemption_for_a_pod_with_many_terms_is_cheap() -> None:
    amounts = {"victims": 1000, "required-anti-affinity": 300, "host-ports": 500}
    assert bounded(f"{HERE}:attempt", amounts, 100, 100, cpu_seconds=20)["seconds"] < 6


def population(kind: str, pods: int) -> dict[str, int]:
    """Decide so many pods, each a little different. Returns how much memory the second half of them added."""
    services = Services()
    profile, state = default_profile(services), services.state
    for number in range(100):
        state.set_node(a_node_object(f"node-{number}", cpu="1000", pods=10_000, labels={"zone": f"z{number % 4}"}))
    for number in range(300):
        state.set_pod(placed(a_pod(f"web-{number}", labels={"app": f"a{number % 5}"}), f"node-{number % 100}"))
    half = 0
    for number in range(pods):
        pod = {"spread": _spread, "affinity": _affinity, "carriers": _affinity}[kind](number)
        decision = decide(profile, pod, state)
        if kind == "carriers":
            state.assume(pod, decision.node or "node-0", 0.0)
            state.forget(pod.uid)
        if number == pods // 2:
            half = _memory_mib()
    return {
        "added": _memory_mib() - half,
        "labels": len(state._table._labels),
        "tallies": _tallies(state),
        "read": _read_bytes(profile, kind),
    }


def _spread(number: int) -> Pod:
    keys = [f"tenant.example.com/key-{number}-{each}" for each in range(200)]
    return a_pod(spread=[a_constraint(key, soft=True, labels={"app": f"x{number}"}) for key in keys])


def _affinity(number: int) -> Pod:
    terms = [a_term({"app": f"x-{number}-{each}"}, f"tenant.example.com/key-{number}-{each}") for each in range(200)]
    return a_pod(labels={"app": "a1"}, affinity=pod_rules(rather_near=[(1, term) for term in terms], away=terms[:50]))


def _tallies(state: State) -> int:
    return sum(1 + len(selection.tallies) for selection in state._index)


def _read_bytes(profile: Profile, kind: str) -> int:
    """The weight of what a plugin keeps of pods' constraints or terms, to read it once for each workload."""
    plugins: dict[str, Any] = {plugin.name: plugin for plugin, _ in profile.points[Point.FILTER]}
    spread, affinity = plugins["PodTopologySpread"], plugins["InterPodAffinity"]
    return int((spread._constraints._cache if kind == "spread" else affinity._terms._known).weight)


def _memory_mib() -> int:
    return peak_kib() // 1024


@pytest.mark.parametrize("kind", ["spread", "affinity", "carriers"])
def test_many_pods_each_a_little_different_leave_little_behind(kind: str) -> None:
    left = bounded(f"{HERE}:population", kind, 300, cpu_seconds=60, memory_mib=400)
    assert left["added"] < 40
    assert left["tallies"] <= pod_sets.MOST_COUNTS + 1_000
    assert left["labels"] <= table.MOST_LABEL_COLUMNS + pod_sets.MOST_COUNTS + 1_000
    assert CACHED_BYTES * 0.9 < left["read"] <= CACHED_BYTES


def permuted_carriers(pods: int) -> int:
    """Place and remove pods that carry the terms of a running one, each in an order of its own."""
    state = State()
    state.set_node(a_node_object("node", pods=10_000))
    terms = [a_term({"app": f"x-{each}"}, "zone") for each in range(1000)]
    state.set_pod(placed(a_pod(affinity=pod_rules(away=terms)), "node"))
    for number in range(pods):
        pod = a_pod(affinity=pod_rules(away=terms[number:] + terms[:number]))
        state.assume(pod, "node", 0.0)
        state.forget(pod.uid)
    return state._terms._by_template.weight


def test_terms_in_many_orders_leave_little_behind() -> None:
    weight = bounded(f"{HERE}:permuted_carriers", 250, cpu_seconds=30)
    assert CACHED_BYTES * 0.9 < weight <= CACHED_BYTES


def later_decisions(terms: int) -> float:
    """CPU seconds of deciding and assuming 200 pods after a hostile pod has required so many counts of all pods."""
    services = Services()
    profile, state = default_profile(services), services.state
    for number in range(100):
        state.set_node(a_node_object(f"node-{number}", cpu="1000", pods=10_000, labels={"zone": f"z{number % 4}"}))
    all_pods = [a_term(_all_pods(number), "zone") for number in range(terms)]
    hostile = a_pod(affinity=pod_rules(rather_near=[(1, term) for term in all_pods]))
    decide(profile, hostile, state)
    for number in range(400):
        state.assume(a_pod(f"warm-{number}"), f"node-{number % 100}", 0.0)
    began = time.process_time()
    for number in range(200):
        pod = a_pod(f"pod-{number}")
        node = decide(profile, pod, state).node
        assert node is not None
        state.assume(pod, node, 0.0)
    return time.process_time() - began


def _all_pods(number: int) -> LabelSelector:
    return LabelSelector(match_expressions=(LabelSelectorRequirement(key=f"k{number}", operator="DoesNotExist"),))


def test_counts_that_only_a_hostile_pod_needs_do_not_slow_down_other_pods() -> None:
    assert bounded(f"{HERE}:later_decisions", 3000, cpu_seconds=30) < 0.5


def among_running(pods: int, terms: int) -> float:
    """CPU seconds of the fastest of three decisions beside running pods whose terms all select the pod."""
    services = Services()
    profile, state = default_profile(services), services.state
    for number in range(100):
        state.set_node(a_node_object(f"node-{number}", cpu="1000", pods=10_000, labels={"zone": f"z{number % 4}"}))
    for number in range(pods):
        carried = [a_term(_all_pods(number * terms + each), "zone") for each in range(terms)]
        rules = pod_rules(rather_away=[(1 + each % 100, term) for each, term in enumerate(carried)])
        state.set_pod(placed(a_pod(f"running-{number}", affinity=rules), f"node-{number}"))
    keep_collector_calm()
    seconds = []
    for number in range(3):
        began = time.process_time()
        assert decide(profile, a_pod(f"pod-{number}"), state).node is not None
        seconds.append(time.process_time() - began)
    return min(seconds)


def test_running_pods_with_thousands_of_terms_cost_other_pods_little() -> None:
    assert bounded(f"{HERE}:among_running", 40, 3000, cpu_seconds=60) < 0.5


def hints(pods: int) -> float:
    """CPU seconds of holding one deleted pod and one new node against so many hostile pods that wait."""
    terms = [a_term({"app": "web"}, f"key-{number}") for number in range(2000)]
    constraints = [a_constraint(f"key-{number}", labels={"app": "web"}) for number in range(1500)]
    waiting = [a_pod(labels={"app": "x"}, affinity=pod_rules(away=terms), spread=constraints) for _ in range(pods)]
    gone = placed(a_pod(labels={"app": "other"}, affinity=pod_rules(away=terms)), "node")
    node = a_node_object("node")
    tests = [
        (hint.resource, hint.test)
        for plugin, _ in default_profile().points[Point.FILTER]
        if plugin.name in ("InterPodAffinity", "PodTopologySpread")
        for hint in plugin.events() or ()
        if hint.test is not None
    ]
    for _ in range(2):  # the first reads them
        began = time.process_time()
        for pod in waiting:
            for kind, test in tests:
                _ = test(pod, gone, None) if kind == "Pod" else test(pod, None, node)
    return time.process_time() - began


def test_holding_events_against_hostile_pods_that_wait_is_cheap() -> None:
    assert bounded(f"{HERE}:hints", 400, cpu_seconds=40) < 0.6


def find_slow(count: int) -> list[tuple[float, str]]:
    """A short search, without kube-scheduler; amounts and clusters are small."""
    amounts = {name: max(1, shape.most // 10) for name, shape in SHAPES.items() if name != "resource-claims"}
    return [(found.seconds, str(found.recipe)) for found in search("7", count, measure, amounts)]


def test_a_search_for_slow_pods_finds_none() -> None:
    found = bounded(f"{HERE}:find_slow", 45, cpu_seconds=120, memory_mib=1500)
    assert max(found)[0] < 3 * SLOW_SECONDS, max(found)


def test_a_slow_pod_is_made_small() -> None:
    """By a measure of the test's own: slow is whatever has 100 claims."""

    def measured(recipe: Recipe) -> Measured:
        return Measured(recipe, 2.0 if recipe.amounts.get("claims", 0) >= 100 else 0.0, "VolumeBinding")

    found = measured(Recipe({"claims": 1500, "labels": 10, "gates": 5}))
    small = shrunk(found, measured, lambda each: each.is_slow)
    assert set(small.recipe.amounts) == {"claims"}
    assert 100 <= small.recipe.amounts["claims"] < 200
    assert small.recipe.nodes <= 10


def test_the_search_goes_where_decisions_are_slow() -> None:
    def measured(recipe: Recipe) -> Measured:
        return Measured(recipe, recipe.amounts.get("disks", 0) / 1000 + recipe.amounts.get("labels", 0) / 10_000, "")

    found = list(search("1", 120, measured))
    assert max(each.seconds for each in found[len(SHAPES) :]) > max(each.seconds for each in found[: len(SHAPES)])
