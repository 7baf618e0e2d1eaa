"""The benchmark runs and measures what it claims; no test limits how long it takes."""

import pytest

from mooring.bench.decide import default_profile, measure
from mooring.bench.workloads import WORKLOADS
from mooring.framework import Point


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_workload_can_be_measured(workload):
    figure = measure(workload, nodes=5, pods=10, running=5)
    assert figure.workload == workload
    assert figure.decide_micros > 0


def test_the_default_profile_is_measured():
    assert "NodeResourcesFit" in [plugin.name for plugin in default_profile().at(Point.FILTER)]
