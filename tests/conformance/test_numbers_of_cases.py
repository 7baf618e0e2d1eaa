"""The numbers of recorded cases that pages and help name are those of the files."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from mooring.cli.conformance import conformance
from mooring_conformance.cases import community_files, family_of, recorded_files

REPOSITORY = Path(__file__).parents[2]
NOT_OF_THE_COMMUNITY = "gang"


def cases(file: Path) -> int:
    with lzma.open(file, "rb") as lines:
        return sum(1 for line in lines if line.strip())


@pytest.fixture(scope="module")
def numbers() -> dict[str, int]:
    counted = {file: cases(file) for file in recorded_files()}
    community = {family_of(file): counted[file] for file in community_files()}
    groups = community.pop(NOT_OF_THE_COMMUNITY)
    total = sum(counted.values())
    others = total - groups - sum(community.values())
    return {
        "all": total,
        "kube-scheduler": others + groups,
        "without groups": others,
        "groups": groups,
        "community": sum(community.values()),
    }


PAGES = {
    "README.md": ("all", "kube-scheduler", "community"),
    "conformance/README.md": ("all", "kube-scheduler", "community"),
    "docs/conformance.md": ("all", "without groups", "groups", "community"),
    "CHANGELOG.md": ("without groups", "groups", "community"),
}


@pytest.mark.parametrize(("page", "named"), PAGES.items(), ids=PAGES)
def test_a_page_names_them(page: str, named: tuple[str, ...], numbers: dict[str, int]):
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    assert [name for name in named if f"{numbers[name]:,}" not in text] == []


def test_so_does_the_sample_of_what_is_printed(numbers: dict[str, int]):
    text = (REPOSITORY / "docs" / "conformance.md").read_text(encoding="utf-8")
    assert f"all{numbers['all']:>24}{numbers['all']:>7}\n" in text.replace("    all", "all")


def test_so_does_the_help(numbers: dict[str, int]):
    assert f"all {numbers['all']:,} recorded" in (conformance.help or "")
