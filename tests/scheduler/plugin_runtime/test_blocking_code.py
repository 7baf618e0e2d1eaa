"""What is read off stacks about plugins that hold something up."""

from __future__ import annotations

import asyncio
import importlib
import inspect

import pytest

from mooring.framework import Plugin
from mooring.scheduler.plugin_runtime.blocking_code import _CALLERS, awaited_in, uncancellable_in


@pytest.mark.parametrize(("module", "function", "variable"), [(*key, name) for key, name in _CALLERS.items()])
def test_the_functions_that_call_plugins_have_the_variable_that_names_them(module, function, variable):
    classes = [each for _, each in inspect.getmembers(importlib.import_module(module), inspect.isclass)]
    codes = [getattr(each, function).__code__ for each in classes if function in vars(each)]
    assert [code for code in codes if variable in code.co_varnames]


class Awaits(Plugin):
    async def start(self) -> None:
        await self._inner()

    async def _inner(self) -> None:
        await asyncio.Event().wait()


async def calls_a_plugin() -> None:
    await Awaits().start()


async def test_a_task_that_awaits_a_plugin_names_its_method_and_its_innermost_line():
    task = asyncio.create_task(calls_a_plugin())
    await asyncio.sleep(0)
    found = awaited_in(task)
    first = inspect.getsourcelines(Awaits._inner)[1]
    assert found is not None
    assert (found.plugin, found.method, found.at) == ("Awaits", "start", f"{__file__}:{first + 1}")
    assert uncancellable_in([task]) is None
    task.cancel()
    assert uncancellable_in([task]) == found
    await asyncio.wait([task])
    assert uncancellable_in([task]) is None
