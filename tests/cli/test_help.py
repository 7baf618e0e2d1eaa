"""What is printed before anything runs: help, version, and a mistyped command."""

import os
import subprocess
import sys

import pytest
from tests.cli.conftest import Mooring

from mooring import __version__
from mooring.cli.main import COMMANDS

HEAVY = ("aiohttp", "numpy", "uvloop", "yaml", "cryptography", "msgspec", "asyncio", "re2")


def test_help_lists_every_command_and_an_example(mooring: Mooring):
    result = mooring("--help")
    assert result.code == 0
    assert "Example:\n    mooring up --nodes 3" in result.out
    for command in COMMANDS:
        assert f"\n  {command} " in result.out


def test_help_imports_nothing_heavy():
    look = (
        "import sys; from mooring.cli.main import exit_code; exit_code(['--help']);"
        f"print('heavy:', sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "heavy: []"


@pytest.mark.parametrize(
    "command", [[name] for name in COMMANDS] + [["config", "check"], ["plugin", "new"]], ids=" ".join
)
def test_every_command_has_help(mooring: Mooring, command: list[str]):
    result = mooring(*command, "--help")
    assert result.code == 0
    assert result.out.startswith(f"Usage: mooring {' '.join(command)}")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_an_example_to_paste(mooring: Mooring, command: str):
    assert f"Example:\n    mooring {command}" in mooring(command, "-h").out


@pytest.mark.parametrize("group", ["bench", "config", "crd", "plugin"])
def test_what_a_group_lists_is_a_whole_sentence_and_each_has_an_example(mooring: Mooring, group: str):
    _, _, listed = mooring(group, "-h").out.partition("Commands:\n")
    for line in listed.splitlines():
        name, _, summary = line.strip().partition("  ")
        assert summary.endswith("."), line
        assert not summary.endswith("..."), line
        assert f"Example:\n    mooring {group} {name}" in mooring(group, name, "-h").out


def test_the_version_and_whose_behaviour_it_follows(mooring: Mooring):
    result = mooring("version")
    assert result.code == 0
    assert result.out.startswith(f"mooring {__version__}\nbehaves as kube-scheduler v1.36")
    assert mooring("--version").out == f"mooring {__version__}\n"


def test_a_mistyped_command_is_guessed(mooring: Mooring):
    result = mooring("explian", "web")
    assert result.code == 2
    assert 'there is no command "explian". Did you mean "explain"?' in result.err


def test_a_command_that_resembles_none_is_not_guessed(mooring: Mooring):
    result = mooring("zzz")
    assert result.code == 2
    assert result.err.endswith('there is no command "zzz".\n')


SUBCOMMANDS = {
    "a nearly right one": (["config", "chek"], 'there is no command "chek". Did you mean "check"?'),
    "one that resembles none": (["trace", "convert"], 'there is no command "convert". `mooring trace` has'),
    "two words for one": (["explain", "deployment", "web"], 'write "deployment/web"'),
}


@pytest.mark.parametrize(("arguments", "message"), SUBCOMMANDS.values(), ids=SUBCOMMANDS.keys())
def test_a_mistyped_subcommand_is_helped(mooring: Mooring, arguments: list[str], message: str):
    result = mooring(*arguments)
    assert result.code == 2
    assert message in result.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_learns_to_complete(mooring: Mooring, shell: str):
    result = mooring("completion", shell)
    assert (result.code, result.err) == (0, "")
    assert f"_MOORING_COMPLETE={shell}_complete" in result.out


def test_commands_are_completed():
    environment = {**os.environ, "_MOORING_COMPLETE": "bash_complete", "COMP_WORDS": "mooring simul", "COMP_CWORD": "1"}
    program = "import sys; sys.argv[0] = 'mooring'; from mooring.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "plain,simulate\n"


def test_the_module_runs_as_the_command_does():
    done = subprocess.run([sys.executable, "-m", "mooring", "nope"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert 'there is no command "nope"' in done.stderr


def test_as_a_plugin_of_kubectl_it_is_called_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    from mooring.cli import main

    codes: list[int] = []
    monkeypatch.setattr(main, "leave", codes.append)
    monkeypatch.setattr("sys.argv", ["/usr/local/bin/kubectl-mooring", "explain", "--help"])
    main.main()
    assert codes == [0]
    assert capsys.readouterr().out.startswith("Usage: kubectl mooring explain [OPTIONS] [POD]")
