"""What scripts fetch is checked against hashes that are in the tree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = [path for path in (ROOT / "scripts").iterdir() if path.is_file()]
COMMANDS = [ROOT / "Makefile", ROOT / ".ci/run", ROOT / "deploy/Dockerfile", *SCRIPTS]


def lines(path: Path) -> list[str]:
    """Commands, one a line, without comments, with the variables of the Makefile."""
    text = re.sub(r"\s*\\\n\s*", " ", path.read_text(encoding="utf-8"))
    text = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
    for name, value in re.findall(r"^(\w+) := (.*)$", text, re.MULTILINE):
        text = text.replace(f"$({name})", value)
    return text.splitlines()


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.name)
def test_pip_installs_wheels_of_the_lock_and_nothing_else(path):
    for line in lines(path):
        if re.search(r"\b(?:pip\b.*|PIP\)) install\b", line):
            from_lock = {"--require-hashes", "--only-binary"} <= set(line.split())
            from_here = "--no-deps" in line and ("--no-index" in line or "--no-build-isolation" in line)
            assert from_lock or from_here, line


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.name)
def test_go_builds_what_its_checksums_pin(path):
    for line in lines(path):
        if re.search(r"\bgo build\b", line):
            assert "-mod=readonly" in line


def test_every_go_module_has_its_checksums():
    modules = sorted((ROOT / "scripts").glob("*/go.mod"))
    assert modules
    with_requirements = [module for module in modules if "require" in module.read_text(encoding="utf-8")]
    assert with_requirements
    assert all(module.with_name("go.sum").stat().st_size for module in with_requirements)


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.name)
def test_nothing_else_is_downloaded(path):
    for line in lines(path):
        assert not re.search(r"\b(?:curl|wget|urlopen|git clone|npm|GONOSUMDB|GONOSUMCHECK|GOFLAGS=-insecure)\b", line)


WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_named_by_commit(workflow):
    """A tag can be moved to other code."""
    used = re.findall(r"^\s*(?:- )?uses: (.*)$", workflow.read_text(encoding="utf-8"), re.MULTILINE)
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)] == []


LOCKS = sorted((ROOT / "requirements").glob("*.txt"))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_locked_package_has_a_hash(lock):
    entries = re.split(r"^(?=\w)", lock.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert entries
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []
