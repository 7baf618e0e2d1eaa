"""Samples of a second, percentiles by nearest rank, thresholds."""

from __future__ import annotations

import pytest

from mooring.bench.scheduler_perf.results import DataItem, Run, judge
from mooring.bench.scheduler_perf.throughput import ThroughputSamples, percentiles
from mooring.bench.scheduler_perf.workload_files import THROUGHPUT, MetricSelector

SAMPLES: dict[str, tuple[list[tuple[float, int]], list[float]]] = {
    "seconds before the first pod do not count": ([(1, 0), (2, 0), (3, 10), (4, 30)], [20.0]),
    "the first second with a pod is left out": ([(1, 100), (2, 110)], [10.0]),
    "one sample is none": ([(1, 100)], []),
    "an empty second is spread over the next sample": ([(1, 10), (2, 10), (3, 10), (4, 40)], [10.0, 10.0, 10.0]),
    "empty seconds at the end do not count": ([(1, 10), (2, 20), (3, 20)], [10.0]),
    "a late sample counts its own time": ([(1, 10), (3, 30)], [10.0]),
}


@pytest.mark.parametrize(("taken", "rates"), SAMPLES.values(), ids=SAMPLES.keys())
def test_rates_of_samples(taken: list[tuple[float, int]], rates: list[float]):
    samples = ThroughputSamples()
    for now, scheduled in taken:
        samples.take(now, scheduled)
    assert samples.rates == rates


def test_percentiles_are_values_that_occurred():
    values = [float(each) for each in range(1, 101)]
    assert percentiles(values) == {"Perc50": 50.0, "Perc90": 90.0, "Perc95": 95.0, "Perc99": 99.0}
    assert percentiles([3.0, 1.0, 2.0]) == {"Perc50": 2.0, "Perc90": 3.0, "Perc95": 3.0, "Perc99": 3.0}


def test_the_summary_has_the_average_of_the_samples():
    samples = ThroughputSamples(rates=[10.0, 20.0, 60.0])
    assert samples.summary() == {"Average": 30.0, "Perc50": 20.0, "Perc90": 60.0, "Perc95": 60.0, "Perc99": 60.0}
    assert ThroughputSamples().summary() == {}


def an_item(metric: str, **data: float) -> DataItem:
    return DataItem(data, "pods/s", {"Metric": metric, "result": "scheduled"})


VERDICTS = {
    "more than the threshold passes": (an_item(THROUGHPUT, Average=101.0), MetricSelector(), True),
    "exactly the threshold does not pass": (an_item(THROUGHPUT, Average=100.0), MetricSelector(), False),
    "where less is better": (
        an_item("m", Perc99=99.0),
        MetricSelector(name="m", data_bucket="Perc99", expect_lower=True),
        True,
    ),
    "another metric is not measured": (an_item("m", Average=500.0), MetricSelector(), None),
    "a run without samples is not measured": (an_item(THROUGHPUT), MetricSelector(), None),
    "labels must match": (
        an_item("m", Average=500.0),
        MetricSelector(name="m", labels={"result": "error"}),
        None,
    ),
}


@pytest.mark.parametrize(("item", "selector", "passed"), VERDICTS.values(), ids=VERDICTS.keys())
def test_a_threshold_of_100(item: DataItem, selector: MetricSelector, passed: bool | None):
    verdict = judge([item], 100.0, selector)
    assert verdict is not None
    assert verdict.passed is passed


def test_without_a_threshold_there_is_no_verdict():
    assert judge([an_item(THROUGHPUT, Average=1.0)], 0.0, MetricSelector()) is None


def test_the_rate_of_a_run_is_between_its_first_and_last_pod():
    assert Run(case="c", scheduler="s", pods=101, seconds=2.0).pods_per_second == 50.0
    assert Run(case="c", scheduler="s", pods=1, seconds=0.0).pods_per_second is None
