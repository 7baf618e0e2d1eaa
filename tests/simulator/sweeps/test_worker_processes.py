"""Worker processes: sweeps over several, deaths of workers, and programs without a main guard."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mooring.simulator import sweep
from mooring.simulator.sweeps.worker_processes import WorkerDied, WorkerProcesses


def die_once(x: int, folder: str) -> dict[str, int]:
    """One run kills its worker, the first time."""
    marker = Path(folder) / "died"
    if x == 2 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    with (Path(folder) / f"computed-{x}").open("a") as file:
        file.write("x")
    return {"process": os.getpid()}


def test_the_run_of_a_dead_worker_is_repeated_and_no_other(tmp_path):
    result = sweep({"x": range(6)}, die_once, common={"folder": str(tmp_path)}, workers=2)
    assert [row["x"] for row in result.rows] == list(range(6))
    assert not result.failed
    assert (tmp_path / "died").exists()
    assert [path.read_text() for path in sorted(tmp_path.glob("computed-*"))] == ["x"] * 6
    assert os.getpid() not in {row["process"] for row in result.rows}


def test_a_run_that_kills_every_worker_is_named(tmp_path):
    def run(x):
        if x == 1:
            os._exit(7)
        return {"y": x}

    result = sweep({"x": [0, 1, 2]}, run, workers=1, out=tmp_path / "results.parquet")
    assert [row.get("y") for row in result.rows] == [0, None, 2]
    [failed] = result.failed
    assert failed.labels == {"x": 1}
    assert failed.error == "the worker process ended with exit code 7; this happened 3 times with this run"


def test_an_interrupted_sweep_ends_its_workers(tmp_path):
    def progress(_):
        raise KeyboardInterrupt

    def run(x):
        if x:
            signal.pause()  # until it is killed
        return {"process": os.getpid()}

    result = sweep({"x": [0, 1, 2]}, run, workers=1, progress=progress)
    assert result.is_interrupted
    [row] = result.rows
    with pytest.raises(ProcessLookupError):
        os.kill(row["process"], 0)


def test_the_executor_returns_results_and_exceptions():
    with WorkerProcesses(1) as executor:
        assert executor.submit(divmod, 7, 2).result() == (3, 1)
        with pytest.raises(ZeroDivisionError):
            executor.submit(divmod, 7, 0).result()
        with pytest.raises(WorkerDied, match="was killed by SIGTERM"):
            executor.submit(signal.raise_signal, signal.SIGTERM).result()
        assert executor.submit(abs, -1).result() == 1
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(abs, 1)


PROGRAM = '''
from typing import Annotated

from msgspec import Meta

from mooring.framework import Args, Cycle, NodeView, Plugin, Pod
from mooring.simulator import Arrival, Cluster, Workload, profile, sweep
from mooring.testing import a_node_object, a_pod


class FavouriteArgs(Args):
    node: Annotated[str, Meta(min_length=1, description="Its name.")]
    others: list[str] = []


class Favourite(Plugin):
    """Prefers a node."""

    def __init__(self, args: FavouriteArgs) -> None:
        self._node = args.node

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return 100 if node.name == self._node else 0


cluster = Cluster([a_node_object("a"), a_node_object("b"), a_node_object("c")])
workload = Workload([Arrival(0.0, a_pod("web"))])
configurations = {
    name: profile(enable=[Favourite], weights={"Favourite": 100}, args={"Favourite": {"node": name}}) for name in "bc"
}
result = sweep(
    {"cluster": cluster, "workload": workload, "configuration": configurations},
    measure=lambda result: {"node": result.pods[0].node},
    workers=1,
)
print([row["node"] for row in result.rows], *result.failed)
'''


def test_a_program_on_standard_input_sweeps_with_a_plugin_of_its_own():
    found = subprocess.run([sys.executable, "-"], input=PROGRAM, capture_output=True, text=True, check=False)
    assert (found.stderr, found.stdout) == ("", "['b', 'c']\n")
