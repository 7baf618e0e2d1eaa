"""Configurations for tests: which plugins run is all that matters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mooring.base.documents import written
from mooring.config import Configuration, load_configuration
from mooring.framework.registry import Registry
from mooring.plugins.catalogue import catalogue


def a_file(
    *, name: str = "mooring", disabled: Sequence[str] = (), enabled: Sequence[str] = (), **others: Any
) -> dict[str, Any]:
    sets = {
        "enabled": [{"name": plugin} for plugin in enabled],
        "disabled": [{"name": plugin} for plugin in disabled],
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": name, "plugins": {"multiPoint": sets}}],
        **others,
    }


def a_configuration(registry: Registry | None = None, **fields: Any) -> Configuration:
    text = written(a_file(**fields))
    return load_configuration(text, source="test.yaml", registry=registry or catalogue()).configuration
