"""The examples of docs/explain.md: commands on the file of the page print what the page shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.cli.conftest import Mooring, mooring

PAGE = (Path(__file__).parents[2] / "docs" / "explain.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"```console\n\$ mooring (.*?)\n(.*?)```", PAGE, re.DOTALL)
__all__ = ["mooring"]


@pytest.mark.parametrize(("command", "shown"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_a_command_of_the_page_prints_what_is_shown(
    mooring: Mooring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, shown: str
):
    [cluster] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "cluster.yaml").write_text(cluster, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    result = mooring(*shlex.split(command))
    assert (result.code, result.out) == (0, shown)
