"""Medians over the rounds, and ratios between contenders of the same round."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from mooring.bench.e2e.contenders import BARE
from mooring.bench.e2e.measurement import Run
from mooring.bench.programs import KUBE_SCHEDULER


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One contender and workload. Each figure is the median of its rounds; one that no round has is None."""

    scenario: str
    workload: str
    contender: str
    rounds: int
    pods_per_second: float | None
    gangs_per_second: float | None
    share_of_bare: float | None
    """Of the bare bind rate in the same round."""
    times_kube_scheduler: float | None
    """kube-scheduler's rate in the same round is 1."""
    cpu_ms_per_pod: float | None
    start_cpu_seconds: float | None
    peak_mib: float | None
    first_binding_seconds: float | None
    event_lag_seconds: float | None
    events_lost: int | None
    """In all rounds together."""
    unbound: int
    """Pods without a node at the end of a run, in all rounds together."""
    server_cpu_ms_per_pod: float | None
    latency_p50_seconds: float | None
    latency_p90_seconds: float | None
    latency_p99_seconds: float | None
    arrivals_per_second: float | None
    others_bound_seconds: float | None


def summarize(runs: Sequence[Run]) -> list[Summary]:
    """In the order in which contenders and workloads first occur."""
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.scenario, run.workload, run.contender), []).append(run)
    return [_summary(group, runs) for group in groups.values()]


def _summary(group: Sequence[Run], runs: Sequence[Run]) -> Summary:
    def middle(figure: Callable[[Run], float | None]) -> float | None:
        return _median(figure(run) for run in group)

    first = group[0]
    lost = [run.events_lost for run in group if run.events_lost is not None]
    return Summary(
        scenario=first.scenario,
        workload=first.workload,
        contender=first.contender,
        rounds=len(group),
        pods_per_second=middle(lambda run: run.pods_per_second),
        gangs_per_second=middle(lambda run: run.gangs_per_second),
        share_of_bare=middle(lambda run: _ratio(run, runs, BARE)),
        times_kube_scheduler=middle(lambda run: _ratio(run, runs, KUBE_SCHEDULER)),
        cpu_ms_per_pod=middle(lambda run: run.cpu_ms_per_pod),
        start_cpu_seconds=middle(lambda run: run.start_cpu_seconds),
        peak_mib=middle(lambda run: run.peak_mib),
        first_binding_seconds=middle(lambda run: run.first_binding_seconds),
        event_lag_seconds=middle(lambda run: run.event_lag_seconds),
        events_lost=sum(lost) if lost else None,
        unbound=sum(run.pods - run.bound for run in group),
        server_cpu_ms_per_pod=middle(lambda run: run.server_cpu_ms_per_pod),
        latency_p50_seconds=middle(lambda run: run.latency.p50 if run.latency else None),
        latency_p90_seconds=middle(lambda run: run.latency.p90 if run.latency else None),
        latency_p99_seconds=middle(lambda run: run.latency.p99 if run.latency else None),
        arrivals_per_second=middle(lambda run: run.arrivals_per_second),
        others_bound_seconds=middle(lambda run: run.others_bound_seconds),
    )


def _ratio(run: Run, runs: Iterable[Run], contender: str) -> float | None:
    """This run's rate by that of the other contender in the same round."""
    for other in runs:
        is_comparable = (other.scenario, other.workload, other.round) == (run.scenario, run.workload, run.round)
        if is_comparable and other.contender == contender and run.pods_per_second and other.pods_per_second:
            return run.pods_per_second / other.pods_per_second
    return None


def _median(figures: Iterable[float | None]) -> float | None:
    known = [each for each in figures if each is not None]
    return median(known) if known else None
