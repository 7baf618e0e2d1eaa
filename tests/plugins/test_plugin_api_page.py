"""The Python blocks of the page about versions of the plugin API run."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.plugins.test_documentation import blocks

from mooring.framework.contract import check_contract
from mooring.framework.registry import plugins_in

PAGE = Path(__file__).parents[2] / "docs" / "plugin-api.md"


def test_its_plugins_keep_the_contract(monkeypatch: pytest.MonkeyPatch):
    module = ModuleType("plugin_api_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in blocks(PAGE, "python"):
        exec(compile(block, str(PAGE), "exec"), vars(module))
    assert [cls.name for cls in plugins_in(module)] == ["Quiet"]
    for cls in plugins_in(module):
        check_contract(cls, str(PAGE))
