"""Files are written whole, with the mode they are meant to have."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from mooring.base.files import (
    append,
    create_new,
    in_made_folder,
    make_folder,
    make_private,
    open_to_append,
    read_if_regular,
    read_regular,
    write_private,
    write_whole,
)


@pytest.fixture(autouse=True)
def generous_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0, 0o022, 0o777])
def test_a_private_file_is_its_owners_whatever_the_umask(tmp_path, umask):
    os.umask(umask)
    write_private(tmp_path / "key", "secret")
    assert (tmp_path / "key").read_text() == "secret"
    assert mode(tmp_path / "key") == 0o600


def test_a_private_file_takes_the_place_of_one_that_others_could_read(tmp_path):
    (tmp_path / "key").write_text("a long old secret")
    (tmp_path / "key").chmod(0o666)
    write_private(str(tmp_path / "key"), "short")
    assert (tmp_path / "key").read_text() == "short"
    assert mode(tmp_path / "key") == 0o600


def test_what_is_for_others_too_follows_the_umask(tmp_path):
    write_whole(tmp_path / "a", "text")
    create_new(tmp_path / "b", b"bytes")
    assert (mode(tmp_path / "a"), mode(tmp_path / "b")) == (0o644, 0o644)


def test_no_draft_is_left(tmp_path):
    write_whole(tmp_path / "a", "one")
    write_whole(tmp_path / "a", "two")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch):
    write_private(tmp_path / "key", "before")

    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_private(tmp_path / "key", "after")
    assert (tmp_path / "key").read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_a_folder_in_place_of_the_file_is_named_as_such(tmp_path):
    with pytest.raises(OSError, match="it is a folder"):
        write_whole(tmp_path, "text")
    with pytest.raises(OSError, match="No such file"):
        write_whole(tmp_path / "missing" / "file", "text")


def test_standard_output_is_written_to_and_not_replaced(capfd):
    write_private("/dev/stdout", "a configuration")
    with open_to_append("/dev/stdout") as report:
        report.write(b" and a line")
    assert capfd.readouterr().out == "a configuration and a line"
    assert not Path("/dev/stdout").is_file() or Path("/dev/stdout").is_symlink()


def test_what_is_appended_stays(tmp_path):
    for line in (b"one\n", b"two\n"):
        with open_to_append(tmp_path / "report") as file:
            file.write(line)
    assert (tmp_path / "report").read_text() == "one\ntwo\n"


def test_made_folders_are_closed_to_other_writers_also_those_above(tmp_path):
    os.umask(0)
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    assert (mode(tmp_path / "a"), mode(tmp_path / "a" / "b")) == (0o755, 0o755)


def test_a_file_in_place_of_a_folder_is_an_error(tmp_path):
    (tmp_path / "a").write_text("")
    with pytest.raises(OSError, match="no folder"):
        make_folder(tmp_path / "a")


def test_a_file_of_ones_own_is_made_private_once(tmp_path):
    (tmp_path / "key").write_text("secret")
    assert [make_private(tmp_path / "key"), make_private(tmp_path / "key")] == [True, False]
    assert mode(tmp_path / "key") == 0o600


def test_regular_files_are_read_through_links_only_where_that_is_meant(tmp_path):
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "link") == b"text"
    assert read_if_regular(tmp_path / "file") == b"text"
    assert read_if_regular(tmp_path / "missing") is None
    with pytest.raises(OSError, match="symbolic link"):
        read_if_regular(tmp_path / "link")


def test_what_is_appended_is_there_as_a_whole_or_not_at_all(tmp_path):
    """A full disk takes a part of a line; the part is cut off again."""
    (tmp_path / "lines").write_bytes(b"first\n")
    with open_to_append(tmp_path / "lines") as file, pytest.raises(OSError, match="No space left"):
        append(_Full(file), b"second\n")  # type: ignore[arg-type]
    assert (tmp_path / "lines").read_bytes() == b"first\n"


class _Full:
    """Takes three bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._left = file, 3

    def fileno(self) -> int:
        return self._file.fileno()

    def write(self, data: bytes) -> int:
        if not self._left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = self._file.write(data[: self._left])
        self._left = 0
        return written


def fill(folder: Path, *, kept: str = "") -> None:
    with in_made_folder(folder):
        if kept:
            (folder.parent / kept).touch()
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_folder_that_was_made_for_nothing_is_removed_again(tmp_path):
    with pytest.raises(OSError, match="No space"):
        fill(tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_has_something_stays(tmp_path):
    with pytest.raises(OSError, match="No space"):
        fill(tmp_path / "a" / "b", kept="kept")
    assert [each.name for each in (tmp_path / "a").iterdir()] == ["kept"]
