"""Summaries as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mooring.bench.e2e.summary import Summary

_GAP = "  "
Column = tuple[str, Callable[[Summary], str]]


def _figure(name: str, form: str, scale: float = 1.0) -> Callable[[Summary], str]:
    def cell(summary: Summary) -> str:
        value = getattr(summary, name)
        return "-" if value is None else format(value * scale, form)

    return cell


NAMES: tuple[Column, ...] = (("workload", lambda each: each.workload), ("contender", lambda each: each.contender))
COSTS: tuple[Column, ...] = (
    ("CPU ms/pod", _figure("cpu_ms_per_pod", ".2f")),
    ("start CPU s", _figure("start_cpu_seconds", ".2f")),
    ("MiB", _figure("peak_mib", ".0f")),
    ("first s", _figure("first_binding_seconds", ".2f")),
)
GANGS: Column = ("gangs/s", _figure("gangs_per_second", ",.1f"))
DRAIN: tuple[Column, ...] = (
    *NAMES,
    ("pods/s", _figure("pods_per_second", ",.0f")),
    GANGS,
    ("of bare", _figure("share_of_bare", ".0%")),
    ("x kube", _figure("times_kube_scheduler", ".2f")),
    *COSTS,
    ("event lag s", _figure("event_lag_seconds", ".1f")),
    ("lost", _figure("events_lost", ",.0f")),
    ("p50 s", _figure("latency_p50_seconds", ".2f")),
    ("p99 s", _figure("latency_p99_seconds", ".2f")),
    ("unbound", _figure("unbound", ",.0f")),
)
ARRIVALS: tuple[Column, ...] = (
    *NAMES,
    ("arrivals/s", _figure("arrivals_per_second", ",.0f")),
    ("p50 ms", _figure("latency_p50_seconds", ",.1f", 1000)),
    ("p90 ms", _figure("latency_p90_seconds", ",.1f", 1000)),
    ("p99 ms", _figure("latency_p99_seconds", ",.1f", 1000)),
    ("bound/s", _figure("pods_per_second", ",.0f")),
    *COSTS,
    ("wave s", _figure("others_bound_seconds", ".1f")),
    ("unbound", _figure("unbound", ",.0f")),
)
DRAIN_LEGEND = (
    "pods/s: first to last binding. of bare: share of the rate at which a client only posts bindings, in the same "
    "round. x kube: kube-scheduler is 1.\n"
    "CPU ms/pod: of the whole process from its start to the last event; start CPU s: the part until the first binding, "
    "which comes first s after the start.\n"
    "event lag: from the last binding to the last Scheduled event; lost: pods without one. p50, p99: from the start of "
    "the scheduler to a pod's binding."
)
GANGS_LEGEND = "gangs/s: first to last gang; a gang is bound when its last pod is."
ARRIVALS_LEGEND = (
    "p50, p90, p99: from the creation of a pod to its binding. CPU ms/pod: from the first arrival to the last binding; "
    "start CPU s: before.\n"
    "first s: first binding after the start of the scheduler. wave s: from the first arrival until all preempting pods "
    "were bound."
)


def table(summaries: Sequence[Summary]) -> str:
    """Names to the left, figures to the right."""
    columns = [each for each in _columns(summaries) if each is not GANGS or _have_gangs(summaries)]
    rows = [[title for title, _ in columns], *([cell(each) for _, cell in columns] for each in summaries)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(_GAP.join(_cells(row, widths)).rstrip() for row in rows)


def legend(summaries: Sequence[Summary]) -> str:
    if _are_arrivals(summaries):
        return ARRIVALS_LEGEND
    return f"{DRAIN_LEGEND}\n{GANGS_LEGEND}" if _have_gangs(summaries) else DRAIN_LEGEND


def _columns(summaries: Sequence[Summary]) -> tuple[Column, ...]:
    return ARRIVALS if _are_arrivals(summaries) else DRAIN


def _are_arrivals(summaries: Sequence[Summary]) -> bool:
    return any(each.arrivals_per_second is not None for each in summaries)


def _have_gangs(summaries: Sequence[Summary]) -> bool:
    return any(each.gangs_per_second is not None for each in summaries)


def _cells(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [
        f"{cell:<{width}}" if at < len(NAMES) else f"{cell:>{width}}"
        for at, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
