"""Sweeps on a Dask cluster: worker processes of its own, one of which dies midway."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from distributed import Client, LocalCluster

from mooring.framework import Cycle, NodeView, Plugin, Pod
from mooring.simulator import Arrival, Cluster, SweepProgress, Workload, profile, sweep
from mooring.testing import a_node_object, a_pod

pytestmark = pytest.mark.real

WORKERS = 3


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """Of a local cluster of several worker processes, each restarted when it dies."""
    with (
        LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            local_directory=str(tmp_path / "dask"),
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def run(x: int, folder: str) -> list[dict[str, Any]]:
    """A curve of ten points; one run kills its worker, the first time that it begins."""
    marker = Path(folder) / "died"
    if x == 7 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return [{"point": point, "y": x * point, "process": os.getpid()} for point in range(10)]


def test_runs_of_a_worker_that_dies_are_repeated_and_nothing_counts_twice(client: Client, tmp_path: Path):
    out = tmp_path / "results.parquet"
    result = sweep({"x": range(40)}, run, common={"folder": str(tmp_path)}, executor=client.get_executor(), out=out)
    assert (tmp_path / "died").exists()
    assert not result.failed
    rows = [(row["x"], row["point"], row["y"]) for row in result.rows]
    assert rows == [(x, point, x * point) for x in range(40) for point in range(10)]
    assert pl.read_parquet(out).select("x", "point", "y").rows() == rows
    assert len({row["process"] for row in result.rows}) >= 2


def test_a_run_that_kills_every_worker_is_named_and_the_others_finish(client: Client):
    def deadly(x: int) -> dict[str, int]:
        if x == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"y": x}

    result = sweep({"x": range(6)}, deadly, executor=client.get_executor())
    [failed] = result.failed
    assert failed.labels == {"x": 3}
    assert "KilledWorker" in str(failed.error)
    assert [row["y"] for row in result.rows if "y" in row] == [0, 1, 2, 4, 5]


class LargestFirst(Plugin):
    """Prefers large nodes."""

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return min(100, node.allocatable("cpu") // 1000)


def test_a_stopped_sweep_of_simulations_resumes_on_dask(client: Client, tmp_path: Path):
    cluster = Cluster([a_node_object("large", cpu="64"), a_node_object("small", cpu="8")])
    workload = Workload([Arrival(float(number), a_pod(f"pod-{number}", cpu="1")) for number in range(5)])
    mine = profile(enable=[LargestFirst], weights={"LargestFirst": 100})
    grid = {
        "cluster": cluster,
        "workload": workload,
        "configuration": {"default": None, "largest": mine},
        "seed": range(6),
    }

    def stop(progress: SweepProgress) -> None:
        if progress.done == 4:
            raise KeyboardInterrupt

    def on_large(result: Any) -> dict[str, int]:
        return {"large": sum(pod.node == "large" for pod in result.pods)}

    out = tmp_path / "results.parquet"
    stopped = sweep(grid, measure=on_large, executor=client.get_executor(), out=out, progress=stop)
    assert stopped.is_interrupted
    assert len(stopped.runs) >= 4
    result = sweep(grid, measure=on_large, executor=client.get_executor(), out=out)
    assert result.restored == len(stopped.runs)
    assert [(row["configuration"], row["seed"]) for row in result.rows] == [
        (name, seed) for name in ("default", "largest") for seed in range(6)
    ]
    assert [row["large"] for row in result.rows if row["configuration"] == "largest"] == [5] * 6
