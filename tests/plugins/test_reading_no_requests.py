"""A plugin that declares that it reads no requests prepares pods whose requests cannot be read."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import force_setattr

from mooring.config.defaults import DEFAULT_PLUGINS
from mooring.framework import Plugin
from mooring.objects.core import ResourceRequirements
from mooring.plugins.catalogue import catalogue
from mooring.testing import a_cycle, a_plugin, a_pod, a_toleration, requires

PLUGINS = [
    plugin
    for plugin in (a_plugin(entry.cls) for entry in catalogue() if entry.name in DEFAULT_PLUGINS)
    if not plugin.reads_requests
]


class Unreadable(ResourceRequirements):
    """Fails where requests or limits are read."""

    def __post_init__(self) -> None:
        pass

    def __getattribute__(self, name: str) -> Any:
        assert name not in ("requests", "limits"), f"{name} were read"
        return super().__getattribute__(name)


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
def test_preparing_a_pod_reads_no_requests(plugin: Plugin):
    pod = a_pod(
        cpu="1",
        ports=[8080],
        tolerations=[a_toleration("dedicated=db:NoSchedule")],
        affinity=requires([("zone", "In", ["a"])]),
    )
    force_setattr(pod.spec.containers[0], "resources", Unreadable())
    cycle = a_cycle(pod)
    plugin.sign(pod)
    if hasattr(plugin, "pre_filter"):
        plugin.pre_filter(pod, cycle)
    if hasattr(plugin, "pre_score"):
        plugin.pre_score(pod, cycle.nodes, cycle)
    assert plugin.per_template


def test_most_plugins_read_no_requests():
    assert len(PLUGINS) == 10
