"""Which scheduler is simulated: a KubeSchedulerConfiguration in any form, and plugin classes that it may name.

simulate(cluster, workload)  # the default profile
simulate(cluster, workload, plugins=[MyScore])  # and a plugin of ours beside its plugins
simulate(cluster, workload, profile(enable=[MyScore], weights={"MyScore": 5}, disable=["ImageLocality"]))
simulate(cluster, workload, "scheduler.yaml", plugins=["my_plugin.py"])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from mooring.base.documents import written
from mooring.base.errors import OperatorMistake
from mooring.config import Configuration, load_configuration
from mooring.framework import FeatureGates, Plugin
from mooring.framework.registry import Registry
from mooring.plugins.catalogue import catalogue

PluginSource: TypeAlias = type[Plugin] | str
"""A class, or what `--plugins` accepts: a file, a folder, `module:Class`."""
AnyConfiguration: TypeAlias = Configuration | Mapping[str, Any] | str | Path | None
"""Loaded; as a document, such as `profile` makes; the path of a file; None: the default profile."""

SCHEDULER_NAME = "default-scheduler"


class ProfileDocument(dict[str, Any]):
    """A KubeSchedulerConfiguration with one profile, and the classes that it enables."""

    classes: tuple[type[Plugin], ...] = ()


def profile(
    *,
    enable: Iterable[type[Plugin] | str] = (),
    disable: Iterable[str] = (),
    weights: Mapping[str, int] | None = None,
    args: Mapping[str, Mapping[str, Any]] | None = None,
    percentage_of_nodes_to_score: int | None = None,
) -> ProfileDocument:
    """A KubeSchedulerConfiguration with one profile: the default plugins without those of `disable` (`"*"`: all but
    queue sort and binding), and those of `enable`. `weights` and `args` are by the name of a plugin.

    It is a plain document: written as YAML, `mooring run --config` takes it.
    """
    weights = dict(weights or {})
    enable = list(enable)
    enabled = {each if isinstance(each, str) else each.__name__: None for each in enable}
    uses = [{"name": name, **({"weight": weights[name]} if name in weights else {})} for name in enabled]
    plugins: dict[str, Any] = {"multiPoint": {"enabled": uses, "disabled": [{"name": name} for name in disable]}}
    if "*" in {each["name"] for each in plugins["multiPoint"]["disabled"]}:
        uses[:0] = [{"name": name} for name in ALWAYS if name not in enabled]
    # The weight of a default plugin is set at its extension point, where it replaces the default.
    scored = [{"name": name, "weight": weight} for name, weight in weights.items() if name not in enabled]
    if scored:
        plugins["score"] = {"enabled": scored, "disabled": [{"name": each["name"]} for each in scored]}
    chosen: dict[str, Any] = {"schedulerName": SCHEDULER_NAME, "plugins": plugins}
    if args:
        chosen["pluginConfig"] = [{"name": name, "args": dict(values)} for name, values in args.items()]
    if percentage_of_nodes_to_score is not None:
        chosen["percentageOfNodesToScore"] = percentage_of_nodes_to_score
    made = ProfileDocument(
        apiVersion="kubescheduler.config.k8s.io/v1", kind="KubeSchedulerConfiguration", profiles=[chosen]
    )
    made.classes = tuple(each for each in enable if not isinstance(each, str))
    return made


ALWAYS = ("PrioritySort", "DefaultBinder")
"""Without one of each kind there is no profile."""


def registry_of(plugins: Sequence[PluginSource], configuration: AnyConfiguration = None) -> Registry:
    """Every plugin that can be configured: built in, installed, and these."""
    registry = catalogue()
    registry.add_entry_points()
    classes = configuration.classes if isinstance(configuration, ProfileDocument) else ()
    for each in dict.fromkeys((*plugins, *classes)):
        if isinstance(each, str):
            registry.add_path(each)
        else:
            registry.add(each, each.__module__)
    return registry


def configured(
    configuration: AnyConfiguration, registry: Registry, plugins: Sequence[PluginSource], gates: FeatureGates | None
) -> Configuration:
    """Loaded and checked. Without a configuration, plugin classes join the default profile."""
    if isinstance(configuration, Configuration):
        return configuration
    if isinstance(configuration, str | Path):
        try:
            text, source = Path(configuration).read_text(encoding="utf-8"), str(configuration)
        except OSError as error:
            raise OperatorMistake(f"The configuration {configuration} cannot be read: {error.strerror}.") from error
    else:
        if configuration is None:
            configuration = profile(enable=[each for each in plugins if not isinstance(each, str)])
        text, source = written(dict(configuration)), "the configuration"
    return load_configuration(text, source=source, registry=registry, gates=gates).configuration
