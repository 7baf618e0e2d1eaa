"""Rows of the table: medians of rounds, ratios to the last scheduler, the worst verdict."""

from __future__ import annotations

from pathlib import Path

from tests.bench.scheduler_perf.cases import a_case

from mooring.bench.scheduler_perf.reporting import HEADINGS, not_run, rows, summary
from mooring.bench.scheduler_perf.results import DataItem, Run, Verdict
from mooring.bench.scheduler_perf.selection import choice
from mooring.bench.scheduler_perf.workload_files import THROUGHPUT

MEASURED = "- {opcode: createPods, count: 5, collectMetrics: true}"


def a_run(scheduler: str, average: float | None, *, passed: bool | None = True, error: str = "") -> Run:
    data = {} if average is None else {"Average": average, "Perc50": average, "Perc90": average}
    items = [DataItem(data, "pods/s", {"Metric": THROUGHPUT})]
    verdict = Verdict(100.0, average, passed)
    return Run(
        case="c",
        scheduler=scheduler,
        pods=11,
        seconds=0.5,
        cpu_seconds=0.022,
        items=items,
        verdict=verdict,
        error=error,
    )


def test_a_row_for_each_scheduler_with_its_ratio_to_the_last():
    ours, other = (dict(zip(HEADINGS, row, strict=True)) for row in rows([a_run("a", 300.0), a_run("b", 150.0)]))
    assert (ours["scheduler"], ours["pods/s"], ours["ratio"], ours["CPU ms"]) == ("a", "300", "2.00", "2.00")
    assert (other["scheduler"], other["ratio"]) == ("b", "1.00")


def test_of_several_rounds_the_medians_and_the_worst_verdict():
    (row,) = rows([a_run("a", 100.0, passed=False), a_run("a", 300.0), a_run("a", 200.0)])
    found = dict(zip(HEADINGS, row, strict=True))
    assert (found["pods/s"], found["threshold"]) == ("200", "100 failed")


def test_a_short_run_shows_its_rate_from_the_first_to_the_last_pod():
    (row,) = rows([a_run("a", None, passed=None)])
    found = dict(zip(HEADINGS, row, strict=True))
    assert (found["pods/s"], found["p50"], found["threshold"]) == ("~20", "-", "100 not measured")


def test_the_first_line_of_an_error_is_in_the_row():
    (row,) = rows([a_run("a", None, error="it ended\nmany lines of log")])
    assert row[-1] == "it ended"


def test_the_line_of_a_run():
    assert summary(a_run("a", 300.0)) == "300 pods/s"
    assert summary(a_run("a", None)) == "11 pods in 0.5 s, too short for samples"
    assert summary(a_run("a", None, error="no")) == "failed: no"


def test_what_was_not_run_has_its_reason(tmp_path: Path):
    impossible = choice(a_case(tmp_path, MEASURED, workload="featureGates: {NoSuchGate: true}"))
    without = choice(a_case(tmp_path, MEASURED, workload="featureGates: {GangScheduling: true}"))
    found = [reason for _, reason in not_run([impossible, without, choice(a_case(tmp_path, MEASURED))])]
    assert found[0] == "feature gate NoSuchGate is not known"
    assert found[1].startswith("with Mooring: GangScheduling")
    assert len(found) == 2
