"""The page for authors of Go plugins is right: its Python runs, its tables are complete, its links lead on."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from mooring.framework.contract import check_contract
from mooring.framework.points import Point
from mooring.framework.registry import plugins_in

PAGE = Path(__file__).parents[2] / "docs" / "from-go.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """All Python blocks of the page, as one module."""
    module = ModuleType("from_go_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in re.findall(r"^```python\n(.*?)^```$", TEXT, re.M | re.S):
        exec(compile(block, str(PAGE), "exec"), vars(module))
    return module


def test_the_plugins_on_the_page_keep_the_contract_and_its_test_passes(page):
    plugins = plugins_in(page)
    assert {plugin.name for plugin in plugins} == {"CpuLabel", "ByLabel", "BySlots"}
    for plugin in plugins:
        check_contract(plugin, str(PAGE))
    page.test_the_higher_number_wins()


@pytest.mark.parametrize("point", Point, ids=lambda point: point.interface)
def test_every_interface_of_the_framework_stands_beside_our_method(point):
    (row,) = [line for line in TEXT.splitlines() if line.startswith(f"| `{point.interface}`")]
    for method in point.methods:
        assert re.search(rf"\b{method}\b", row)


def test_the_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)", TEXT)
    assert len(links) > 5
    for link in links:
        assert (PAGE.parent / link).exists(), link
