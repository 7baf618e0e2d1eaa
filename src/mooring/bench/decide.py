"""What `decide` and `assume` cost per pod: the default profile over a table of equal nodes.

CPU time of this process, so that a busy machine disturbs little; compare two figures of one run or of one machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mooring.config import default_configuration
from mooring.engine import Decision, Profile, decide
from mooring.objects import Pod
from mooring.plugins.catalogue import catalogue
from mooring.scheduler.journal import Journal
from mooring.state import State
from mooring.testing import Services, a_node_object, a_plugin, a_pod, requires

ZONES = 10
WARM_UP = 50


@dataclass(frozen=True)
class Figure:
    """One workload's cost, in millionths of a second of CPU per pod."""

    workload: str
    nodes: int
    decide_micros: float
    assume_micros: float
    evidence_micros: float


_IN_TWO_ZONES = requires([("zone", "In", ["zone-1", "zone-2"])])


def _basic(number: int) -> Pod:
    return a_pod(f"pod-{number}", cpu="100m", memory="500Mi")


def _unlike(number: int) -> Pod:
    cpu, memory = 50 + number * 37 % 400, 100 + number * 53 % 900
    return a_pod(f"pod-{number}", cpu=f"{cpu}m", memory=f"{memory}Mi")


def _node_affinity(number: int) -> Pod:
    return a_pod(f"pod-{number}", cpu="100m", memory="500Mi", affinity=_IN_TWO_ZONES)


def _too_big(number: int) -> Pod:
    return a_pod(f"pod-{number}", cpu="64")


WORKLOADS: dict[str, Callable[[int], Pod]] = {
    "basic": _basic,
    "hetero": _unlike,
    "nodeaffinity": _node_affinity,
    "refused": _too_big,
}


def default_profile() -> Profile:
    """kube-scheduler's default plugins, as far as there are any, as the scheduler would build them."""
    registry = catalogue()
    profile = default_configuration(registry).profiles[0]
    instances = {entry.name: a_plugin(entry.cls) for entry in registry if entry.name in profile.used_plugins}
    points = {point: [(instances[use.name], use.weight) for use in uses] for point, uses in profile.points.items()}
    return Profile(profile.scheduler_name, points)


def measure(workload: str, nodes: int, pods: int) -> Figure:
    """Decide so many pods of a workload, one after the other, each assumed before the next."""
    profile, state, make = default_profile(), State(), WORKLOADS[workload]
    for number in range(nodes):
        labels = {"zone": f"zone-{number % ZONES}"}
        state.set_node(a_node_object(f"node-{number:05d}", cpu="32", memory="128Gi", labels=labels))
    waiting = [make(number) for number in range(pods + WARM_UP)]
    for seed, pod in enumerate(waiting[:WARM_UP]):
        _assume(state, decide(profile, pod, state, seed=seed))
    return _timed(workload, nodes, profile, state, waiting[WARM_UP:])


def _timed(workload: str, nodes: int, profile: Profile, state: State, waiting: Sequence[Pod]) -> Figure:
    journal = Journal(Services().clock)
    deciding = assuming = telling = 0
    for seed, pod in enumerate(waiting):
        began = time.process_time_ns()
        decision = decide(profile, pod, state, seed=seed)
        decided = time.process_time_ns()
        _assume(state, decision)
        assumed = time.process_time_ns()
        journal.write(pod, decision.evidence())
        told = time.process_time_ns()
        deciding, assuming, telling = deciding + decided - began, assuming + assumed - decided, telling + told - assumed
    each = len(waiting) * 1000
    return Figure(workload, nodes, deciding / each, assuming / each, telling / each)


def _assume(state: State, decision: Decision) -> None:
    if decision.node is not None:
        state.assume(decision.pod, decision.node, 0.0)
