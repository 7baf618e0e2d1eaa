"""The table of a benchmark: for each workload its schedulers, each with its rate relative to the last one's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from statistics import median

from mooring.bench.scheduler_perf.results import Run
from mooring.bench.scheduler_perf.selection import CaseChoice
from mooring.bench.scheduler_perf.throughput import PERCENTILES

ATTEMPTS = "scheduler_scheduling_attempt_duration_seconds"
BUCKETS = ("Average", *(f"Perc{each}" for each in PERCENTILES))
HEADINGS = (
    *("workload", "scheduler", "pods/s", "p50", "p90", "p95", "p99", "threshold", "ratio"),
    *("CPU ms", "MiB", "attempt ms p50", "p99", ""),
)
"""Pods a second by upstream's samples, CPU time a pod, the most memory, and the duration of attempts."""
NOTHING = "-"


def rows(runs: Sequence[Run]) -> Iterator[list[str]]:
    """One for each workload and scheduler; of several rounds the medians."""
    for _, of_case in groupby(runs, key=lambda run: run.case):
        rounds: dict[str, list[Run]] = {}
        for run in of_case:
            rounds.setdefault(run.scheduler, []).append(run)
        compared = _median(rounds[list(rounds)[-1]], _rate)
        for each in rounds.values():
            yield _row(each, compared)


def _row(rounds: list[Run], compared: float | None) -> list[str]:
    rate = _median(rounds, _rate)
    is_sampled = _median(rounds, _bucket("Average")) is not None
    average = _number(rate, "" if is_sampled else "~")
    percentiles = [_number(_median(rounds, _bucket(bucket))) for bucket in BUCKETS[1:]]
    ratio = f"{rate / compared:.2f}" if rate and compared else NOTHING
    cpu = _median(rounds, lambda run: run.cpu_seconds / run.pods * 1000 if run.pods else None)
    attempts = [_median(rounds, _attempt(bucket)) for bucket in ("Perc50", "Perc99")]
    return [
        rounds[0].case,
        rounds[0].scheduler,
        average,
        *percentiles,
        _verdict(rounds),
        ratio,
        _decimal(cpu),
        _number(_median(rounds, lambda run: run.peak_mib or None)),
        *(_decimal(each) for each in attempts),
        "; ".join(dict.fromkeys(run.error.splitlines()[0] for run in rounds if run.error)),
    ]


def _verdict(rounds: Iterable[Run]) -> str:
    """The worst of them."""
    verdicts = [run.verdict for run in rounds if run.verdict is not None]
    if not verdicts:
        return NOTHING
    words = {False: "failed", None: "not measured", True: "passed"}
    worst = min(verdicts, key=lambda verdict: list(words).index(verdict.passed))
    return f"{worst.threshold:g} {words[worst.passed]}"


def summary(run: Run) -> str:
    """One line about a run that has ended."""
    if run.error:
        return f"failed: {run.error}"
    average = run.throughput.get("Average")
    if average is not None:
        return f"{average:.0f} pods/s"
    return f"{run.pods} pods in {run.seconds:.1f} s, too short for samples"


def not_run(choices: Iterable[CaseChoice]) -> Iterator[tuple[str, str]]:
    """Workloads that were left out for some scheduler, and why."""
    for choice in choices:
        if choice.impossible:
            yield choice.case.name, choice.impossible
        elif choice.not_with_mooring:
            yield choice.case.name, f"with Mooring: {choice.not_with_mooring}"


def _rate(run: Run) -> float | None:
    return run.throughput.get("Average") or run.pods_per_second


def _bucket(name: str) -> Callable[[Run], float | None]:
    return lambda run: run.throughput.get(name)


def _attempt(bucket: str) -> Callable[[Run], float | None]:
    def read(run: Run) -> float | None:
        item = run.item(ATTEMPTS, {"result": "scheduled"})
        return None if item is None else item.data[bucket]

    return read


def _median(runs: Iterable[Run], read: Callable[[Run], float | None]) -> float | None:
    values = [value for run in runs if (value := read(run)) is not None]
    return median(values) if values else None


def _number(value: float | None, mark: str = "") -> str:
    return NOTHING if value is None else f"{mark}{value:.0f}"


def _decimal(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"
