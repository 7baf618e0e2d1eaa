"""A search for what a tenant can do to another one's pods: no pod costs ten times as much as without that neighbour.

Work is counted in calls, and gangs wait on virtual time. `make test` tries some neighbours, `make test-explore` many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.hostile.test_gangs import ENDS_AT, NOWHERE, Hostile, a_group, bound_at, members
from tests.hostile.work import calls_of

from mooring.bench.decide import default_profile
from mooring.engine import Profile, decide
from mooring.framework import Point
from mooring.objects import ObjectMeta, Pod
from mooring.objects.meta import KubeObject
from mooring.objects.placed import placed
from mooring.objects.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from mooring.objects.selectors import LabelSelector, LabelSelectorRequirement
from mooring.plugins.community.capacity_scheduling import CapacityScheduling
from mooring.plugins.community.capacity_scheduling.quotas import ElasticQuota, ElasticQuotaSpec
from mooring.state import State
from mooring.testing import Services, a_constraint, a_node_object, a_plugin, a_pod, a_term, pod_rules

NODES, PODS_PER_NODE = 24, 4
HOST, ZONE = "kubernetes.io/hostname", "zone"
TIMES = 10
FEW_CALLS = 10_000
"""About a millisecond: less is not looked at."""
EXAMPLES = settings().max_examples // 5

VICTIMS: dict[str, Callable[[], Pod]] = {
    "one that fits": lambda: a_pod("victim", namespace="victim", cpu="1m"),
    "one that fits near its own kind": lambda: a_pod(
        "victim",
        namespace="victim",
        cpu="1m",
        labels={"app": "web"},
        affinity=pod_rules(rather_near=[(1, a_term({"app": "web"}, ZONE))], rather_away=[(1, a_term({"app": "x"}))]),
    ),
    "one that preempts": lambda: a_pod("victim", namespace="victim", cpu="3500m", priority=1000),
    "one that preempts, with a host port": lambda: a_pod(
        "victim", namespace="victim", cpu="3500m", priority=1000, ports=[8080]
    ),
    "one that preempts, with a host port, and is spread": lambda: a_pod(
        "victim",
        namespace="victim",
        cpu="3500m",
        priority=1000,
        ports=[8080],
        labels={"app": "web"},
        spread=[a_constraint(ZONE, skew=100, labels={"app": "web"})],
    ),
}


def a_selector(operator: str, number: int, values: int) -> LabelSelector:
    """One of very many: each another, most of them match most pods."""
    named = tuple(f"v{number}-{each}" for each in range(values)) if operator in ("In", "NotIn") else ()
    key = "idx" if named else f"k{number}"
    return LabelSelector(match_expressions=(LabelSelectorRequirement(key=key, operator=operator, values=named),))


OPERATORS = st.sampled_from(["NotIn", "NotIn", "DoesNotExist", "In", "Exists"])
MANY = st.sampled_from([1, 20, 150])
NAMESPACES = st.sampled_from([(), ("victim",), ("evil", "victim")])


@dataclass
class Neighbour:
    """What the tenant of the namespace `evil` has."""

    bound: list[Pod] = field(default_factory=list)
    pending: list[Pod] = field(default_factory=list)
    """Tried, and not placed."""
    objects: list[KubeObject] = field(default_factory=list)


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    count, operator = draw(MANY), draw(OPERATORS)
    selectors = [a_selector(operator, number, draw(st.just(3))) for number in range(count)]
    key = draw(st.sampled_from([HOST, ZONE, "no-such-key"]))
    shape = draw(st.sampled_from(["near", "away", "rather_near", "rather_away", "soft", "hard"]))
    more: dict[str, Any] = {"cpu": "1m", "ports": draw(st.sampled_from([(), (), (9000,)]))}
    if shape in ("soft", "hard"):
        more["spread"] = [
            a_constraint(key, skew=1 + number, soft=shape == "soft", labels=selector)
            for number, selector in enumerate(selectors)
        ]
    else:
        terms = [a_term(selector, key, namespaces=draw(NAMESPACES)) for selector in selectors]
        rules: dict[str, Any] = {shape: [(1, each) for each in terms] if "rather" in shape else terms}
        more["affinity"] = pod_rules(**rules)
    labels = {f"own{each}": "x" for each in range(draw(st.sampled_from([0, 1, 100])))}
    return a_pod("evil", namespace="evil", priority=draw(st.sampled_from([0, 500])), labels=labels, **more)


@st.composite
def budgets(draw: st.DrawFn) -> list[KubeObject]:
    count, operator, values = draw(MANY), draw(OPERATORS), draw(st.sampled_from([1, 50]))
    return [
        PodDisruptionBudget(
            metadata=ObjectMeta(name=f"b{number}", namespace="evil"),
            spec=PodDisruptionBudgetSpec(selector=a_selector(operator, number, values)),
            status=PodDisruptionBudgetStatus(disruptions_allowed=draw(st.sampled_from([0, 1, 5]))),
        )
        for number in range(count)
    ]


@st.composite
def quotas(draw: st.DrawFn) -> list[KubeObject]:
    amounts: dict[str, str | int] = {f"example.com/r{each}": 1 for each in range(draw(st.sampled_from([0, 1, 50])))}
    spec = ElasticQuotaSpec(min=amounts | {"cpu": draw(st.integers(0, 100))}, max=amounts | {"cpu": 1000})
    return [ElasticQuota(metadata=ObjectMeta(name="quota", namespace="evil", uid="quota"), spec=spec)]


NEIGHBOURS = st.builds(
    lambda bound, pending, *objects: Neighbour(bound, pending, [each for some in objects for each in some]),
    st.lists(pods(), max_size=2),
    st.lists(pods(), max_size=3),
    st.just([]) | budgets(),
    st.just([]) | quotas(),
)


class World:
    """Nodes full of pods of the neighbour, of which no two are alike; and what else it has."""

    def __init__(self, neighbour: Neighbour, *, has_quotas: bool) -> None:
        objects: dict[type[KubeObject], list[KubeObject]] = {PodDisruptionBudget: [], ElasticQuota: []}
        for item in neighbour.objects:
            objects[type(item)].append(item)
        services = Services(objects=objects)
        profile, self.state = default_profile(services), services.state
        if has_quotas:
            points: dict[Point, Any] = {**profile.points}
            points[Point.POST_FILTER] = [(a_plugin(CapacityScheduling, services), 1)]
            profile = Profile(profile.name, points)
        self.profile = profile
        for number in range(NODES):
            name = f"node-{number}"
            self.state.set_node(a_node_object(name, cpu="4", labels={HOST: name, ZONE: f"z{number % 3}"}))
            for each in range(PODS_PER_NODE):
                labels = {"app": f"a{each}", "idx": f"x{number}-{each}"}
                pod = a_pod(f"low-{number}-{each}", namespace="evil", cpu="900m", labels=labels, priority=0)
                self.state.set_pod(placed(pod, name))
        for number, pod in enumerate(neighbour.bound):
            self.state.set_pod(placed(pod, f"node-{number}"))
        for pod in neighbour.pending:
            decide(self.profile, pod, self.state)

    def attempts(self, victim: Callable[[], Pod]) -> list[int]:
        """The calls of three attempts, and of placing a pod after them."""
        attempts = [calls_of(partial(decide, self.profile, victim(), self.state)) for _ in range(3)]
        pod = a_pod("placed", namespace="victim", labels={"app": "web"})
        return [*attempts, calls_of(partial(_place, self.state, pod))]


def _place(state: State, pod: Pod) -> None:
    state.assume(pod, "node-0", 0.0)
    state.forget(pod.uid)


@settings(max_examples=EXAMPLES)
@given(NEIGHBOURS, st.sampled_from(sorted(VICTIMS)), st.booleans())
def test_no_pod_costs_ten_times_as_much_beside(neighbour: Neighbour, victim: str, has_quotas: bool) -> None:
    alone = World(Neighbour(), has_quotas=has_quotas).attempts(VICTIMS[victim])
    beside = World(neighbour, has_quotas=has_quotas).attempts(VICTIMS[victim])
    for without, calls in zip(alone, beside, strict=True):
        assert calls <= max(TIMES * without, FEW_CALLS), (alone, beside)


@st.composite
def groups_that_cannot_be_placed(draw: st.DrawFn) -> Hostile:
    """Groups that cannot be placed: members are missing, fit nowhere, or are too many."""
    groups, every_pod = [], []
    for number in range(draw(st.integers(1, 5))):
        placeable, cpu = draw(st.integers(0, 12)), draw(st.sampled_from(["1m", "1", "4"]))
        nowhere = draw(st.integers(0 if placeable > 1 else 1, 4))
        least = placeable + nowhere if nowhere * 100 > 10 * (placeable + nowhere) else 60
        seconds = draw(st.sampled_from([None, 5, 10**9]))
        group = a_group(f"g{number}", "evil", least, draw(st.integers(0, 2000)), schedule_timeout_seconds=seconds)
        spec = {"priority": draw(st.sampled_from([0, 0, 10]))}
        groups.append(group)
        every_pod += members(group, placeable, cpu=cpu, **spec)
        every_pod += members(group, nowhere, first=placeable, node_selector=NOWHERE, **spec)
    return groups, every_pod


@settings(max_examples=max(1, EXAMPLES // 4))
@given(groups_that_cannot_be_placed())
def test_no_gang_waits_ten_times_as_long_beside(hostile: Hostile) -> None:
    moment = bound_at(hostile)
    assert moment is not None
    assert moment < TIMES * ENDS_AT
