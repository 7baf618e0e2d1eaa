"""Files that a process holds: of many that want one, one gets it, and the end of a process gives it back."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mooring.base.files import hold_private, is_held

CLAIM = """
import sys
from mooring.base.files import hold_private
try:
    held = hold_private(sys.argv[1], sys.argv[2])
except BlockingIOError:
    print("held by another", flush=True)
else:
    print("held", flush=True)
    sys.stdin.read()
"""


def a_claim(path: Path, content: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CLAIM, str(path), content]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_of_processes_that_start_at_once_one_holds_the_file(tmp_path: Path):
    path = tmp_path / "k"
    claims = {str(number): a_claim(path, str(number)) for number in range(4)}
    results = {name: claim.stdout.readline().strip() for name, claim in claims.items() if claim.stdout}
    assert sorted(results.values()) == ["held", *["held by another"] * 3]
    assert results[path.read_text()] == "held"
    for claim in claims.values():
        claim.communicate()


def test_a_file_is_free_when_its_process_was_killed(tmp_path: Path):
    path = tmp_path / "k"
    with a_claim(path, "first") as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        assert is_held(path)
        first.kill()
    assert not is_held(path)
    held = hold_private(path, "second")
    assert held is not None
    with held:
        assert path.read_text() == "second"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with pytest.raises(BlockingIOError):
            hold_private(path, "third")
        assert path.read_text() == "second"
    assert not is_held(path)


def test_a_stream_is_written_to_and_held_by_no_process(capfd: pytest.CaptureFixture[str]):
    assert hold_private("/dev/stdout", "text") is None
    assert capfd.readouterr().out == "text"


def test_a_file_that_is_not_there_is_not_held(tmp_path: Path):
    assert not is_held(tmp_path / "k")


@pytest.mark.parametrize("before", [None, "of a killed process"], ids=["nothing", "an earlier file"])
def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str | None):
    path = tmp_path / "k"
    if before is not None:
        path.write_text(before)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        hold_private(path, "new")
    assert (path.read_text() if path.exists() else None) == before
    assert [each.name for each in tmp_path.iterdir()] == ([] if before is None else ["k"])
