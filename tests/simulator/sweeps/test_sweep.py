"""Sweeps in this process: rows by run, files that resume, runs that fail, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mooring.base.errors import Fault, OperatorMistake
from mooring.simulator import Arrival, Cluster, SweepProgress, Workload, profile, sweep
from mooring.simulator.sweeps.progress import ProgressLines
from mooring.simulator.sweeps.worker import RunRequest
from mooring.testing import a_node_object, a_pod


class Inline(Executor):
    """Computes what is submitted at once, in this process, and keeps the requests."""

    def __init__(self) -> None:
        self.requests: list[RunRequest] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.requests.append(args[0])
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class LastFirst(Inline):
    """Finishes the first four runs in another order than they were submitted."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((future, lambda: fn(*args, **kwargs)))
        if len(self.waiting) >= 4:
            for waiting, call in reversed(self.waiting):
                if not waiting.done():
                    waiting.set_result(call())
        return future


def square(x: int) -> dict[str, Any]:
    return {"square": x * x}


def interrupt_after(runs: int) -> Callable[[SweepProgress], None]:
    def progress(now: SweepProgress) -> None:
        if now.done == runs:
            raise KeyboardInterrupt

    return progress


def computed(executor: Inline) -> int:
    return len(executor.requests)


def test_rows_are_in_the_order_of_the_runs():
    result = sweep({"x": [1, 2, 3, 4]}, square, executor=LastFirst(), workers=2)
    assert result.rows == [{"x": x, "square": x * x} for x in (1, 2, 3, 4)]
    assert result.frame().columns == ["x", "square"]


def test_a_run_may_return_several_rows_or_none():
    result = sweep({"x": [0, 2]}, lambda x: [{"i": i} for i in range(x)], executor=Inline())
    assert result.rows == [{"x": 2, "i": 0}, {"x": 2, "i": 1}]
    assert str(result) == "2 of 2 runs finished."


def test_a_run_that_fails_does_not_stop_the_others():
    result = sweep({"x": [0, 1]}, lambda x: {"y": 1 / x}, executor=Inline())
    assert [run.labels for run in result.failed] == [{"x": 0}]
    assert "1 of 2 runs finished.\n1 failed:\n  x=0: ZeroDivisionError: division by zero" in str(result)
    assert result.frame().columns == ["x", "y", "error"]
    assert result.frame()["y"].to_list() == [None, 1.0]


def test_a_value_is_sent_to_each_worker_and_not_with_each_run():
    executor = Inline()
    numbers = list(range(1000))
    sweep(
        {"x": range(20)},
        lambda x, numbers: {"y": x + len(numbers)},
        common={"numbers": numbers},
        executor=executor,
        workers=1,
    )
    assert sum(bool(request.sent) for request in executor.requests) == 1


def test_progress_has_rate_and_remaining_time():
    seen: list[SweepProgress] = []
    sweep({"x": [0, 1]}, lambda x: {"y": 1 / x}, executor=Inline(), progress=seen.append)
    assert [(now.done, now.failed, now.total) for now in seen] == [(1, 1, 2), (2, 1, 2)]
    shown = SweepProgress(total=100, restored=20, done=10, failed=1, seconds=5.0)
    assert str(shown) == "30 of 100 runs (1 failed), 2.0 runs/s, about 35 s left"
    assert shown.remaining_seconds == 35.0


def test_lines_of_progress_are_five_seconds_apart(capsys):
    times = iter([0.0, 1.0, 5.0, 5.0, 6.0])
    lines = ProgressLines(lambda: next(times))
    for done in (1, 2, 3):
        lines(SweepProgress(total=10, restored=0, done=done, failed=0, seconds=float(done)))
    assert capsys.readouterr().err == "sweep: 2 of 10 runs, 1.0 runs/s, about 8 s left\n"


def test_a_notebook_shows_the_summary_and_the_first_rows():
    shown = sweep({"x": ["<b>"]}, lambda x: {"curve": [1, len(x)]}, executor=Inline())._repr_html_()
    assert "1 of 1 runs finished." in shown
    assert "<td>&lt;b&gt;</td><td>2 values</td>" in shown


# Simulations


def cluster() -> Cluster:
    return Cluster([a_node_object("n", cpu="4")])


def workload(seed: int) -> Workload:
    return Workload([Arrival(0.0, a_pod(f"pod-{number}", cpu="3")) for number in range(seed)])


def test_without_a_function_runs_are_simulations():
    grid = {"cluster": cluster(), "workload": {"w": workload}, "configuration": {"default": None}, "seed": [1, 2]}
    result = sweep(grid, measure=lambda result: {"nodes": len({pod.node for pod in result.bound})}, executor=Inline())
    assert [(row["seed"], row["pods"], row["bound"], row["nodes"]) for row in result.rows] == [
        (1, 1, 1, 1),
        (2, 2, 1, 1),
    ]


def test_configurations_may_be_functions_of_parameters():
    made = []

    def configuration(weight: int) -> Any:
        made.append(weight)
        return profile(weights={"NodeResourcesFit": weight})

    common = {"cluster": cluster(), "workload": workload(1), "configuration": configuration}
    result = sweep([{"weight": 1}, {"weight": 3}], common=common, executor=Inline())
    assert [(row["weight"], row["bound"]) for row in result.rows] == [(1, 1), (3, 1)]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no cluster": ({"parameters": {"workload": workload(1)}}, "cluster\n.*is missing"),
    "a path": ({"parameters": {"cluster": "c.yaml", "workload": workload}}, r"cluster\n.*Cluster\.read\(path\)"),
    "a parameter that nothing takes": (
        {"parameters": {"cluster": cluster(), "workload": workload(1), "sed": [1]}},
        'sed\n.*taken by no simulation.*Did you mean "seed"',
    ),
    "a function of a parameter that is missing": (
        {"parameters": {"cluster": cluster(), "workload": workload}},
        'workload\n.*takes "seed"',
    ),
    "a function that takes others": ({"parameters": {"y": [1]}, "run": square}, r"square\(\)\n.*does not take"),
    "measure beside a function": (
        {"parameters": {"x": [1]}, "run": square, "measure": dict},
        "measure= is about simulations",
    ),
    "a value that cannot be sent": (
        {"parameters": {"x": {"generator": (each for each in [1])}}, "run": square},
        'The parameter "x" cannot be sent to worker processes: cannot pickle',
    ),
    "a file of another kind": ({"parameters": {"x": [1]}, "run": square, "out": "x.csv"}, "must end in .parquet"),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_mistakes_are_refused_before_a_run_begins(arguments, message):
    executor = Inline()
    with pytest.raises(OperatorMistake, match=message):
        sweep(**arguments, executor=executor)
    assert not executor.requests


@pytest.mark.parametrize("library", ["cloudpickle", "polars"])
def test_a_library_that_is_not_installed_is_named_with_its_command(library, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(OperatorMistake, match=rf"needs? {library}.*pip install {library}"):
        sweep({"x": [1]}, square, executor=Inline(), out=tmp_path / "results.parquet")


def test_a_broken_executor_is_reported_with_the_runs_it_had():
    class Broken(Inline):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            if len(self.requests) < 2:
                return super().submit(fn, *args, **kwargs)
            future: Future[Any] = Future()
            future.set_exception(BrokenExecutor("A process died."))
            return future

    with pytest.raises(Fault, match=r"The executor broke: A process died.* \[x=\d\].*2 of 3 runs have finished"):
        sweep({"x": [1, 2, 3]}, square, executor=Broken(), workers=1)


def test_an_executor_that_was_shut_down_is_reported():
    class Closed(Inline):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            raise RuntimeError("cannot schedule new futures after shutdown")

    with pytest.raises(Fault, match="cannot schedule new futures after shutdown"):
        sweep({"x": [1]}, square, executor=Closed())


# Files


def test_a_file_has_the_rows_in_the_order_of_the_runs_and_the_same_bytes(tmp_path):
    for name, executor in {"a": Inline(), "b": LastFirst()}.items():
        sweep({"x": [1, 2, 3, 4]}, square, executor=executor, workers=2, out=tmp_path / f"{name}.parquet")
    assert pl.read_parquet(tmp_path / "a.parquet").to_dicts() == [{"x": x, "square": x * x} for x in (1, 2, 3, 4)]
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.parquet", "b.parquet"]


def test_a_stopped_sweep_keeps_its_runs_and_resumes(tmp_path):
    out = tmp_path / "results.parquet"
    stopped = sweep({"x": range(5)}, square, executor=Inline(), workers=1, out=out, progress=interrupt_after(2))
    assert stopped.is_interrupted
    assert [row["x"] for row in stopped.rows] == [0, 1]
    assert not out.exists()
    assert pl.read_parquet(tmp_path / "results.parquet.parts/*.parquet")["square"].to_list() == [0, 1]

    executor = Inline()
    resumed = sweep({"x": range(5)}, square, executor=executor, out=out)
    assert computed(executor) == 3
    assert resumed.rows == [{"x": x, "square": x * x} for x in range(5)]
    assert str(resumed) == "5 of 5 runs finished, 2 of them in an earlier call."
    fresh = tmp_path / "fresh.parquet"
    sweep({"x": range(5)}, square, executor=Inline(), out=fresh)
    assert fresh.read_bytes() == out.read_bytes()


def test_a_grid_that_grew_computes_what_is_new(tmp_path):
    out, executor = tmp_path / "results.parquet", Inline()
    sweep({"x": range(3)}, square, executor=Inline(), out=out)
    assert len(sweep({"x": range(5)}, square, executor=executor, out=out).rows) == 5
    assert computed(executor) == 2


def test_runs_without_rows_are_not_repeated(tmp_path):
    out, executor = tmp_path / "results.parquet", Inline()
    for _ in range(2):
        result = sweep({"x": [0, 1]}, lambda x: [{"i": i} for i in range(x)], executor=executor, out=out)
        assert result.rows == [{"x": 1, "i": 0}]
    assert computed(executor) == 2


def test_failed_runs_are_recorded_and_repeated(tmp_path):
    out, fuse = tmp_path / "results.parquet", tmp_path / "fuse"

    def run(x, fuse):
        if x == 1 and not Path(fuse).exists():
            raise ValueError("not yet")
        return {"y": x}

    parameters: dict[str, Any] = {"parameters": {"x": [1, 2]}, "run": run, "common": {"fuse": str(fuse)}}
    assert len(sweep(**parameters, executor=Inline(), out=out).failed) == 1
    assert pl.read_parquet(out)["error"].str.contains("ValueError: not yet").to_list() == [True, None]
    fuse.touch()
    executor = Inline()
    assert sweep(**parameters, executor=executor, out=out).rows == [{"x": 1, "y": 1}, {"x": 2, "y": 2}]
    assert computed(executor) == 1


def test_a_torn_part_costs_its_own_runs_only(tmp_path, capsys):
    out = tmp_path / "results.parquet"
    for runs in (1, 1):
        sweep({"x": range(4)}, square, executor=Inline(), workers=1, out=out, progress=interrupt_after(runs))
    _, second = sorted((tmp_path / "results.parquet.parts").glob("*.parquet"))
    second.write_bytes(second.read_bytes()[:-20])
    executor = Inline()
    assert sweep({"x": range(4)}, square, executor=executor, out=out).rows == [
        {"x": x, "square": x * x} for x in range(4)
    ]
    assert computed(executor) == 3
    assert "its runs are repeated" in capsys.readouterr().err


@pytest.fixture
def finished(tmp_path):
    """The results of a sweep over three numbers."""
    out = tmp_path / "results.parquet"
    sweep({"x": {"one": 1, "two": 2}}, square, executor=Inline(), out=out)
    return out


CHANGED: dict[str, tuple[dict[str, Any], str]] = {
    "another value of the same name": (
        {"parameters": {"x": {"one": 1, "two": 3}}, "run": square},
        'computed by other definitions.*x "two"\n.*its definition has changed',
    ),
    "another function": (
        {"parameters": {"x": {"one": 1, "two": 2}}, "run": lambda x: {"square": x}},
        'run\n.*"square" computed it',
    ),
    "another version": (
        {"parameters": {"x": {"one": 1, "two": 2}}, "run": square, "version": "2"},
        'version\n.*it has "", the sweep has "2"',
    ),
    "fewer runs": ({"parameters": {"x": {"one": 1}}, "run": square}, "1 runs of another sweep.*x=two"),
}


@pytest.mark.parametrize(("arguments", "message"), CHANGED.values(), ids=CHANGED.keys())
def test_results_of_other_definitions_are_never_mixed(arguments, message, finished):
    before = finished.read_bytes()
    with pytest.raises(OperatorMistake, match=f"(?s){message}"):
        sweep(**arguments, executor=Inline(), out=finished)
    assert finished.read_bytes() == before
    assert [path.name for path in finished.parent.iterdir()] == [finished.name]


def test_a_file_of_something_else_is_not_replaced(tmp_path):
    out = tmp_path / "results.parquet"
    out.write_text("mine")
    with pytest.raises(OperatorMistake, match="is no result of a sweep"):
        sweep({"x": [1]}, square, executor=Inline(), out=out)
    assert out.read_text() == "mine"


def test_two_sweeps_do_not_write_one_file(tmp_path):
    out = tmp_path / "results.parquet"

    def again(_: SweepProgress) -> None:
        with pytest.raises(OperatorMistake, match="Another sweep is writing"):
            sweep({"x": [1]}, square, executor=Inline(), out=out)

    assert len(sweep({"x": [1]}, square, executor=Inline(), out=out, progress=again).rows) == 1


def test_a_folder_that_cannot_be_written_is_reported(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OperatorMistake, match="cannot be written"):
        sweep({"x": [1]}, square, executor=Inline(), out=tmp_path / "file" / "results.parquet")


def test_a_run_that_returns_another_kind_of_value_has_failed(tmp_path):
    result = sweep(
        {"x": [1, 2]}, lambda x: {"y": x if x == 1 else "many"}, executor=Inline(), out=tmp_path / "r.parquet"
    )
    assert [run.error for run in result.failed] == ['the column "y" is a text, and a number in other rows']
