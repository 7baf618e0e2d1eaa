"""A decision with a cache is the decision without one, whatever has happened since the cache was filled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from mooring.bench.decide import default_profile
from mooring.engine import Decision, DecisionCache, Profile, decide
from mooring.engine.time_budget import AttemptTimeout, TimeBudget
from mooring.framework import UNRESOLVABLE, Plugin, Point, Reads, Rejection, Rejections, ToMax
from mooring.framework.points import points_of
from mooring.objects import Node, ObjectMeta, Pod
from mooring.objects.core import Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.objects.placed import placed
from mooring.objects.workloads import Service, ServiceSpec
from mooring.testing import (
    Services,
    a_constraint,
    a_node_object,
    a_pod,
    a_taint,
    a_term,
    a_toleration,
    pod_rules,
    requires,
)

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
STEPS = 150


class Busy(Plugin):
    """Declares all it reads: the pods on the node and the pod's class; scores far beyond 100 are scaled."""

    reads = Reads.PODS
    normalizer = ToMax(reverse=True)

    def sign(self, pod: Pod) -> Any:
        return pod.labels.get("class")

    def filter(self, pod: Pod, node: Any, cycle: Any) -> Any:
        return Rejection("busy") if len(node.pods) > 6 and pod.labels.get("class") == "quiet" else None

    def __init__(self) -> None:
        self.is_interrupted = False

    def score(self, pod: Pod, node: Any, cycle: Any) -> int:
        if self.is_interrupted:
            self.is_interrupted = False
            raise AttemptTimeout
        return 70 * len(node.pods) + (pod.labels.get("class") == "quiet")


class Labelled(Plugin):
    """Reads the node alone, and all of its rules are for many nodes at once."""

    reads = Reads.NODE
    normalizer = ToMax()

    def __init__(self) -> None:
        self.bias = 0

    def sign(self, pod: Pod) -> Any:
        return pod.labels.get("class", "")

    def pre_filter(self, pod: Pod, cycle: Any) -> Any:
        return self.bias

    def filter_nodes(self, pod: Pod, nodes: Any, cycle: Any) -> Iterator[Rejections]:
        yield Rejections(nodes.where_label("closed", lambda value: value is not None), "closed", unresolvable=True)
        is_late = nodes.where_label("late", lambda value: value is not None and cycle.filter_state(self) % 3 == 2)
        yield Rejections(is_late, "late")

    def pre_score(self, pod: Pod, feasible: Any, cycle: Any) -> Any:
        return self.bias

    def score_nodes(self, pod: Pod, nodes: Any, cycle: Any) -> Any:
        return nodes.label_numbers("rank", lambda value: int(value or 0) * 1000 + cycle.score_state(self))


class Whimsical(Plugin):
    """Declares nothing. Its results depend on more than it is given, and it fails at times."""

    def __init__(self) -> None:
        self.mood = 0
        self.interrupts = ""

    def filter(self, pod: Pod, node: Any, cycle: Any) -> Any:
        self._may_fail("filter", node)
        return Rejection("no mood", code=UNRESOLVABLE) if (node.row + self.mood) % 7 == 0 else None

    def score(self, pod: Pod, node: Any, cycle: Any) -> int:
        self._may_fail("score", node)
        return int(node.row * 5 + self.mood) % 50

    def normalize(self, pod: Pod, nodes: Any, scores: Any, cycle: Any) -> Any:
        return scores * 2

    def _may_fail(self, point: str, node: Any) -> None:
        if self.interrupts == point:
            self.interrupts = ""
            raise AttemptTimeout
        if "broken" in node.labels:
            raise RuntimeError(f"{node.name} is broken")


class Strict(Plugin):
    """Declares what it reads, and fails on nodes that filters before it have rejected. Its scores are added as is."""

    reads = Reads.NODE

    def __init__(self) -> None:
        self.bias = 0

    def sign(self, pod: Pod) -> Any:
        return ()

    def pre_score(self, pod: Pod, feasible: Any, cycle: Any) -> Any:
        return self.bias % 5

    def filter(self, pod: Pod, node: Any, cycle: Any) -> Any:
        if "closed" in node.labels:
            raise RuntimeError("a closed node must not come here")

    def score(self, pod: Pod, node: Any, cycle: Any) -> int:
        if "closed" in node.labels:
            raise RuntimeError("nor here")
        return len(node.labels) + int(cycle.score_state(self))


NAMED = NodeSelectorTerm(
    match_fields=(NodeSelectorRequirement(key="metadata.name", operator="In", values=("node-1", "node-2")),)
)
TEMPLATES: dict[str, Callable[[], dict[str, Any]]] = {
    "plain": lambda: {"cpu": "500m", "memory": "1Gi"},
    "quiet": lambda: {"cpu": "500m", "memory": "1Gi", "labels": {"class": "quiet"}},
    "large": lambda: {"cpu": "3", "memory": "2Gi", "labels": {"class": "large"}},
    "tolerant": lambda: {"cpu": "100m", "tolerations": [a_toleration("dedicated=db:NoSchedule")]},
    "zonal": lambda: {"cpu": "200m", "affinity": requires([(ZONE, "In", ["zone-0", "zone-1"])])},
    "spread": lambda: {
        "cpu": "200m",
        "labels": {"app": "spread"},
        "spread": [
            a_constraint(ZONE, skew=1, labels={"app": "spread"}),
            a_constraint(HOSTNAME, skew=2, soft=True, labels={"app": "spread"}),
        ],
    },
    "near": lambda: {
        "cpu": "200m",
        "labels": {"app": "near"},
        "affinity": pod_rules(near=[a_term({"app": "near"}, ZONE)]),
    },
    "away": lambda: {
        "cpu": "200m",
        "labels": {"app": "away"},
        "affinity": pod_rules(
            away=[a_term({"app": "away"}, HOSTNAME)], rather_near=[(10, a_term({"app": "spread"}, ZONE))]
        ),
    },
    "served": lambda: {"cpu": "200m", "labels": {"app": "served"}},
    "named": lambda: {
        "cpu": "200m",
        "affinity": Affinity(node_affinity=NodeAffinity(required=NodeSelector(node_selector_terms=(NAMED,)))),
    },
    "ports": lambda: {"cpu": "100m", "ports": [8080]},
    "impossible": lambda: {"cpu": "900"},
}


@dataclass
class History:
    """Random events, each followed by a decision with the cache and one without."""

    seed: int
    services: Services = field(default_factory=Services)
    cache: DecisionCache = field(default_factory=DecisionCache)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.state = self.services.state
        self.busy, self.labelled, self.whimsical, self.strict = Busy(), Labelled(), Whimsical(), Strict()
        # Only some histories have a plugin that declares nothing, or fails: the others are cached as a whole.
        more: list[Plugin] = [self.busy, self.labelled]
        more += [self.whimsical] if self.seed % 3 == 0 else []
        more += [self.strict] if self.seed % 4 == 0 else []
        self.profile = extended(default_profile(self.services), more, at_front=self.seed % 2 == 0)
        self.services.objects(Service).put(
            Service(
                metadata=ObjectMeta(name="served", namespace="default"), spec=ServiceSpec(selector={"app": "served"})
            )
        )
        self.number = 0
        self.placed: list[str] = []
        for place in range(14):
            self.state.set_node(self.a_node(place))

    def a_node(self, place: int) -> Node:
        random = self.random
        labels = {ZONE: f"zone-{place % 3}", HOSTNAME: f"node-{place}", "rank": str(random.randrange(4))}
        for label, chance in (("closed", 0.1), ("late", 0.2), ("broken", 0.02)):
            if random.random() < chance:
                labels[label] = ""
        if random.random() < 0.1:
            del labels[ZONE]
        taints = [a_taint("dedicated=db:NoSchedule")] if random.random() < 0.15 else []
        taints += [a_taint("slow=:PreferNoSchedule")] if random.random() < 0.2 else []
        return a_node_object(
            f"node-{place}",
            cpu=random.choice(["2", "4", "8"]),
            memory="16Gi",
            pods=random.choice([4, 20]),
            labels=labels,
            taints=taints,
            unschedulable=random.random() < 0.1,
        )

    def a_pod(self, kind: str | None = None) -> Pod:
        self.number += 1
        kind = kind or self.random.choice(list(TEMPLATES)[: 3 if self.seed % 2 else None])
        made = TEMPLATES[kind]()
        if self.random.random() < 0.3:  # of the same family, and like no other pod
            made["memory"] = f"{self.number}Mi"
        return a_pod(f"{kind}-{self.number}", uid=f"uid-{self.number}", priority=self.random.choice([0, 0, 5]), **made)

    def happen(self) -> None:
        random, state = self.random, self.state
        match random.choice(
            ["node", "node", "no node", "pod", "pod", "gone", "gone", "many", "nominate", "mood", "state"]
        ):
            case "node":
                state.set_node(self.a_node(random.randrange(20)))
            case "no node":
                state.remove_node(f"node-{random.randrange(20)}")
            case "pod":
                pod = self.a_pod()
                state.set_pod(placed(pod, f"node-{random.randrange(20)}"))
                self.placed.append(pod.uid)
            case "gone" if self.placed:
                state.remove_pod(self.placed.pop(random.randrange(len(self.placed))))
            case "many":  # more rows than are evaluated one by one
                for place in range(14):
                    state.set_node(self.a_node(place))
            case "nominate":
                pod = self.a_pod()
                state.nominations.set(pod, f"node-{random.randrange(14)}")
                if random.random() < 0.7:
                    state.nominations.remove(pod.uid)
            case "mood":
                self.whimsical.mood += 1
            case "state":
                self.labelled.bias += random.randrange(3)
                self.strict.bias += 1

    def decide(self, pod: Pod) -> Decision:
        """With the cache and without; the two are equal."""
        seed, start = self.random.randrange(100), self.random.randrange(9)
        budget = TimeBudget(60.0)
        if self.random.random() < 0.1:
            # Interrupted: nothing of it may remain. The decision after it is the one compared.
            self.whimsical.interrupts = self.random.choice(["filter", "score", ""])
            self.busy.is_interrupted = not self.whimsical.interrupts
            decide(self.profile, pod, self.state, seed=seed, start=start, cache=self.cache, budget=budget)
            self.whimsical.interrupts, self.busy.is_interrupted = "", False
            budget.renew()
        found = decide(self.profile, pod, self.state, seed=seed, start=start, cache=self.cache, budget=budget)
        expected = decide(self.profile, pod, self.state, seed=seed, start=start)
        assert described(found) == described(expected)
        return found

    def run(self) -> None:
        kind = None
        for _ in range(STEPS):
            if self.random.random() < 0.4:
                self.happen()
            if self.random.random() < 0.5:
                kind = self.random.choice(list(TEMPLATES))
            pod = self.a_pod(kind)
            decision = self.decide(pod)
            if decision.node is not None and self.random.random() < 0.8:
                self.state.assume(pod, decision.node, 0.0)
                self.placed.append(pod.uid)


def extended(profile: Profile, plugins: list[Plugin], *, at_front: bool) -> Profile:
    """With more plugins, before or after the default ones."""
    points = {}
    for point in Point:
        more = [(plugin, 2) for plugin in plugins if point in points_of(type(plugin))]
        there = list(profile.points.get(point, ()))
        points[point] = more + there if at_front else there + more
    return Profile(profile.name, points)


def described(decision: Decision) -> dict[str, Any]:
    columns = decision.columns()
    return {
        "evidence": decision.evidence(),
        "message": decision.message,
        "rejectors": decision.rejectors,
        "rejections": dict(decision.rejections),
        "next start": decision.next_start,
        "fault": str(decision.fault),
        "scores": columns
        and {
            "nodes": columns.nodes,
            "total": columns.total.tolist(),
            "raw": {name: column.tolist() for name, column in columns.raw.items()},
            "normalized": {name: column.tolist() for name, column in columns.normalized.items()},
            "weights": columns.weights,
        },
    }


@pytest.mark.parametrize("seed", range(24))
def test_whatever_happens_a_cache_changes_no_decision(seed: int) -> None:
    History(seed).run()
