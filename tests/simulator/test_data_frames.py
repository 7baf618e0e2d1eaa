"""Workloads from data frames: each kind of frame gives the same pods."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from mooring.base.errors import OperatorMistake
from mooring.simulator import Cluster, Workload, simulate
from mooring.testing import a_node_object

COLUMNS: dict[str, list[Any]] = {
    "arrival": [0, 10.5],
    "duration": [60, None],
    "name": ["web", "db"],
    "cpu": ["500m", 2],
    "memory": ["1Gi", None],
    "labels": ["app=web", None],
}


class PandasFrame:
    """As pandas has it: `to_dict("list")`, with its own values for what is missing."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self._columns = columns

    def to_dict(self, orient: str) -> dict[str, list[Any]]:
        assert orient == "list"
        missing = [type("NAType", (), {})(), type("NaTType", (), {})(), math.nan]
        return {
            name: [missing[len(name) % 3] if value is None else value for value in column]
            for name, column in self._columns.items()
        }


class ArrowTable:
    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.to_pydict = lambda: columns


def polars_frame(columns: dict[str, list[Any]]) -> Any:
    frames = pytest.importorskip("polars")
    return frames.DataFrame({name: [_text(value) for value in column] for name, column in columns.items()})


def _text(value: Any) -> Any:
    """A column of Polars has one type."""
    return str(value) if value is not None else None


FRAMES: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "a mapping": dict,
    "arrays": lambda columns: {**columns, "arrival": np.array([0.0, 10.5]), "duration": np.array([60.0, np.nan])},
    "Polars": polars_frame,
    "pandas": PandasFrame,
    "PyArrow": ArrowTable,
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
def test_every_frame_gives_the_same_pods(frame: Callable[[dict[str, list[Any]]], Any]):
    web, db = Workload.from_frame(frame(COLUMNS))
    assert [(each.at, each.duration, each.pod.key) for each in (web, db)] == [
        (0.0, 60.0, "default/web"),
        (10.5, None, "default/db"),
    ]
    assert web.pod.labels == {"app": "web"}
    assert [each.pod.requests.amounts["cpu"] for each in (web, db)] == [500, 2000]
    assert "memory" not in db.pod.requests.amounts


def test_a_frame_of_another_library_is_read_through_the_shared_interface():
    frames = pytest.importorskip("polars")

    class Other:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return frames.DataFrame({"arrival": [0.0], "cpu": [1]}).__arrow_c_stream__(requested_schema)

    [arrival] = Workload.from_frame(Other())
    assert arrival.pod.requests.amounts["cpu"] == 1000


TIMES: dict[str, Any] = {
    "datetimes": [datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 1, tzinfo=UTC)],
    "NumPy's": np.array(["2026-01-01T00:00:00", "2026-01-01T00:01:00"], dtype="datetime64[ns]"),
    "texts": ["2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"],
}


@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES.keys())
def test_times_and_durations_are_those_of_the_frame(times: Any):
    durations = [timedelta(seconds=5), np.timedelta64(7_000_000_000, "ns")]
    first, second = Workload.from_frame({"submitted": times, "duration": durations}, columns={"arrival": "submitted"})
    assert (first.at, second.at, first.duration, second.duration) == (0.0, 60.0, 5.0, 7.0)


def test_unknown_columns_and_bad_rows_are_named():
    workload = Workload.from_frame({"arrival": [0], "memroy": ["1Gi"]})
    assert workload.notes == ['the data frame: column "memroy" is not read. Did you mean "memory"?']
    with pytest.raises(OperatorMistake) as refused:
        Workload.from_frame({"arrival": [0, -1]})
    assert [problem.path for problem in refused.value.problems] == ['row 2, column "arrival"']


REFUSED: dict[str, tuple[Any, str]] = {
    "a number": (7, "A int is no data frame"),
    "columns of different lengths": ({"arrival": [0, 1], "cpu": [1]}, "equally long, got arrival 2, cpu 1"),
    "a text as a column": ({"arrival": "soon"}, 'Column "arrival" must be a list of values, got str'),
    "no rows": ({"arrival": []}, "has no rows"),
}


@pytest.mark.parametrize(("frame", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_frame_is_refused(frame: Any, message: str):
    with pytest.raises(OperatorMistake, match=message):
        Workload.from_frame(frame)


def test_a_result_is_a_frame_again():
    pytest.importorskip("polars")
    result = simulate(Cluster([a_node_object("a")]), Workload.from_frame(COLUMNS))
    assert result.frame().equals(result.pods_frame())
    assert result.frame()["name"].to_list() == ["web", "db"]
