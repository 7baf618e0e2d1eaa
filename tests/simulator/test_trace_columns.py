"""Columns of a trace that are not read are named, with the one that was probably meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.simulator import Workload

NOTES = {
    "all are read": ("arrival,cpu,memory,labels,nvidia.com/gpu\n0,1,1Gi,a=b,1\n", {}, []),
    "a misspelt one": (
        "arrival,cpu,memroy\n0,1,100Gi\n",
        {},
        ['t.csv: column "memroy" is not read. Did you mean "memory"?'],
    ),
    "one that is there besides": ("arrival,memory,Memory\n0,1,1\n", {}, ["t.csv: columns that are not read: Memory."]),
    "a device without a domain": (
        "arrival,gpu\n0,8\n",
        {},
        [
            't.csv: column "gpu" is not read. Did you mean "nvidia.com/gpu"? Resources other than cpu, memory and '
            "ephemeral-storage have a domain."
        ],
    ),
    "several others": ("arrival,x1,zone_id\n0,8,2\n", {}, ["t.csv: columns that are not read: x1, zone_id."]),
    "many others": (
        f"arrival,{','.join(f'x{number}' for number in range(12))}\n0{',1' * 12}\n",
        {},
        [f"t.csv: columns that are not read: {', '.join(f'x{number}' for number in range(10))} and 2 more."],
    ),
    "one that is mapped": ("start,memroy\n0,1\n", {"arrival": "start", "memory": "memroy"}, []),
    "one that is mapped to nothing known": (
        "arrival,x1\n0,1\n",
        {"size": "x1"},
        ["t.csv: columns that are not read: x1."],
    ),
}


@pytest.mark.parametrize(("text", "columns", "notes"), NOTES.values(), ids=NOTES.keys())
def test_columns_that_are_not_read(tmp_path: Path, monkeypatch, text: str, columns: dict[str, str], notes: list[str]):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(text, encoding="utf-8")
    workload = Workload.read("t.csv", columns=columns)
    assert workload.notes == notes
    assert workload[:1].notes == notes


def test_columns_of_json_are_those_of_all_rows(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"arrival": 0, "cpu": 1}\n{"arrival": 1, "memroy": "1Gi"}\n', encoding="utf-8")
    assert Workload.read(path).notes == [f'{path}: column "memroy" is not read. Did you mean "memory"?']
