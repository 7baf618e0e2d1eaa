"""The Python blocks of the page about writing plugins run, and the tests in them pass."""

from __future__ import annotations

import asyncio
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from mooring.config import load_configuration
from mooring.framework.contract import check_contract
from mooring.framework.registry import plugins_in
from mooring.plugins.catalogue import catalogue

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "writing-plugins.md"


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.M | re.S)


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """All Python blocks of the page, as one module."""
    module = ModuleType("writing_plugins_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in blocks(PAGE, "python"):
        exec(compile(block, str(PAGE), "exec"), vars(module))
    return module


def test_the_tests_on_the_page_pass(page):
    tests = [value for name, value in vars(page).items() if name.startswith("test_")]
    assert len(tests) > 5
    for test in tests:
        if inspect.iscoroutinefunction(test):
            asyncio.run(test())
        else:
            test()


def test_every_plugin_on_the_page_keeps_the_contract(page):
    plugins = plugins_in(page)
    assert len(plugins) > 5
    for cls in plugins:
        check_contract(cls, str(PAGE))


@pytest.mark.parametrize("path", [PAGE, *sorted((DOCS / "plugins").glob("*.md"))], ids=lambda path: path.stem)
def test_configurations_to_paste_load_without_a_warning(path, page):
    registry = catalogue()
    registry.add(page.NoSpot, str(PAGE))
    configurations = blocks(path, "yaml")
    assert configurations
    for text in configurations:
        assert not load_configuration(text, source=path.name, registry=registry).warnings
