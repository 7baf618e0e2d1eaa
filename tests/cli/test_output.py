"""Tables that commands print: columns line up, and long text is folded in the last one."""

from __future__ import annotations

import pytest

from mooring.cli import output

LONG = " ".join(["Insufficient"] * 14)

TABLES = {
    "columns are as wide as their values": (
        [("web", "node-1"), ("database", "n")],
        ["POD       WHY", "web       node-1", "database  n"],
    ),
    "an empty value leaves no blanks at the end": ([("web", "")], ["POD  WHY", "web"]),
    "the last column is folded under its heading": (
        [("a", LONG)],
        ["POD  WHY", f"a    {LONG[:155]}", f"     {LONG[156:]}"],
    ),
    "a line break in a value begins no row": ([("a\nb", "c")], ["POD   WHY", "a\\nb  c"]),
}


@pytest.mark.parametrize(("rows", "lines"), TABLES.values(), ids=TABLES.keys())
def test_a_table(rows: list[tuple[str, str]], lines: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table("Title", ("POD", "WHY"), rows)
    assert capsys.readouterr().out.splitlines() == ["", "Title", *lines]
