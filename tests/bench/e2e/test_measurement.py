"""Rates and quantiles of a run."""

from __future__ import annotations

import pytest

from mooring.bench.e2e.measurement import Latency, gangs_bound_at, latency_of, quantile, rate

QUANTILES = {
    "the middle of three": ([1.0, 2.0, 9.0], 0.5, 2.0),
    "between two": ([1.0, 2.0], 0.5, 1.5),
    "the only one": ([4.0], 0.99, 4.0),
    "the first": ([1.0, 2.0, 3.0], 0.0, 1.0),
    "the last": ([1.0, 2.0, 3.0], 1.0, 3.0),
}


@pytest.mark.parametrize(("ordered", "part", "expected"), QUANTILES.values(), ids=QUANTILES.keys())
def test_a_quantile_lies_between_its_neighbours(ordered, part, expected):
    assert quantile(ordered, part) == pytest.approx(expected)


def test_latency_does_not_depend_on_the_order_of_pods():
    seconds = [each / 100 for each in range(101)]
    assert latency_of(seconds[::-1]) == latency_of(seconds) == Latency(0.5, 0.9, 0.99, 1.0)
    assert latency_of([]) is None


GANGS = {
    "the last pod counts": ([["a", "b"]], [2.0]),
    "in the order of time": ([["c"], ["a"], ["b"]], [1.0, 2.0, 3.0]),
    "a gang that is not whole has no time": ([["a", "missing"], ["b"]], [2.0]),
    "no gangs": ([], []),
}


@pytest.mark.parametrize(("gangs", "times"), GANGS.values(), ids=GANGS.keys())
def test_a_gang_is_bound_when_its_last_pod_is(gangs, times):
    assert gangs_bound_at(gangs, {"a": 1.0, "b": 2.0, "c": 3.0}) == times


def test_a_rate_counts_the_intervals():
    assert rate([10.0, 10.5, 11.0]) == 2.0


@pytest.mark.parametrize("times", [[], [1.0], [1.0, 1.0]])
def test_too_few_bindings_have_no_rate(times):
    assert rate(times) is None
