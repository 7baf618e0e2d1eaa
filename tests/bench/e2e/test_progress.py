"""Progress names each run and estimates the rest from those that are over."""

from __future__ import annotations

from tests.bench.e2e.runs import a_run

from mooring.bench.e2e.rounds import Progress


def test_the_rest_is_estimated_from_the_runs_that_are_over():
    lines, now = list[str](), [100.0]
    progress = Progress(3, lines.append, lambda: now[0])
    progress.begins("basic, round 1 of 1: bare")
    now[0] += 10
    progress.ends(a_run("bare", pods_per_second=1234.0))
    progress.begins("basic, round 1 of 1: mooring")
    now[0] += 110
    progress.ends(a_run("mooring", pods_per_second=617.0))
    progress.begins("basic, round 1 of 1: kube-scheduler")
    now[0] += 10
    progress.ends(a_run("kube-scheduler", bound=0, trouble="it ended with exit code 1."))
    assert lines == [
        "[1/3] basic, round 1 of 1: bare: 1,234 pods/s; about 20 s left",
        "[2/3] basic, round 1 of 1: mooring: 617 pods/s; about 60 s left",
        "[3/3] basic, round 1 of 1: kube-scheduler: nothing to measure, 10 pods without a node",
        "  kube-scheduler: it ended with exit code 1.",
    ]
