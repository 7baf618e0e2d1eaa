"""Secrets that need a file for a moment."""

import os
from pathlib import Path

import pytest

from mooring.base.secret_files import memory_file, readable_path


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
        file.write(b"data")
        file.seek(0)
        assert file.read() == b"data"
