"""Which program measures the traffic of the demo: none of the user's, unless they want it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mooring.base.errors import OperatorMistake
from mooring.cli.demo.traffic import measured_traffic


async def measured(*, with_prometheus: bool) -> str:
    async with measured_traffic(with_prometheus=with_prometheus) as found:
        return found.by


def test_a_prometheus_on_the_path_is_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "prometheus"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "a stand-in for Prometheus" in asyncio.run(measured(with_prometheus=False))
    assert not (tmp_path / "started").exists()


def test_a_prometheus_that_is_wanted_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OperatorMistake, match="no `prometheus` on the PATH"):
        asyncio.run(measured(with_prometheus=True))
