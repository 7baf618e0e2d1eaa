"""The tutorials and the examples' READMEs, run step by step with the real kubectl: every command and its output."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.real_kubectl.walkthrough import ROOT, walked

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


@pytest.mark.parametrize("example", ["score-by-label", "sample-filter", "random-scheduler", "gang-scheduling"])
def test_the_walk_shows_what_its_readme_shows(example: str):
    with walked(ROOT / "examples" / example / "README.md") as walk:
        assert len(walk.programs) >= 2


@pytest.mark.parametrize("example", ["load-packing", "numa", "coscheduling", "elastic-quotas"])
def test_a_walk_on_one_cluster_shows_what_its_readme_shows(example: str):
    with walked(ROOT / "examples" / example / "README.md") as walk:
        assert len(walk.programs) == 1


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_shows_what_its_reader_sees(tutorial: Path):
    with walked(tutorial) as walk:
        assert len(walk.programs) == 1


def test_the_worked_plugins_do_what_their_readme_shows():
    with walked(ROOT / "examples" / "plugins" / "README.md") as walk:
        assert len(walk.programs) == 1
