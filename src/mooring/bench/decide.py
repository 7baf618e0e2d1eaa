"""What `decide` and `assume` cost per pod: the default profile over a table of nodes.

CPU time of this process, so that a busy machine disturbs little; compare two figures of one run or of one machine.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from statistics import median

from mooring.base.memory import keep_collector_calm
from mooring.bench.workloads import WORKLOADS, Workload
from mooring.config import default_configuration
from mooring.engine import Decision, DecisionCache, Profile, decide
from mooring.framework import Plugin
from mooring.framework.points import points_of
from mooring.objects.placed import placed
from mooring.plugins.catalogue import catalogue
from mooring.scheduler.introspection.decision_log import DecisionLog
from mooring.state import State
from mooring.testing import Services, a_plugin

WARM_UP = 50
TURN = 20
"""So many pods are decided with one profile before it is the other's turn: what disturbs the machine disturbs both."""


@dataclass(frozen=True)
class DecisionCost:
    """One workload's cost, in millionths of a second of CPU per pod."""

    workload: str
    nodes: int
    decide_micros: float
    assume_micros: float
    evidence_micros: float
    pods_per_second: float
    """Decided and assumed, by one core that does nothing else."""
    added: tuple[str, ...] = ()
    """The plugins in the profile besides the default ones."""
    share: float = 1.0
    """Of the pods per second without them."""


def default_profile(services: Services | None = None, added: Sequence[type[Plugin]] = ()) -> Profile:
    """kube-scheduler's default plugins, as far as there are any, as the scheduler would build them.

    `added`: plugins that run after them, as `multiPoint` adds plugins.
    """
    registry, given = catalogue(), services or Services()
    profile = default_configuration(registry).profiles[0]
    instances = {entry.name: a_plugin(entry.cls, given) for entry in registry if entry.name in profile.used_plugins}
    points = {point: [(instances[use.name], use.weight) for use in uses] for point, uses in profile.points.items()}
    for cls in added:
        instance = a_plugin(cls, given)
        for point in points_of(cls):
            points.setdefault(point, []).append((instance, 1))
    return Profile(profile.scheduler_name, points)


def measure(
    workload: str, nodes: int, pods: int, running: int = 0, added: Sequence[type[Plugin]] = (), rounds: int = 1
) -> list[DecisionCost]:
    """Decide so many pods of a workload, one after the other, each assumed before the next. Medians of the rounds.

    If there are `added` plugins, the default profile and one with them decide some pods each in turn.
    """
    profiles: list[Sequence[type[Plugin]]] = [(), added] if added else [()]
    turns = [_round(workload, nodes, pods, running, profiles) for _ in range(rounds)]
    shares = [turn[-1].pods_per_second / turn[0].pods_per_second for turn in turns]
    costs = [_median(each) for each in zip(*turns, strict=True)]
    costs[-1] = replace(costs[-1], added=tuple(cls.name for cls in added), share=median(shares))
    return costs


def _round(
    workload: str, nodes: int, pods: int, running: int, profiles: Sequence[Sequence[type[Plugin]]]
) -> list[DecisionCost]:
    runs = [_Run(workload, nodes, pods, running, added) for added in profiles]
    for decided in range(0, pods, TURN):
        for run in runs:
            run.decide(min(TURN, pods - decided))
    return [run.cost for run in runs]


def _median(costs: Sequence[DecisionCost]) -> DecisionCost:
    figures = ("decide_micros", "assume_micros", "evidence_micros", "pods_per_second")
    return replace(costs[0], **{figure: median(getattr(each, figure) for each in costs) for figure in figures})


class _Run:
    """A profile that decides pods of a workload, over a cluster of its own."""

    def __init__(self, workload: str, nodes: int, pods: int, running: int, added: Sequence[type[Plugin]]) -> None:
        wanted, services = WORKLOADS[workload], Services()
        self._workload, self._nodes = workload, nodes
        self._profile, self._state, self._cache = default_profile(services, added), services.state, DecisionCache()
        self._log = DecisionLog(services.clock)
        fill(services, wanted, nodes, running)
        incoming = [wanted.incoming(number) for number in range(WARM_UP + pods)]
        for pod in incoming:
            self._state.set_pending(pod)
        self._waiting = enumerate(incoming)
        keep_collector_calm()  # as the scheduler does when the first lists have come
        self._reset()
        self.decide(WARM_UP)
        self._reset()

    def _reset(self) -> None:
        self._decided = self._deciding = self._assuming = self._reporting = 0

    def decide(self, pods: int) -> None:
        """Decide the next pods."""
        for seed, pod in islice(self._waiting, pods):
            began = time.process_time_ns()
            decision = decide(self._profile, pod, self._state, seed=seed, cache=self._cache)
            decided = time.process_time_ns()
            _assume(self._state, decision)
            assumed = time.process_time_ns()
            self._log.write(pod, decision.record())
            reported = time.process_time_ns()
            self._deciding += decided - began
            self._assuming += assumed - decided
            self._reporting += reported - assumed
        self._decided += pods

    @property
    def cost(self) -> DecisionCost:
        nanos = (self._deciding, self._assuming, self._reporting)
        deciding, assuming, reporting = (each / 1000 / self._decided for each in nanos)
        return DecisionCost(self._workload, self._nodes, deciding, assuming, reporting, 1e6 / (deciding + assuming))


def fill(services: Services, wanted: Workload, nodes: int, running: int) -> None:
    for item in wanted.objects():
        services.objects(type(item)).put(item)
    names = []
    for number in range(nodes):
        node = wanted.node(number)
        services.state.set_node(node)
        names.append(node.name)
    for number in range(running):
        services.state.set_pod(placed(wanted.running(number), names[number % nodes]))


def _assume(state: State, decision: Decision) -> None:
    """The pod is where it was decided to be; where room was to be made, as if the victims had gone at once."""
    node, plan = decision.node, decision.plan
    if plan is not None:
        for victim in plan.evict:
            state.remove_pod(victim.uid)
        node = plan.nominate
    if node is not None:
        state.assume(decision.pod, node, 0.0)
