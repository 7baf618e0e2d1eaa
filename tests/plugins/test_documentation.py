"""The page about writing plugins tells the truth: its Python blocks run, and the tests in them pass."""

from __future__ import annotations

import asyncio
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from mooring.framework.registry import check_contract, plugins_in
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


@pytest.mark.parametrize("page", [PAGE, *sorted((DOCS / "plugins").glob("*.md"))], ids=lambda page: page.stem)
def test_configurations_to_paste_name_plugins_that_exist(page):
    known = {entry.name for entry in catalogue()} | {"*", "NoSpot"}
    configurations = [yaml.safe_load(block) for block in blocks(page, "yaml")]
    assert configurations
    for configuration in configurations:
        assert configuration["kind"] == "KubeSchedulerConfiguration"
        for profile in configuration["profiles"]:
            assert {one["name"] for one in profile.get("pluginConfig", [])} <= known
            for point in profile.get("plugins", {}).values():
                assert {one["name"] for change in point.values() for one in change} <= known
