"""What one run measured, and the statistics of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Run:
    """One contender, one workload, one round. Figures that a run does not have are None."""

    scenario: str
    workload: str
    contender: str
    round: int
    nodes: int
    running: int
    pods: int
    bound: int
    pods_per_second: float | None = None
    """From the first binding to the last, as a watch shows them."""
    gangs_per_second: float | None = None
    """Likewise: a gang is bound when its last pod is."""
    arrivals_per_second: float | None = None
    """At which pods were created while the scheduler ran."""
    first_binding_seconds: float | None = None
    """After the start of the process."""
    cpu_ms_per_pod: float | None = None
    """Of the process and its children: from their start until the last event; with arrivals, from the first arrival
    until the last binding."""
    start_cpu_seconds: float | None = None
    """CPU time until the first binding; with arrivals, until the first arrival."""
    peak_mib: float | None = None
    server_cpu_ms_per_pod: float | None = None
    """Of kube-apiserver, from the start of the process until the last binding."""
    events: int | None = None
    """Pods with a Scheduled event."""
    event_lag_seconds: float | None = None
    """From the last binding to the last event."""
    latency: Latency | None = None
    others_bound_seconds: float | None = None
    """From the first arrival until the last of the other pods was bound: those of a wave of preemptions."""
    nodes_used: int = 0
    most_pods_on_a_node: int = 0
    trouble: str = ""
    """Why not all pods were bound."""

    @property
    def events_lost(self) -> int | None:
        return None if self.events is None else self.bound - self.events


@dataclass(frozen=True)
class Latency:
    """Seconds from the creation of a pod, or the start of the scheduler where that was later, to its binding."""

    p50: float
    p90: float
    p99: float
    longest: float


def latency_of(seconds: Sequence[float]) -> Latency | None:
    if not seconds:
        return None
    ordered = sorted(seconds)
    p50, p90, p99 = (quantile(ordered, part) for part in (0.50, 0.90, 0.99))
    return Latency(p50, p90, p99, ordered[-1])


def quantile(ordered: Sequence[float], part: float) -> float:
    """Between the two nearest of them, as far as the part reaches."""
    place = (len(ordered) - 1) * part
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def gangs_bound_at(gangs: Iterable[Sequence[str]], bound_at: Mapping[str, float]) -> list[float]:
    """When each gang was bound whole, in the order of time. A gang of which a pod is not bound has no such time."""
    return sorted(max(map(bound_at.__getitem__, pods)) for pods in gangs if all(pod in bound_at for pod in pods))


def rate(times: Sequence[float]) -> float | None:
    """Per second, between the first and the last of these ordered times."""
    if len(times) < 2 or times[-1] <= times[0]:
        return None
    return (len(times) - 1) / (times[-1] - times[0])
