"""A live scheduler that is given another configuration, and plugins that record which version called them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.scheduler.conftest import Live, a_configuration

from mooring.config import load_configuration
from mooring.framework import Plugin
from mooring.framework.registry import Registry
from mooring.plugins.catalogue import catalogue
from mooring.scheduler.reload.versions import Adopted


def a_registry(plugins: Sequence[type[Plugin]] = ()) -> Registry:
    registry = catalogue()
    for plugin in plugins:
        registry.add(plugin, "test")
    return registry


async def reloaded(live: Live, *profiles: str, plugins: Sequence[type[Plugin]] = (), more: str = "") -> Adopted:
    """Let the scheduler adopt a configuration of these profiles."""
    registry = a_registry(plugins)
    text = a_configuration(*profiles) + "\n" + more
    configuration = load_configuration(text, source="new.yaml", registry=registry).configuration
    return await live.scheduler.adopt(configuration, registry)


def the(live: Live, name: str) -> Any:
    """The one instance of a plugin that is in force."""
    [found] = [plugin for plugin in live.scheduler.assembly.current.plugins if plugin.name == name]
    return found
