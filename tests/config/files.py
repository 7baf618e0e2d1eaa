"""Configurations for tests, and the messages of loading them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.config.default_plugins import EVERYTHING

from mooring.base.documents import written
from mooring.base.errors import OperatorMistake
from mooring.config import Configuration, Loaded, ProfileConfiguration, load_configuration
from mooring.framework import FeatureGates, Point
from mooring.framework.registry import Registry

V1 = "kubescheduler.config.k8s.io/v1"


def a_file(version: str = "v1", **fields: Any) -> str:
    """The text of a configuration with these fields."""
    return written(
        {"apiVersion": f"kubescheduler.config.k8s.io/{version}", "kind": "KubeSchedulerConfiguration", **fields}
    )


def a_profile_file(version: str = "v1", plugins: Any = None, args: dict[str, Any] | None = None) -> str:
    """The text of a configuration with one profile."""
    profile: dict[str, Any] = {"schedulerName": "mine"}
    if plugins is not None:
        profile["plugins"] = plugins
    if args is not None:
        profile["pluginConfig"] = [{"name": name, "args": given} for name, given in args.items()]
    return a_file(version, profiles=[profile])


def load(text: str, registry: Registry = EVERYTHING, gates: FeatureGates | None = None) -> Loaded:
    return load_configuration(text, source="scheduler.yaml", registry=registry, gates=gates)


def configuration(text: str) -> Configuration:
    return load(text).configuration


def profile(text: str, registry: Registry = EVERYTHING) -> ProfileConfiguration:
    return load(text, registry).configuration.profiles[0]


def names(found: ProfileConfiguration, point: Point) -> list[str]:
    return [use.name for use in found.points[point]]


def weights(found: ProfileConfiguration) -> dict[str, int]:
    return {use.name: use.weight for use in found.points[Point.SCORE]}


def mistakes(text: str, registry: Registry = EVERYTHING, gates: FeatureGates | None = None) -> dict[str, str]:
    """Path → message of everything that is wrong with a file."""
    with pytest.raises(OperatorMistake) as mistake:
        load(text, registry, gates)
    return {problem.path: problem.message for problem in mistake.value.problems}


def warnings(text: str, registry: Registry = EVERYTHING) -> dict[str, str]:
    return {problem.path: problem.message for problem in load(text, registry).warnings}
