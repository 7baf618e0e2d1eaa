"""The examples' own READMEs, walked step by step with the real kubectl: every command, and what it shows."""

from __future__ import annotations

import pytest
from tests.real_kubectl.walkthrough import ROOT, walked


@pytest.mark.parametrize("example", ["score-by-label", "sample-filter", "random-scheduler"])
def test_the_walk_shows_what_its_readme_shows(example: str):
    with walked(ROOT / "examples" / example / "README.md") as walk:
        assert len(walk.programs) >= 2


def test_the_worked_plugins_do_what_their_readme_shows():
    with walked(ROOT / "examples" / "plugins" / "README.md") as walk:
        assert len(walk.programs) == 1
