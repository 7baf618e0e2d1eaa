"""The page about the plugin API tells the truth: its Python blocks run, and the tests in them pass."""

from __future__ import annotations

import asyncio
import inspect
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.plugins.test_documentation import blocks

from mooring.framework.contract import check_contract
from mooring.framework.registry import plugins_in

PAGE = Path(__file__).parents[2] / "docs" / "plugin-api.md"


def test_its_plugins_keep_the_contract_and_its_tests_pass(monkeypatch: pytest.MonkeyPatch):
    module = ModuleType("plugin_api_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in blocks(PAGE, "python"):
        exec(compile(block, str(PAGE), "exec"), vars(module))
    assert [cls.name for cls in plugins_in(module)] == ["RackNote", "Diary", "Quiet"]
    for cls in plugins_in(module):
        check_contract(cls, str(PAGE))
    tests = [value for name, value in vars(module).items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        answer = test()
        if inspect.iscoroutine(answer):
            asyncio.run(answer)
