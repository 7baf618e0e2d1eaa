"""What `decide` and `assume` cost per pod: the default profile over a table of nodes.

CPU time of this process, so that a busy machine disturbs little; compare two figures of one run or of one machine.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from mooring.base.memory import keep_collector_calm
from mooring.bench.workloads import WORKLOADS, Workload
from mooring.config import default_configuration
from mooring.engine import Decision, DecisionCache, Profile, decide
from mooring.framework import Plugin
from mooring.framework.points import points_of
from mooring.objects import Pod
from mooring.objects.placed import placed
from mooring.plugins.catalogue import catalogue
from mooring.scheduler.introspection.decision_log import DecisionLog
from mooring.state import State
from mooring.testing import Services, a_plugin

WARM_UP = 50


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


def measure(workload: str, nodes: int, pods: int, running: int = 0, added: Sequence[type[Plugin]] = ()) -> DecisionCost:
    """Decide so many pods of a workload, one after the other, each assumed before the next."""
    wanted, services = WORKLOADS[workload], Services()
    profile, state, cache = default_profile(services, added), services.state, DecisionCache()
    fill(services, wanted, nodes, running)
    waiting = [wanted.incoming(number) for number in range(pods + WARM_UP)]
    keep_collector_calm()  # as the scheduler does when the first lists have come
    for seed, pod in enumerate(waiting[:WARM_UP]):
        _assume(state, decide(profile, pod, state, seed=seed, cache=cache))
    return _timed(workload, nodes, profile, state, cache, waiting[WARM_UP:])


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


def _timed(
    workload: str, nodes: int, profile: Profile, state: State, cache: DecisionCache, waiting: Sequence[Pod]
) -> DecisionCost:
    decision_log = DecisionLog(Services().clock)
    deciding = assuming = reporting = 0
    for seed, pod in enumerate(waiting):
        began = time.process_time_ns()
        decision = decide(profile, pod, state, seed=seed, cache=cache)
        decided = time.process_time_ns()
        _assume(state, decision)
        assumed = time.process_time_ns()
        decision_log.write(pod, decision.record())
        reported = time.process_time_ns()
        deciding += decided - began
        assuming += assumed - decided
        reporting += reported - assumed
    each = len(waiting) * 1000
    seconds = (deciding + assuming) / 1e9
    return DecisionCost(workload, nodes, deciding / each, assuming / each, reporting / each, len(waiting) / seconds)


def _assume(state: State, decision: Decision) -> None:
    """The pod is where it was decided to be; where room was to be made, as if the victims had gone at once."""
    node, plan = decision.node, decision.plan
    if plan is not None:
        for victim in plan.evict:
            state.remove_pod(victim.uid)
        node = plan.nominate
    if node is not None:
        state.assume(decision.pod, node, 0.0)
