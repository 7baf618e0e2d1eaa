"""The benchmark of simulations runs what it claims; no test limits how long it takes."""

import pytest

from mooring.bench.simulations import measure
from mooring.bench.workloads import WORKLOADS


@pytest.mark.parametrize("workload", sorted(WORKLOADS))
def test_every_workload_can_be_simulated(workload):
    figure = measure(workload, nodes=5, pods=10, rate=10.0, run_seconds=60.0)
    assert (figure.pods, figure.nodes) == (10, 5)
    assert figure.cpu_seconds > 0
    assert figure.peak_megabytes > 1


def test_a_gang_arrives_pod_by_pod_and_is_bound_whole():
    figure = measure("gangs", nodes=5, pods=15, rate=1.0, run_seconds=None)
    assert (figure.bound, figure.simulated_seconds) == (15, 14.0)


def test_pods_run_and_end():
    figure = measure("basic", nodes=1, pods=10, rate=1.0, run_seconds=30.0)
    assert (figure.bound, figure.simulated_seconds) == (10, 39.0)
