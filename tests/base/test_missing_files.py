"""A file that is not there: what is there instead."""

from __future__ import annotations

import pytest

from mooring.base.missing_files import why_absent


def test_the_content_of_the_folder_is_listed(tmp_path):
    (tmp_path / "scheduler.yml").touch()
    (tmp_path / "other.txt").touch()
    (tmp_path / "..data").mkdir()
    hint = why_absent(f"{tmp_path}/scheduler.yaml")
    assert hint == f' The folder {tmp_path} holds other.txt, scheduler.yml. Did you mean "scheduler.yml"?'


def test_a_full_folder_is_listed_in_part(tmp_path):
    for number in range(30):
        (tmp_path / f"file-{number:02}").touch()
    assert "file-00, file-01" in why_absent(f"{tmp_path}/xyz")
    assert why_absent(f"{tmp_path}/xyz").endswith("file-09, and 20 more.")


def test_an_empty_folder_may_be_a_config_map_without_the_key(tmp_path):
    assert "it lacks the key config.yaml" in why_absent(f"{tmp_path}/config.yaml")


def test_a_folder_that_is_not_there_may_be_a_volume_that_was_not_mounted(tmp_path):
    assert f"There is no folder {tmp_path}/mooring either; is the volume mounted there?" in why_absent(
        f"{tmp_path}/mooring/config.yaml"
    )


def test_a_folder_in_its_place_may_be_a_sub_path_without_the_key(tmp_path):
    assert "subPath" in why_absent(str(tmp_path))


@pytest.mark.parametrize("name", ["x", "./x"])
def test_the_folder_one_is_in_is_a_folder_too(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "y.yaml").touch()
    assert "holds y.yaml" in why_absent(name)


def test_a_file_that_is_there_and_unreadable_needs_no_guess(tmp_path):
    (tmp_path / "x").touch()
    assert why_absent(f"{tmp_path}/x") == ""
