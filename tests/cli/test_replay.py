"""`mooring replay` shows recorded decisions, and what another configuration would have decided."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from tests.cli.conftest import Mooring
from tests.recording.recorded import recorded
from tests.replay.test_replaying import MOST_ALLOCATED
from tests.simulator.scenarios import a_cluster_of, arriving


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "a.recording"
    pods = (arriving(at, f"pod-{at}", cpu="100m") for at in range(4))
    recorded(path, a_cluster_of("a", "b"), *pods, arriving(9, "large", cpu="8"))
    return str(path)


@pytest.fixture
def other(tmp_path: Path) -> str:
    path = tmp_path / "other.yaml"
    path.write_text(MOST_ALLOCATED)
    return str(path)


def called(mooring: Mooring, *arguments: str) -> tuple[int, str, str]:
    result = mooring(*arguments)
    return result.code, result.out, result.err


def test_the_recorded_decisions_are_listed(mooring: Mooring, file: str):
    code, text, _ = called(mooring, "replay", file)
    assert code == 0
    assert "5 decisions from 2023-11-14T22:13:20Z to 2023-11-14T22:13:29Z" in text
    assert text.count("bound") == 4
    assert "0/2 nodes are available: 2 Insufficient cpu." in text


def test_the_recorded_configuration_reproduces_them(mooring: Mooring, file: str):
    code, text, _ = called(mooring, "replay", file, "--again")
    assert code == 0
    assert "5 decisions taken again with the recorded configuration: 5 the same, 0 would have differed." in text


def test_what_another_configuration_would_change_is_listed_with_the_plugin(mooring: Mooring, file: str, other: str):
    code, text, _ = called(mooring, "replay", file, "--config", other)
    assert code == 1
    assert "score NodeResourcesFit" in text
    assert "What would have differed" in text
    code, document, _ = called(mooring, "replay", file, "--config", other, "-o", "json")
    found = json.loads(document)
    assert code == 1
    assert found["same"] + len(found["differing"]) == found["decisions"] == 5
    assert {each["plugin"] for each in found["differing"]} == {"NodeResourcesFit"}
    _, table, _ = called(mooring, "replay", file, "--config", other, "-o", "csv")
    assert [row["pod"] for row in csv.DictReader(io.StringIO(table))] == [each["pod"] for each in found["differing"]]


SELECTIONS = {
    "a pod": (["--pod", "default/pod-1"], ["default/pod-1"]),
    "a pod of the namespace default": (["--pod", "pod-1"], ["default/pod-1"]),
    "from a time on": (["--from", "2023-11-14T22:13:23Z"], ["default/pod-3", "default/large"]),
    "up to a number": (["--to", "1"], ["default/pod-0", "default/pod-1"]),
    "between": (["--from", "1", "--to", "2"], ["default/pod-1", "default/pod-2"]),
}


@pytest.mark.parametrize(("arguments", "pods"), SELECTIONS.values(), ids=SELECTIONS.keys())
def test_some_decisions_are_selected(mooring: Mooring, file: str, arguments: list[str], pods: list[str]):
    _, document, _ = called(mooring, "replay", file, *arguments, "-o", "json")
    assert [each["evidence"]["pod"] for each in json.loads(document)["decisions"]] == pods


def test_the_nearest_names_are_shown_for_a_pod_without_decisions(mooring: Mooring, file: str):
    code, _, problem = called(mooring, "replay", file, "--pod", "default/lagre")
    assert code == 2
    assert 'Did you mean "default/large"' in problem


def test_a_simulation_is_recorded(mooring: Mooring, tmp_path: Path):
    path = str(tmp_path / "simulated.recording")
    code, _, notes = called(mooring, "simulate", "--nodes", "2", "--generate-pods", "20", "--record", path)
    assert code == 0
    assert f"Recorded to {path}." in notes
    code, text, _ = called(mooring, "replay", path, "--again")
    assert code == 0
    assert " the same, 0 would have differed." in text
