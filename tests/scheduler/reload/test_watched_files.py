"""Files are the same as long as their content is the same, however it comes about."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mooring.scheduler.reload.watched_files import WatchedFiles


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "config.yaml").write_text("a: 1")
    (tmp_path / "plugins" / "one.py").write_text("one = 1")
    (tmp_path / "data_1").mkdir()
    (tmp_path / "data_1" / "two.py").write_text("two = 2")
    (tmp_path / "..data").symlink_to("data_1")
    (tmp_path / "plugins" / "two.py").symlink_to("../..data/two.py")
    return tmp_path


def swapped(folder: Path, text: str) -> None:
    (folder / "data_2").mkdir()
    (folder / "data_2" / "two.py").write_text(text)
    (folder / "fresh").symlink_to("data_2")
    os.replace(folder / "fresh", folder / "..data")


def edited_in_the_same_instant(folder: Path) -> None:
    config = folder / "config.yaml"
    before = config.stat()
    config.write_text("a: 2")
    os.utime(config, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES: dict[str, tuple[Callable[[Path], object], bool]] = {
    "nothing happened": (lambda _: None, False),
    "the configuration was edited": (lambda folder: (folder / "config.yaml").write_text("a: 22"), True),
    "it was edited, and neither its size nor its time changed": (edited_in_the_same_instant, True),
    "it was only touched": (lambda folder: os.utime(folder / "config.yaml"), False),
    "it is gone": (lambda folder: (folder / "config.yaml").unlink(), True),
    "it is empty": (lambda folder: (folder / "config.yaml").write_text(""), True),
    "a plugin was edited": (lambda folder: (folder / "plugins" / "one.py").write_text("one = 2"), True),
    "a plugin came": (lambda folder: (folder / "plugins" / "three.py").write_text(""), True),
    "a plugin went": (lambda folder: (folder / "plugins" / "one.py").unlink(), True),
    "a link on the way was swapped": (lambda folder: swapped(folder, "two = 22"), True),
    "a link was swapped for the same words": (lambda folder: swapped(folder, "two = 2"), False),
    "a test came": (lambda folder: (folder / "plugins" / "test_one.py").write_text(""), False),
}


@pytest.mark.parametrize(("change", "is_seen"), CHANGES.values(), ids=CHANGES.keys())
def test_whether_it_is_seen_that(folder, change, is_seen):
    files = WatchedFiles(str(folder / "config.yaml"), [str(folder / "plugins"), "json:JSONDecoder"])
    before = files.digest()
    change(folder)
    assert (files.digest() != before) == is_seen


def test_a_folder_that_goes_is_seen_and_no_fault(folder):
    files = WatchedFiles(None, [str(folder / "plugins")])
    before = files.digest()
    (folder / "plugins").rename(folder / "elsewhere")
    assert files.digest() != before
