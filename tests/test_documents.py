"""The pages of the project: what they link to is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    path
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md")
    for path in sorted(ROOT.glob(pattern))
    if ".venv" not in path.parts
]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [target.partition("#")[0] for target in LINK.findall(text) if "://" not in target]
    missing = [target for target in targets if target and not (page.parent / target).exists()]
    assert missing == []
