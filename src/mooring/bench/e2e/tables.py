"""Summaries as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mooring.bench.e2e.summary import Summary

_GAP = "  "
Column = tuple[str, Callable[[Summary], str]]


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _events(each: Summary) -> str:
    return "-" if each.events_lost is None else str(each.events_lost)


COLUMNS: tuple[Column, ...] = (
    ("workload", lambda each: each.workload),
    ("contender", lambda each: each.contender),
    ("pods/s", lambda each: _number(each.pods_per_second, ",.0f")),
    ("of bare", lambda each: _number(each.share_of_bare, ".0%")),
    ("x kube", lambda each: _number(each.times_kube_scheduler, ".2f")),
    ("CPU ms/pod", lambda each: _number(each.cpu_ms_per_pod, ".2f")),
    ("of it start s", lambda each: _number(each.start_cpu_seconds, ".2f")),
    ("MiB", lambda each: _number(each.peak_mib, ".0f")),
    ("first s", lambda each: _number(each.first_binding_seconds, ".2f")),
    ("event lag s", lambda each: _number(each.event_lag_seconds, ".1f")),
    ("lost", _events),
    ("p50 s", lambda each: _number(each.latency_p50_seconds, ".3f")),
    ("p99 s", lambda each: _number(each.latency_p99_seconds, ".3f")),
    ("unbound", lambda each: str(each.unbound)),
)
_LEFT = 2
"""So many columns are names; the others are figures, which stand to the right."""
LEGEND = (
    "pods/s: first to last binding. of bare: share of the rate at which a client only posts bindings, in the same "
    "round. x kube: kube-scheduler is 1.\n"
    "CPU ms/pod: of the whole process from its start to the last event; start s: the part until the first binding. "
    "first s: first binding after the start.\n"
    "event lag: from the last binding to the last Scheduled event. p50, p99: from the creation of a pod, or the start "
    "where that was later, to its binding."
)


def table(summaries: Sequence[Summary]) -> str:
    rows = [[title for title, _ in COLUMNS], *([cell(each) for _, cell in COLUMNS] for each in summaries)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(_GAP.join(_cells(row, widths)).rstrip() for row in rows)


def _cells(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [
        f"{cell:<{width}}" if at < _LEFT else f"{cell:>{width}}"
        for at, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
