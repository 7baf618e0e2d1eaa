"""The server as a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml


@pytest.fixture
def child(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "mooring.apiserver", "--kubeconfig", str(tmp_path / "config")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def ready(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    word, url = child.stdout.readline().split()
    assert word == "Ready"
    return url


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_when_it_is_ready_and_ends_cleanly_when_told(
    child: subprocess.Popen[str], tmp_path: Path, number: signal.Signals
):
    url = ready(child)
    written = yaml.safe_load((tmp_path / "config").read_text())
    assert written["clusters"][0]["cluster"]["server"] == url
    child.send_signal(number)
    assert child.wait(timeout=30) == 0


def test_it_ends_when_its_parent_has_gone(child: subprocess.Popen[str]):
    ready(child)
    assert child.stdin is not None
    child.stdin.close()
    assert child.wait(timeout=30) == 0


def test_a_port_in_use_is_told_in_a_sentence(child: subprocess.Popen[str]):
    port = ready(child).rsplit(":", 1)[1]
    command = [sys.executable, "-m", "mooring.apiserver", "--port", port]
    second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode == 2
    assert f"127.0.0.1:{port} is in use" in second.stderr
