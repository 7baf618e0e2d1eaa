"""Which pods of a simulation a profile serves, and which plugins can take part in it.

A pod whose schedulerName no profile has is for another scheduler: what that one would do is in its configuration, not
in this one. A plugin that fetches data by HTTP has none on virtual time, unless what it fetched before is handed in.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Set

from mooring.base.errors import OperatorMistake, Problem
from mooring.config import Configuration, ProfileConfiguration
from mooring.framework import Http, Pod
from mooring.framework.contract import needs
from mooring.framework.registry import PluginEntry, Registry
from mooring.simulator.scenario import Cluster

# Pods that no profile serves


def profile_names(configuration: Configuration) -> list[str]:
    return [profile.scheduler_name for profile in configuration.profiles]


def unserved_reason(pod: Pod) -> str:
    """Why such a pod is pending."""
    return f'no profile serves its schedulerName "{pod.spec.scheduler_name}"'


def unserved_note(names: Iterable[str], configuration: Configuration) -> str:
    """What to do about pods with these schedulerNames; `names` has one for each pod."""
    counted = sorted(Counter(names).items())
    wanted = ", ".join(f'"{name}" ({number:,} {"pod" if number == 1 else "pods"})' for name, number in counted)
    served = ", ".join(profile_names(configuration))
    return (
        f"No profile serves schedulerName {wanted}: the configuration has {served}. Give the configuration of that "
        "scheduler by --config."
    )


# Plugins that fetch


def fetches(entry: PluginEntry | None) -> bool:
    return entry is not None and Http in needs(entry.cls).values()


def schedulers_of(cluster: Cluster, pods: Iterable[Pod]) -> set[str]:
    """The schedulerNames of pods that arrive, and of those that are pending in the cluster."""
    waiting = (pod for pod in cluster.pods if not pod.spec.node_name)
    return {pod.spec.scheduler_name for pods in (waiting, pods) for pod in pods}


def for_simulation(configuration: Configuration, registry: Registry, schedulers: Set[str] | None) -> Configuration:
    """Without the plugins that fetch data in profiles which serve no pod; refused where one would take part.

    `schedulers` are the schedulerNames of all pods that take part; None: they are not known.
    """
    taking_part = _fetching(configuration, registry, schedulers)
    if taking_part:
        raise OperatorMistake(
            "Plugins that fetch data by HTTP cannot be simulated: on virtual time no response arrives.",
            [
                Problem(
                    f"{entry.name} ({entry.source})", "takes the Http service; disable it, or give it the data as args"
                )
                for entry in taking_part
            ],
        )
    return _without(configuration, {entry.name for entry in _fetching(configuration, registry, None)})


def for_one_moment(
    configuration: Configuration, registry: Registry, schedulers: Set[str] | None
) -> tuple[Configuration, list[str]]:
    """For a simulation in which no time is meant to pass: plugins decide by what they fetched before.

    Without plugins that fetch data and publish none, which would fetch it while they decide; the notes name those.
    """
    entries = _fetching(configuration, registry, None)
    taking_part = {entry.name for entry in _fetching(configuration, registry, schedulers)}
    left_out = {entry.name for entry in entries if not entry.publishes}
    unused = {entry.name for entry in entries} - taking_part
    notes = [
        f"{name} fetches data by HTTP while pods are scheduled, which does not happen here: it is left out."
        for name in sorted(left_out & taking_part)
    ]
    return _without(configuration, left_out | unused), notes


def _fetching(configuration: Configuration, registry: Registry, schedulers: Set[str] | None) -> list[PluginEntry]:
    names = dict.fromkeys(
        use.name
        for profile in configuration.profiles
        if schedulers is None or profile.scheduler_name in schedulers
        for uses in profile.points.values()
        for use in uses
    )
    return [entry for name in names if (entry := registry.get(name)) is not None and fetches(entry)]


def _without(configuration: Configuration, plugins: Set[str]) -> Configuration:
    if not plugins:
        return configuration

    def reduced(profile: ProfileConfiguration) -> ProfileConfiguration:
        points = {
            point: tuple(use for use in uses if use.name not in plugins) for point, uses in profile.points.items()
        }
        used = tuple(name for name in profile.used_plugins if name not in plugins)
        args = {name: args for name, args in profile.args.items() if name not in plugins}
        return dataclasses.replace(profile, points=points, used_plugins=used, args=args)

    return dataclasses.replace(configuration, profiles=tuple(map(reduced, configuration.profiles)))
