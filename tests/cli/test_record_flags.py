"""Mistakes on the command line of recordings are named, also a file that cannot be written."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Mooring
from tests.recording.recorded import recorded
from tests.simulator.scenarios import a_cluster_of, arriving

SIMULATION = ("simulate", "--nodes", "1", "--generate-pods", "1")
MISTAKES = {
    "a limit that is too small": ((*SIMULATION, "--record-limit", "12"), "must be at least 1Mi, got 12"),
    "a limit that is no size": ((*SIMULATION, "--record-limit", "lots"), "write it as 256Mi"),
    "a recording of two runs": (
        (*SIMULATION, "--record", "{folder}/r", "--config", "{folder}/a", "--config", "{folder}/b"),
        "--record is of one run",
    ),
    "no recording": (("replay", "{folder}/text"), "is no recording of Mooring"),
    "no file": (("replay", "{folder}/nothing"), "No such file"),
    "two configurations": (
        ("replay", "{folder}/whole", "--again", "--config", "x"),
        "--again decides with",
    ),
    "plugins for nothing": (("replay", "{folder}/whole", "--plugins", "x.py"), "give --config"),
    "no time": (("replay", "{folder}/whole", "--from", "yesterday"), '--from: "yesterday" is no time'),
    "a recording of an owner": (
        ("explain", "deployment/web", "--recording", "{folder}/whole"),
        "--recording is about one pod",
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "text").write_text("a shopping list")
    recorded(tmp_path / "whole", a_cluster_of("a"), arriving(0, "web"))
    return tmp_path


@pytest.mark.parametrize(("arguments", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_named(mooring: Mooring, folder: Path, arguments: tuple[str, ...], message: str):
    result = mooring(*(each.format(folder=folder) for each in arguments))
    assert result.code == 2
    assert message in result.err


def test_a_file_that_cannot_be_written_is_reported_before_the_run(mooring: Mooring, tmp_path: Path):
    result = mooring(*SIMULATION, "--record", str(tmp_path / "missing" / "r"))
    assert (result.code, result.out) == (2, "")
    assert "its folder does not exist: create it, or name another file" in result.err


def test_a_file_that_is_no_recording_is_left_as_it_is(mooring: Mooring, folder: Path):
    (folder / "text").chmod(0o644)
    result = mooring(*SIMULATION, "--record", str(folder / "text"))
    assert (result.code, result.out) == (2, "")
    assert "exists and is no recording: name another file, or remove it" in result.err
    assert (folder / "text").read_text() == "a shopping list"
    assert (folder / "text").stat().st_mode & 0o777 == 0o644
