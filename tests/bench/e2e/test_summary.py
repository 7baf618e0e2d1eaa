"""Medians over rounds, ratios within a round, and how a table shows them."""

from __future__ import annotations

from dataclasses import replace

from tests.bench.e2e.runs import a_run

from mooring.bench.e2e.measurement import Latency
from mooring.bench.e2e.summary import Summary, summarize
from mooring.bench.e2e.tables import table


def found(runs, contender: str, workload: str = "basic") -> Summary:
    return next(each for each in summarize(runs) if (each.contender, each.workload) == (contender, workload))


def test_a_figure_is_the_median_of_its_rounds():
    runs = [a_run("mooring", number, pods_per_second=rate) for number, rate in enumerate([500.0, 900.0, 700.0])]
    assert found(runs, "mooring").pods_per_second == 700.0


def test_ratios_are_those_of_one_round():
    """The machine was half as fast in the second round: the shares are alike all the same."""
    runs = [
        a_run("bare", 1, pods_per_second=1000.0),
        a_run("mooring", 1, pods_per_second=800.0),
        a_run("kube-scheduler", 1, pods_per_second=200.0),
        a_run("bare", 2, pods_per_second=500.0),
        a_run("mooring", 2, pods_per_second=400.0),
        a_run("kube-scheduler", 2, pods_per_second=100.0),
    ]
    summary = found(runs, "mooring")
    assert (summary.share_of_bare, summary.times_kube_scheduler) == (0.8, 4.0)


def test_workloads_are_not_mixed():
    runs = [a_run("bare", 1, pods_per_second=1000.0), a_run("mooring", 1, "spread", pods_per_second=800.0)]
    assert found(runs, "mooring", "spread").share_of_bare is None


def test_lost_events_and_unbound_pods_add_up():
    runs = [a_run("mooring", 1, bound=10, events=8), a_run("mooring", 2, bound=9, events=9)]
    summary = found(runs, "mooring")
    assert (summary.events_lost, summary.unbound) == (2, 1)


def test_a_client_without_events_has_lost_none():
    assert found([a_run("bare", 1, events=None)], "bare").events_lost is None


def test_a_table_shows_gangs_where_there_are_some():
    gangs = [a_run("mooring", number, "gangs", gangs_per_second=rate) for number, rate in enumerate([50.0, 90.0, 70.0])]
    assert "70.0" in table(summarize(gangs))
    assert "gangs/s" in table(summarize(gangs))
    assert "gangs/s" not in table(summarize([a_run("mooring", 1, pods_per_second=617.0)]))


def test_a_table_shows_names_to_the_left_and_figures_to_the_right():
    runs = [
        a_run("bare", 1, pods_per_second=1234.0, events=None),
        replace(a_run("mooring", 1, pods_per_second=617.0), latency=Latency(0.5, 0.9, 0.99, 1.0)),
    ]
    header, bare, ours = table(summarize(runs)).splitlines()
    assert header.split()[:3] == ["workload", "contender", "pods/s"]
    assert bare.split()[:5] == ["basic", "bare", "1,234", "100%", "-"]
    assert ours.split()[:5] == ["basic", "mooring", "617", "50%", "-"]
    assert bare.index("1,234") + 2 == ours.index("617")
