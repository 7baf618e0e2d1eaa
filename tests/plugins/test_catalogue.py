"""The catalogue: every built-in plugin under its name, with a docs page, arguments that load and hints that build."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mooring.framework import Hint, Plugin
from mooring.framework.points import CAN_REFUSE
from mooring.framework.registry import plugins_in
from mooring.plugins.catalogue import catalogue
from mooring.testing import a_plugin

ENTRIES = list(catalogue())
ROOT = Path(__file__).parents[2]
REQUIRED: dict[str, dict[str, Any]] = {
    "NetworkTraffic": {"prometheus_address": "http://prometheus.example:9090"},
    "NodeMetadata": {
        "metadata_key": "example.com/rank",
        "metadata_source": "Label",
        "metadata_type": "Number",
        "scoring_strategy": "Highest",
    },
    "Peaks": {"node_power_model": {"node-1": {"k1": 1.0, "k2": 0.1}}},
}
"""Arguments that have no default."""


def test_every_plugin_file_has_its_line():
    import importlib
    import pkgutil

    import mooring.plugins

    found = {
        cls.name
        for module in pkgutil.walk_packages(mooring.plugins.__path__, "mooring.plugins.")
        for cls in plugins_in(importlib.import_module(module.name))
    }
    assert found == {entry.name for entry in ENTRIES}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_each_is_built_with_default_arguments_and_documented(entry):
    plugin: Plugin = a_plugin(entry.cls, **REQUIRED.get(entry.name, {}))
    assert entry.cls.__doc__
    if any(point in CAN_REFUSE for point in entry.points):
        hints = plugin.events()
        assert hints is not None
        assert all(isinstance(hint, Hint) for hint in hints)
    page = ROOT / "docs" / "plugins" / f"{entry.name}.md"
    assert page.exists(), f"{page.relative_to(ROOT)} is missing"
