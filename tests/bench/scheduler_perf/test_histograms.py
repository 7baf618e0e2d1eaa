"""What was observed between two scrapes, and its quantiles."""

from __future__ import annotations

import math

import pytest

from mooring.bench.scheduler_perf.histograms import Histogram, Scrape, label_sets
from mooring.bench.scheduler_perf.workload_files import LabelValues

NAME = "scheduler_attempt_seconds"


def exposition(*series: tuple[str, list[tuple[str, int]], float]) -> str:
    lines = [f"# TYPE {NAME} histogram"]
    for result, buckets, total in series:
        lines += [f'{NAME}_bucket{{profile="p",result="{result}",le="{bound}"}} {count}' for bound, count in buckets]
        lines.append(f'{NAME}_sum{{profile="p",result="{result}"}} {total}')
        lines.append(f'{NAME}_count{{profile="p",result="{result}"}} {buckets[-1][1]}')
    return "\n".join(lines)


BEFORE = exposition(("scheduled", [("0.1", 10), ("1", 10), ("+Inf", 10)], 1.0))
AFTER = exposition(
    ("scheduled", [("0.1", 10), ("1", 30), ("+Inf", 30)], 11.0), ("error", [("0.1", 5), ("1", 5), ("+Inf", 5)], 0.2)
)


def test_what_came_before_the_measurement_is_subtracted():
    found = Scrape(AFTER, [NAME]).since(Scrape(BEFORE, [NAME]), NAME, {"result": "scheduled"})
    assert (found.count, found.total) == (20, 10.0)
    assert found.summary()["Average"] == 500.0


def test_series_with_the_same_wanted_labels_are_added():
    found = Scrape(AFTER, [NAME]).since(Scrape("", [NAME]), NAME, {"profile": "p"})
    assert found.count == 35


def test_a_metric_that_is_not_served_has_no_values():
    assert Scrape("", [NAME]).since(Scrape("", [NAME]), NAME, {}).count == 0


QUANTILES = {
    "inside the first bucket": (0.05, 0.05),
    "linear inside a bucket": (0.55, 0.55),
    "above the last bound": (0.99, 1.0),
}


@pytest.mark.parametrize(("share", "value"), QUANTILES.values(), ids=QUANTILES.keys())
def test_quantiles_of_100_values(share: float, value: float):
    """Ten up to 0.1, eighty more up to 0.9, two more up to 1, and eight above."""
    histogram = Histogram({0.1: 10.0, 0.9: 90.0, 1.0: 92.0, math.inf: 100.0}, 100.0, 50.0)
    assert histogram.quantile(share) == pytest.approx(value)


def test_all_combinations_of_label_values():
    assert label_sets([LabelValues("a", ["1", "2"]), LabelValues("b", ["x"])]) == [
        {"a": "1", "b": "x"},
        {"a": "2", "b": "x"},
    ]
    assert label_sets(None) == [{}]
