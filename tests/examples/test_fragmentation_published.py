"""Runs of the fragmentation example equal the published curves to the last digit, where the trace is at hand.

The trace is not ours to distribute: `FGD_TRACE` names its folder, or it is beside the project.
"""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import pytest
from examples.fragmentation.__main__ import one_run
from examples.fragmentation.arrivals import order_of
from examples.fragmentation.evaluation import SEEDS, run
from examples.fragmentation.published import equal_points, read_curves
from examples.fragmentation.sampling import LOADS, METRICS
from examples.fragmentation.trace import generator_of, read_trace, typical_pods, workloads_in
from tests.examples.conftest import EXAMPLES

from mooring.simulator import sweep

FOLDER = Path(os.environ.get("FGD_TRACE") or EXAMPLES.parents[1] / "shared" / "simulation" / "fgd")

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        not workloads_in(FOLDER), reason=f"the openb trace is not at {FOLDER}; FGD_TRACE names another folder"
    ),
]


def digest(numbers: Sequence[int]) -> str:
    return hashlib.sha256(",".join(map(str, numbers)).encode()).hexdigest()[:16]


def test_every_run_has_the_published_order_of_pods_and_nodes():
    with (FOLDER / "checks.csv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert rows
    traces = {workload: read_trace(FOLDER, workload) for workload in {row["workload"] for row in rows}}
    for row in rows:
        trace = traces[row["workload"]]
        order = order_of(trace, generator_of(FOLDER, int(row["seed"])))
        assert (digest(order.arrivals), digest(order.ranks)) == (row["order_sha256_16"], row["ranks_sha256_16"])
        assert len(typical_pods(trace.pods)) == int(row["typical_classes"])


@pytest.mark.parametrize(
    ("workload", "policy", "seed"),
    [
        *(("default", policy, 42) for policy in ("DotProd", "GpuClustering", "GpuPacking", "BestFit", "FGD")),
        ("default", "FGD", 49),
        ("gpuspec33", "FGD", 42),
        ("multigpu50", "FGD", 42),
    ],
)
def test_a_run_equals_the_published_one(workload: str, policy: str, seed: int):
    curves, published = run(FOLDER, workload, policy, seed).samples.curves(), read_curves(FOLDER)
    assert published is not None
    equal = {metric: equal_points(curves[metric], published[workload, policy, seed, metric]) for metric in METRICS}
    assert equal == dict.fromkeys(METRICS, len(LOADS))


def test_random_placement_has_the_published_mean():
    grid = {"workload": ["default"], "policy": ["Random"], "seed": list(SEEDS)}
    rows, published = sweep(grid, one_run, common={"folder": str(FOLDER)}).rows, read_curves(FOLDER)
    assert published is not None
    for load in LOADS:
        ours = fmean(row["alloc"][load] for row in rows)
        theirs = fmean(float(published["default", "Random", seed, "alloc"][load]) for seed in SEEDS)
        assert abs(ours - theirs) < 0.3, f"at {load} %: {ours:.2f}, published {theirs:.2f}"
