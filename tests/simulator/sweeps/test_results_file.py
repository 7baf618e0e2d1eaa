"""When parts are written: at most a second, or a hundredth of the time so far, is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.simulator.sweeps.results_file import Definitions, FinishedRun, ResultsFile


class Clock:
    """Its time is set by the test."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "results.parquet"


def parts(out: Path) -> list[str]:
    return sorted(path.name for path in out.with_name("results.parquet.parts").glob("*.parquet"))


def a_run(number: int) -> FinishedRun:
    return FinishedRun({"x": number}, [{"y": number}])


def test_runs_of_a_second_are_one_part(clock: Clock, out: Path):
    with ResultsFile(out, Definitions("", "", "run"), now=clock) as file:
        file.add(a_run(1))
        clock.now = 0.9
        file.add(a_run(2))
        assert parts(out) == []
        clock.now = 1.0
        file.add(a_run(3))
        assert parts(out) == ["000001.parquet"]
        clock.now = 1.5
        file.add(a_run(4))
        assert parts(out) == ["000001.parquet"]
        file.flush()
        assert parts(out) == ["000001.parquet", "000002.parquet"]


def test_parts_of_a_long_sweep_are_a_hundredth_of_its_time_apart(clock: Clock, out: Path):
    with ResultsFile(out, Definitions("", "", "run"), now=clock) as file:
        clock.now = 10_000.0
        file.add(a_run(1))
        clock.now = 10_050.0
        file.add(a_run(2))
        assert parts(out) == ["000001.parquet"]
        clock.now = 10_102.0
        file.add(a_run(3))
        assert parts(out) == ["000001.parquet", "000002.parquet"]


def test_a_file_that_nothing_was_added_to_leaves_no_folder(clock: Clock, out: Path):
    with ResultsFile(out, Definitions("", "", "run"), now=clock):
        pass
    assert list(out.parent.iterdir()) == []


def test_files_of_others_beside_the_parts_stay(out: Path):
    notes = out.with_name("results.parquet.parts") / "notes.txt"
    notes.parent.mkdir()
    notes.write_text("mine")
    with ResultsFile(out, Definitions("", "", "run")) as file:
        file.finish([a_run(0)])
    assert [each.name for each in notes.parent.iterdir()] == ["notes.txt"]
