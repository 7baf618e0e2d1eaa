"""Secrets in files."""

import os
import stat
from pathlib import Path

import pytest

from mooring.base.private import memory_file, readable_path, write_private


def test_nobody_else_can_read_the_file(tmp_path):
    file = tmp_path / "key"
    before = os.umask(0)
    try:
        write_private(file, "secret")
    finally:
        os.umask(before)
    assert file.read_text() == "secret"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_what_was_there_is_replaced(tmp_path):
    for text in ("a long secret", "short"):
        write_private(str(tmp_path / "key"), text)
    assert (tmp_path / "key").read_text() == "short"


@pytest.fixture(params=["in memory", "where the system has no files in memory"])
def system(request, monkeypatch):
    if request.param != "in memory":
        monkeypatch.delattr(os, "memfd_create", raising=False)


@pytest.mark.usefixtures("system")
def test_the_bytes_are_read_by_a_path_while_they_are_needed():
    with readable_path(b"secret") as path:
        assert Path(path).read_bytes() == b"secret"
        assert Path(path).read_bytes() == b"secret"
    assert not Path(path).exists() or Path(path).read_bytes() != b"secret"


@pytest.mark.usefixtures("system")
def test_a_file_in_memory_is_written_and_read():
    with memory_file() as file:
        file.write(b"said")
        file.seek(0)
        assert file.read() == b"said"
