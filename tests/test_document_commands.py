"""The `mooring …` command lines of the pages: each is an existing command with flags that it takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.test_documents import PAGES, ROOT

from mooring.base import log
from mooring.base.errors import OperatorMistake
from mooring.cli.main import cli

CODE = re.compile(r"^```\w*\n(.*?)^```$|((?:^ {4}\S.*\n?)+)|(?<!`)`(mooring [^`\n]+)`", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^\s*|\$ |\$\(|\| |-- )mooring (.*)")
ENDS = re.compile(r"\s(?:#|\||>|&&|;|2>)|\)\"|`")
SYNOPSIS = re.compile(r"…|\[|\w\|\w")
"""Such a line leaves something to the reader."""


def commands_in(text: str) -> Iterator[str]:
    for block in CODE.finditer(text):
        code = next(part for part in block.groups() if part)
        for line in code.replace("\\\n", " ").splitlines():
            found = COMMAND.search(line.split("#")[0] if line.strip().startswith("#") else line)
            if found and not SYNOPSIS.search(found[1]):
                yield ENDS.split(found[1])[0].strip()


def problem_with(command: str) -> str | None:
    """Why it cannot be typed like this. Values and files are not looked at: they are the reader's."""
    group: click.Command = cli
    words = shlex.split(command)
    # With its settings: click keeps the help flag of a command's first context.
    context = click.Context(group, info_name="mooring", **cli.context_settings)
    while isinstance(group, click.Group):
        word = words.pop(0) if words else "--help"
        if word.startswith("-"):
            return None if word in ("--help", "--version", "-h") else f"mooring has no flag {word}"
        found = group.get_command(context, word)
        if found is None:
            return f"there is no command {word}"
        group = found
    try:
        group.make_context(group.name, words, parent=context)
    except (click.BadParameter, click.exceptions.Exit):
        return None  # a wrong value, or a help flag
    except click.UsageError as error:
        return error.format_message()
    except OperatorMistake as mistake:
        return str(mistake)
    return None


@pytest.fixture(autouse=True)
def log_as_before() -> Iterator[None]:
    """Flags of the log take effect when they are read."""
    yield
    log.configure(verbosity=0, format="text")


CASES = sorted({(page, command) for page in PAGES for command in commands_in(page.read_text(encoding="utf-8"))})


@pytest.mark.parametrize(
    ("page", "command"), CASES, ids=[f"{page.relative_to(ROOT)}: {command}" for page, command in CASES]
)
def test_the_command_can_be_typed_as_it_is_shown(page: Path, command: str):
    assert problem_with(command) is None


MISTAKES = {
    "a command that there is not": "fly --config x",
    "a subcommand that there is not": "config fly x",
    "a flag that there is not": "run --confg x",
    "a flag without its value": "manifests --config",
    "a word too many": "explain one two",
}


@pytest.mark.parametrize("command", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_would_be_found(command):
    assert problem_with(command) is not None


def test_commands_are_found_wherever_they_stand():
    text = "\n".join(
        [
            "Run `mooring explain web`, or:",
            "",
            "    mooring health --check readyz",
            "",
            "```sh",
            "mooring manifests --config a \\",
            "  --name b | kubectl apply -f -   # all",
            "kubectl exec x -- mooring doctor --config c",
            "# mooring is a word here",
            "```",
        ]
    )
    assert list(commands_in(text)) == [
        "explain web",
        "health --check readyz",
        "manifests --config a    --name b",
        "doctor --config c",
    ]
