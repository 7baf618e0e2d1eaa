"""What a process may use of the machine's memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mooring.base import memory
from mooring.base.errors import OperatorMistake
from mooring.base.memory import available_bytes, refuse_without_memory

LIMITED = """
from mooring.base import memory
memory.LEAST_LIMIT = 300_000_000
memory.os.sysconf = lambda name: 1
assert memory.limit_own_memory() == 300_000_000
try:
    bytearray(400_000_000)
except MemoryError:
    print("given up")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit what is mapped")
def test_a_process_that_limits_itself_fails_before_the_machine_does():
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, check=True)
    assert done.stdout == "given up\n"


def test_what_is_available_is_the_least_of_machine_and_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    4 kB\n")
    (tmp_path / "memory.max").write_text("3000\n")
    (tmp_path / "memory.current").write_text("1000\n")
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_CGROUP", tmp_path / "none")
    assert available_bytes() == 4096
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    assert available_bytes() == 2000
    (tmp_path / "memory.max").write_text("max\n")
    assert available_bytes() == 4096


def test_where_the_system_reports_nothing_everything_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "none")
    monkeypatch.setattr(memory, "_CGROUP", tmp_path / "none")
    refuse_without_memory("pods", 10**12, 10**6)


def test_a_number_that_does_not_fit_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 2_000_000_000)
    refuse_without_memory("nodes", 500_000, 4_000)
    with pytest.raises(OperatorMistake, match=r"600,000 nodes need about 2\.4 GB of memory, and 2\.0 GB are available"):
        refuse_without_memory("nodes", 600_000, 4_000)
