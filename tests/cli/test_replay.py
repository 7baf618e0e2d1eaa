"""`mooring replay` shows recorded decisions, and what another configuration would have decided."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.recording.recorded import recorded
from tests.replay.test_replaying import MOST_ALLOCATED
from tests.simulator.scenarios import a_cluster_of, arriving

from mooring.base.errors import OperatorMistake
from mooring.cli.replay import replay


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


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(replay, arguments, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return int(result.return_value or 0), result.stdout


def test_the_recorded_decisions_are_listed(file: str):
    code, text = run(file)
    assert code == 0
    assert "5 decisions from 2023-11-14T22:13:20Z to 2023-11-14T22:13:29Z" in text
    assert text.count("bound") == 4
    assert "0/2 nodes are available: 2 Insufficient cpu." in text


def test_the_recorded_configuration_reproduces_them(file: str):
    code, text = run(file, "--again")
    assert code == 0
    assert "5 decisions taken again with the recorded configuration: 5 the same, 0 would have differed." in text


def test_what_another_configuration_would_have_changed_is_listed_with_the_plugin(file: str, other: str):
    code, text = run(file, "--config", other)
    assert code == 1
    assert "score NodeResourcesFit" in text
    assert "What would have differed" in text
    code, document = run(file, "--config", other, "-o", "json")
    found = json.loads(document)
    assert code == 1
    assert found["same"] + len(found["differing"]) == found["decisions"] == 5
    assert {each["plugin"] for each in found["differing"]} == {"NodeResourcesFit"}
    _, table = run(file, "--config", other, "-o", "csv")
    assert [row["pod"] for row in csv.DictReader(io.StringIO(table))] == [each["pod"] for each in found["differing"]]


SELECTIONS = {
    "a pod": (["--pod", "default/pod-1"], ["default/pod-1"]),
    "a pod of the namespace default": (["--pod", "pod-1"], ["default/pod-1"]),
    "from a time on": (["--from", "2023-11-14T22:13:23Z"], ["default/pod-3", "default/large"]),
    "up to a number": (["--to", "1"], ["default/pod-0", "default/pod-1"]),
    "between": (["--from", "1", "--to", "2"], ["default/pod-1", "default/pod-2"]),
}


@pytest.mark.parametrize(("arguments", "pods"), SELECTIONS.values(), ids=SELECTIONS.keys())
def test_some_decisions_are_selected(file: str, arguments: list[str], pods: list[str]):
    _, document = run(file, *arguments, "-o", "json")
    assert [each["evidence"]["pod"] for each in json.loads(document)["decisions"]] == pods


def test_the_nearest_names_are_shown_for_a_pod_without_decisions(file: str):
    with pytest.raises(OperatorMistake, match='Did you mean "default/large"'):
        run(file, "--pod", "default/lagre")
