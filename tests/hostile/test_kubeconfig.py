"""A kubeconfig in the current folder that no flag names: another user may have put it there."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.programs import clean_environment

from mooring.base.errors import OperatorMistake
from mooring.cli.kubeconfig_file import DEFAULT, connection_here
from mooring.client import load_own_kubeconfig

ANOTHER_USER = 65534
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: mooring
clusters:
- name: mooring
  cluster: {{server: "https://127.0.0.1:1"}}
users:
- name: mooring
  user: {user}
contexts:
- name: mooring
  context: {{cluster: mooring, user: mooring}}
"""
TOKEN = KUBECONFIG.format(user="{token: mine}")


def running(command: Path) -> str:
    """A kubeconfig whose credentials come from an exec plugin."""
    program = f"apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: {command}"
    return KUBECONFIG.format(user=f"{{exec: {{{program}}}}}")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which every user may write to."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def mine(here: Path) -> Path:
    file = here / DEFAULT
    file.write_text(TOKEN)
    file.chmod(0o600)
    return file


@pytest.fixture
def belongs_to_another(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """As root the file is given away; otherwise we become another user ourselves."""

    def give_away(path: Path) -> None:
        if os.geteuid() == 0:
            os.chown(path, ANOTHER_USER, ANOTHER_USER, follow_symlinks=False)
        else:
            other = os.geteuid() + 1
            monkeypatch.setattr(os, "geteuid", lambda: other)

    return give_away


def refusal(kubeconfig: str | None = None, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(OperatorMistake) as caught:
        connection_here(kubeconfig, environ or {})
    return str(caught.value)


def assert_names_file_and_remedy(text: str) -> None:
    assert text.startswith(f"The kubeconfig {DEFAULT} is not used: ")
    assert f"--kubeconfig {DEFAULT}" in text


def test_ones_own_file_is_used(mine):
    assert connection_here(None, {}).token == "mine"
    mine.chmod(0o644)  # others may read it: that is no reason to distrust it
    assert connection_here(None, {}).token == "mine"


def test_another_users_file_is_refused(mine, belongs_to_another):
    belongs_to_another(mine)
    text = refusal()
    assert re.search(r"it belongs to another user \(uid \d+\)", text)
    assert_names_file_and_remedy(text)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write_is_refused(mine, mode):
    mine.chmod(mode)
    text = refusal()
    assert f"other users can write to it (mode {mode:04o}; chmod 600 {DEFAULT} changes that)" in text
    assert_names_file_and_remedy(text)


@pytest.mark.parametrize("to", ["another user's file", "a file of ones own", "nothing"])
def test_a_link_is_refused_wherever_it_points(here, tmp_path, belongs_to_another, to):
    target = tmp_path / "elsewhere"
    if to != "nothing":
        target.write_text(TOKEN)
        target.chmod(0o600)
    (here / DEFAULT).symlink_to(target)
    if to == "another user's file":
        belongs_to_another(target)
    text = refusal()
    assert "it is a symbolic link" in text
    assert_names_file_and_remedy(text)


def test_a_hard_link_is_refused(here, tmp_path):
    """fs.protected_hardlinks is not switched on everywhere."""
    (tmp_path / "config").write_text(TOKEN)
    (tmp_path / "config").chmod(0o600)
    os.link(tmp_path / "config", here / DEFAULT)
    text = refusal()
    assert "it is a hard link" in text
    assert_names_file_and_remedy(text)


@pytest.mark.parametrize("kind", ["a pipe", "a folder"])
def test_what_is_no_file_is_refused_without_waiting(here, kind):
    (os.mkfifo if kind == "a pipe" else os.mkdir)(here / DEFAULT)
    text = refusal()
    assert "it is no regular file" in text
    assert_names_file_and_remedy(text)


def test_no_program_is_run_even_from_ones_own_file(mine, tmp_path):
    mine.write_text(running(tmp_path / "program"))
    text = refusal()
    assert f"its user names a program to run ({tmp_path / 'program'})" in text
    assert_names_file_and_remedy(text)


def test_a_program_of_a_user_that_is_not_chosen_is_no_reason(mine):
    program = "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: x}"
    mine.write_text(TOKEN.replace("contexts:", f"- name: other\n  user: {{{program}}}\ncontexts:"))
    assert connection_here(None, {}).token == "mine"


def test_a_file_that_is_named_is_used_as_it_is(mine, tmp_path, belongs_to_another):
    mine.write_text(running(tmp_path / "program"))
    mine.chmod(0o666)
    belongs_to_another(mine)
    by_flag = connection_here(DEFAULT, {})
    by_variable = connection_here(None, {"KUBECONFIG": DEFAULT})
    for connection in (by_flag, by_variable):
        assert connection.exec is not None
        assert connection.exec.command == str(tmp_path / "program")


def test_what_is_read_is_the_file_that_was_checked(mine, monkeypatch, tmp_path):
    """The attacker renames another file to this name after the check."""
    planted = tmp_path / "planted"
    planted.write_text(running(tmp_path / "program"))
    fstat = os.fstat

    def swap(descriptor: int) -> os.stat_result:
        found = fstat(descriptor)
        if stat.S_ISREG(found.st_mode) and planted.exists():
            planted.replace(mine)
        return found

    monkeypatch.setattr(os, "fstat", swap)
    assert load_own_kubeconfig(DEFAULT, environ={}).token == "mine"


def test_explain_in_a_shared_folder_runs_nothing(here, tmp_path):
    """The whole command, as a victim would run it."""
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\nid > {tmp_path / 'it-ran'}\n")
    program.chmod(0o755)
    (here / DEFAULT).write_text(running(program))
    if os.geteuid() == 0:
        os.chown(here / DEFAULT, ANOTHER_USER, ANOTHER_USER)
    ended = subprocess.run(
        [sys.executable, "-m", "mooring", "explain", "web"],
        cwd=here,
        env=clean_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 2
    assert_names_file_and_remedy(ended.stderr.removeprefix("Error: "))
    assert not (tmp_path / "it-ran").exists()
