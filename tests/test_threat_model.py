"""docs/security.md: each promise names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/security.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(tests/[\w/.]+)`")


def promises() -> list[str]:
    """The rows of the tables whose last column is "test"."""
    rows: list[str] = []
    for table in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE):
        heading, _, *body = table.splitlines()
        if heading.endswith("| test |"):
            rows += body
    return rows


PROMISES = promises()


def test_there_are_promises():
    assert len(PROMISES) > 20


@pytest.mark.parametrize("row", PROMISES, ids=lambda row: row[2:60])
def test_a_promise_names_its_tests(row):
    assert NAMED.findall(row.rsplit("|", 2)[1])


@pytest.mark.parametrize("name", sorted(set(NAMED.findall(PAGE))))
def test_a_named_test_is_there(name):
    files = [ROOT / name] if name.endswith(".py") else sorted((ROOT / name).rglob("test_*.py"))
    assert any(re.search(r"^ *(?:async )?def test_|^Test", file.read_text(encoding="utf-8"), re.M) for file in files)


def test_every_test_of_hostile_input_holds_a_promise():
    files = {f"tests/hostile/{file.name}" for file in (ROOT / "tests/hostile").glob("test_*.py")}
    of_the_measuring = {"tests/hostile/test_bounds.py"}
    assert files - set(NAMED.findall(PAGE)) == of_the_measuring
