"""Traces as CSV, JSON, JSON lines and Parquet: the same rows are the same pods, and mistakes have the same messages."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.base.errors import OperatorMistake
from mooring.objects.core import Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.simulator import Arrival, Workload
from mooring.simulator.trace_rows import TraceRow, arrivals_of
from mooring.simulator.trace_writer import write_trace
from mooring.simulator.traces import MOST_PROBLEMS

FORMATS = (".csv", ".csv.gz", ".csv.xz", ".json", ".json.gz", ".jsonl", ".parquet")

texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=8)
seconds = st.floats(0, 1e9, allow_nan=False) | st.integers(0, 10**6).map(float)
label_keys = st.sampled_from(["app", "example.com/tier", "a.b-c_d"])
label_values = st.sampled_from(["", "web", "A.b-1_c"])
rows = st.lists(
    st.builds(
        TraceRow,
        arrival=seconds,
        duration=st.none() | seconds,
        name=texts,
        namespace=st.just("default") | texts,
        priority=st.none() | st.integers(-(2**31) + 1, 2**31 - 1),
        labels=st.dictionaries(label_keys, label_values, max_size=3),
        owner=st.just("") | texts,
        scheduler=st.just("") | texts,
        node_selector=st.dictionaries(
            label_keys, st.lists(label_values, min_size=1, max_size=3).map(tuple), max_size=2
        ),
        requests=st.dictionaries(
            st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), st.sampled_from(["1", "500m", "2Gi", "1e3"])
        ),
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda row: (row.namespace, row.name),
)


@pytest.mark.parametrize("ending", FORMATS)
@settings(max_examples=25, deadline=None)
@given(rows=rows)
def test_a_written_trace_reads_back_equal(tmp_path_factory, ending, rows):
    path = tmp_path_factory.mktemp("trace") / f"trace{ending}"
    assert write_trace(path, rows) == len(rows)
    assert list(Workload.read(path)) == arrivals_of(rows)


@pytest.mark.parametrize("ending", FORMATS)
def test_the_same_rows_are_the_same_bytes(tmp_path, ending):
    rows = [TraceRow(1.5, 60.0, "web", labels={"app": "web"}, requests={"cpu": "1"}), TraceRow(2.0)]
    first, second = tmp_path / f"a{ending}", tmp_path / f"other{ending}"
    write_trace(first, rows)
    write_trace(second, rows)
    assert first.read_bytes() == second.read_bytes()


def test_a_trace_of_an_unknown_ending_is_not_written(tmp_path):
    with pytest.raises(OperatorMistake, match=r"ends in \.csv, \.parquet, \.json, \.jsonl"):
        write_trace(tmp_path / "trace.txt", [TraceRow(0.0)])


def test_rows_that_fail_leave_no_file(tmp_path):
    def failing() -> Any:
        yield TraceRow(0.0)
        raise OperatorMistake("a bad row")

    (tmp_path / "trace.csv").write_text("what was there before")
    with pytest.raises(OperatorMistake, match="a bad row"):
        write_trace(tmp_path / "trace.csv", failing(), ["cpu"])
    assert [each.name for each in tmp_path.iterdir()] == ["trace.csv"]
    assert (tmp_path / "trace.csv").read_text() == "what was there before"


@pytest.mark.parametrize("ending", [".csv", ".json", ".parquet"])
def test_a_full_disk_is_reported(tmp_path, monkeypatch, ending):
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OperatorMistake, match="cannot be written: No space left on device"):
        write_trace(tmp_path / f"trace{ending}", [TraceRow(0.0)])
    assert list(tmp_path.iterdir()) == []


# Rows as others write them


def trace_of(folder: Path, ending: str, rows: list[dict[str, Any]]) -> Path:
    path = folder / f"trace{ending}"
    if ending == ".csv":
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)
        path.write_text(text.getvalue())
    elif ending == ".json":
        path.write_text(json.dumps(rows, indent=1))
    elif ending == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        polars.DataFrame(rows, strict=False).write_parquet(path)
    return path


def read(folder: Path, ending: str, rows: list[dict[str, Any]], **columns: str) -> list[Arrival]:
    return list(Workload.read(trace_of(folder, ending, rows), columns=columns))


ALL = pytest.mark.parametrize("ending", [".csv", ".json", ".jsonl", ".parquet"])


@ALL
def test_numbers_may_be_numbers(tmp_path, ending):
    [first, second] = read(
        tmp_path,
        ending,
        [
            {"arrival": 3, "duration": 60.5, "priority": 7.0, "cpu": 2, "memory": "1Gi", "other": 1},
            {"arrival": 4.25, "duration": None, "priority": None, "cpu": 0.5, "memory": None, "other": 2},
        ],
    )
    assert (first.at, first.duration, first.pod.priority) == (3.0, 60.5, 7)
    assert first.pod.requests.amounts == {"cpu": 2000, "memory": 2**30}
    assert (second.at, second.duration, second.pod.spec.priority) == (4.25, None, None)
    assert second.pod.requests.amounts == {"cpu": 500}


@ALL
def test_columns_may_have_other_names(tmp_path, ending):
    [arrival] = read(tmp_path, ending, [{"submit": 7, "plan": 2, "cpu": 9}], arrival="submit", cpu="plan")
    assert (arrival.at, arrival.pod.request("cpu")) == (7.0, 2000)


@ALL
def test_timestamps_begin_with_the_earliest(tmp_path, ending):
    arrivals = read(
        tmp_path,
        ending,
        [{"arrival": "2020-06-09 18:41:27"}, {"arrival": "2020-06-09T20:41:01.5+02:00"}, {"arrival": "2020-06-10"}],
    )
    assert [arrival.at for arrival in arrivals] == [25.5, 0.0, 19138.5]


def test_timestamps_of_parquet_are_timestamps(tmp_path):
    rows: list[dict[str, Any]] = [
        {"arrival": datetime(2020, 6, 9, 18), "duration": timedelta(minutes=2)},
        {"arrival": datetime(2020, 6, 9)},
    ]
    arrivals = read(tmp_path, ".parquet", rows)
    assert [(arrival.at, arrival.duration) for arrival in arrivals] == [(64800.0, 120.0), (0.0, None)]


@pytest.mark.parametrize("ending", [".json", ".jsonl", ".parquet"])
def test_labels_may_be_an_object(tmp_path, ending):
    [arrival] = read(tmp_path, ending, [{"arrival": 0, "labels": {"app": "web"}, "node_selector": {"gpu": "T4"}}])
    assert arrival.pod.labels == {"app": "web"}
    assert arrival.pod.spec.node_selector == {"gpu": "T4"}


@ALL
def test_several_values_of_a_node_label_are_an_affinity(tmp_path, ending):
    [arrival] = read(tmp_path, ending, [{"arrival": 0, "node_selector": "gpu=T4|P100;zone=a"}])
    assert arrival.pod.spec.node_selector == {"zone": "a"}
    expression = NodeSelectorRequirement("gpu", "In", ("T4", "P100"))
    terms = NodeSelector((NodeSelectorTerm(match_expressions=(expression,)),))
    assert arrival.pod.spec.affinity == Affinity(node_affinity=NodeAffinity(required=terms))


WHERE = {".csv": "{} (line 3)", ".jsonl": "{} (line 2)", ".json": "row 2, {}", ".parquet": "row 2, {}"}
BAD = {
    "an arrival that is none": ({"arrival": "soon"}, {}, "arrival", "a number of seconds or a timestamp such as"),
    "no arrival": ({"arrival": ""}, {"name": "a"}, "arrival", "is empty"),
    "a negative arrival": ({"arrival": -1}, {}, "arrival", "0 or more"),
    "a negative duration": ({"duration": -3}, {"duration": 1}, "duration", "0 or more, got"),
    "a quantity that is none": ({"cpu": "many"}, {"cpu": "1"}, "cpu", "is not a quantity"),
    "a negative quantity": ({"cpu": "-1"}, {"cpu": "1"}, "cpu", "must not be negative"),
    "labels that are no pairs": ({"labels": "web"}, {"labels": "a=b"}, "labels", "key=value pairs"),
    "a label that is none": ({"labels": "a=b c"}, {"labels": "a=b"}, "labels", "has no valid label: a=b c"),
    "a priority that is not whole": ({"priority": 1.5}, {"priority": 1}, "priority", "whole number"),
    "a priority that is too high": ({"priority": 2**31}, {"priority": 1}, "priority", "32 bits"),
    "two pods of one name": ({"name": "web"}, {"name": "web"}, "name", 'two pods "default/web"'),
}


@ALL
@pytest.mark.parametrize(("bad", "good", "column", "why"), BAD.values(), ids=BAD.keys())
def test_a_bad_row_is_named(tmp_path, ending, bad, good, column, why):
    good = {"arrival": "2020-06-09" if bad.get("arrival") == "soon" else "0", **good}
    rows = [good, {"arrival": good["arrival"], **bad}]
    if ending == ".parquet":  # whose columns have one type
        rows = [{name: None if value in (None, "") else str(value) for name, value in row.items()} for row in rows]
    with pytest.raises(OperatorMistake) as raised:
        read(tmp_path, ending, rows)
    [problem] = raised.value.problems
    assert str(problem).splitlines()[0].strip() == WHERE[ending].format(f'column "{column}"')
    assert why in str(problem)


@ALL
def test_all_bad_rows_are_reported_up_to_a_limit(tmp_path, ending):
    rows = [{"arrival": str(number), "cpu": "x"} for number in range(MOST_PROBLEMS + 10)]
    with pytest.raises(OperatorMistake) as raised:
        read(tmp_path, ending, rows)
    assert len(raised.value.problems) == MOST_PROBLEMS


@ALL
def test_a_column_that_is_not_there_is_named(tmp_path, ending):
    with pytest.raises(OperatorMistake, match=r'the file has no column "subm"\. Did you mean "submit"'):
        read(tmp_path, ending, [{"submit": 0}], arrival="subm")
    with pytest.raises(OperatorMistake, match=r'the file has no column "plan_cpu"'):
        read(tmp_path, ending, [{"arrival": 0}], cpu="plan_cpu")
    with pytest.raises(OperatorMistake, match=r"--column arrival=NAME \(found: start, cpu\)"):
        read(tmp_path, ending, [{"start": 0, "cpu": 1}])


# Files that are no traces


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("trace.json", b"[{]", "is no JSON"),
        ("trace.json", b"[]", "has no rows"),
        ("trace.jsonl", b'{"arrival": 1}\n{"arr', r"(?s)the row \(line 2\).*is no JSON"),
        ("trace.jsonl", b'{"arrival": 1}\n3\n', r"(?s)the row \(line 2\).*must be an object"),
        ("trace.json", b'[{"arrival": 1}, 3]', r"(?s)row 2\n.*must be an object"),
        ("trace.json", b"[" * 1000, "nested"),
        ("trace.csv", b"", "has no rows"),
        ("trace.csv", b"arrival,cpu\n0,1\n1\n", r"(?s)the row \(line 3\).*has 1 columns, and the first line 2"),
        ("trace.csv", b"arrival,cpu\n0,1,2\n", r"(?s)the row \(line 2\).*has 3 columns, and the first line 2"),
        ("trace.csv", b"arrival,cpu,cpu\n0,1,2\n", r'(?s)column "cpu" \(line 1\).*is there twice'),
        ("trace.csv", b"arrival,cpu\n" + b"0\n" * 100, "has 20 problems"),
        ("trace.jsonl", b'{"arrival": 1}\n' + b"x\n" * 100, "has 20 problems"),
        ("trace.csv", b"arrival\n", "has no rows"),
        ("trace.csv", b'arrival,name\n1,"' + b"x" * 200_000 + b'"\n', "is no CSV: field larger"),
        ("trace.csv.gz", b"arrival\n1\n", "not compressed as the end of its name promises"),
        ("trace.parquet", b"arrival\n1\n", "is no Parquet file"),
    ],
)
def test_a_file_that_is_no_trace(tmp_path, name, content, why):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(OperatorMistake, match=why):
        Workload.read(tmp_path / name)


def test_parquet_needs_polars(tmp_path, monkeypatch):
    path = trace_of(tmp_path, ".parquet", [{"arrival": 0}])
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(OperatorMistake, match="Reading Parquet needs polars: pip install polars"):
        Workload.read(path)
    with pytest.raises(OperatorMistake, match="Writing Parquet needs polars: pip install polars"):
        write_trace(tmp_path / "other.parquet", [TraceRow(0.0)])


POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [{"name": "main"}]}}


def test_json_with_a_kind_is_a_manifest(tmp_path):
    POD["spec"]["containers"][0]["image"] = "nginx"  # type: ignore[index]
    for document in (POD, {"apiVersion": "v1", "kind": "List", "items": [POD]}):
        for indent in (None, 1):
            (tmp_path / "pod.json").write_text(json.dumps(document, indent=indent))
            [arrival] = Workload.read(tmp_path / "pod.json")
            assert arrival.pod.key == "default/web"


def test_columns_are_about_traces(tmp_path):
    (tmp_path / "pod.json").write_text(json.dumps(POD))
    with pytest.raises(OperatorMistake, match="--column is about traces"):
        Workload.read(tmp_path / "pod.json", columns={"cpu": "plan_cpu"})
