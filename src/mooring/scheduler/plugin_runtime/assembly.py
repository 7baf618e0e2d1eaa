"""From a configuration to running profiles: plugin instances with their services, shared where configured alike.

One instance per (class, arguments): profiles that configure a plugin in the same way share it, profiles that differ
do not. A new version of the configuration keeps those instances of the old one that it would build alike, with their
state.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mooring.base.clock import Clock
from mooring.base.errors import MooringError, OperatorMistake, Problem
from mooring.base.foreign_code import described, is_its_own
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.config import Configuration, ProfileConfiguration
from mooring.engine import EXTENDER, Profile
from mooring.engine.plugin_call import line_of
from mooring.framework import (
    Args,
    Background,
    ClaimsInFlight,
    ClaimWriter,
    FeatureGates,
    Hint,
    Http,
    Metrics,
    Objects,
    Plugin,
    PodEvents,
    PodGroups,
    Pods,
    PodWriter,
    Point,
    Preemptions,
    ProblemReports,
    Published,
    Queue,
    ResourceMetrics,
    VolumeWriter,
    WaitingPods,
)
from mooring.framework.definitions import install_command
from mooring.framework.events import registered_hints
from mooring.framework.points import CAN_REFUSE
from mooring.framework.registry import PluginEntry, Registry, build
from mooring.framework.services import Binder
from mooring.objects.meta import CustomResource, KubeObject
from mooring.objects.pod_groups import PodGroup
from mooring.queue import ProfileRules
from mooring.scheduler.cycle.permit import PermitRoom
from mooring.scheduler.metrics import PluginMetrics
from mooring.scheduler.plugin_runtime.http_service import HttpFetcher
from mooring.scheduler.plugin_runtime.narrow_services import narrow
from mooring.scheduler.plugin_runtime.pod_writer import ApiPodWriter
from mooring.scheduler.plugin_runtime.problem_writer import ProblemWriter
from mooring.scheduler.plugin_runtime.resource_metrics_service import ApiResourceMetrics
from mooring.scheduler.plugin_runtime.supervision import PluginBackground, Supervisor
from mooring.scheduler.plugin_runtime.volume_writer import ApiVolumeWriter
from mooring.scheduler.watching.informers import Informers
from mooring.state import State, StatePods


class PluginServices(msgspec.Struct):
    """Everything a plugin's constructor may be given."""

    clock: Clock
    client: ApiClient
    gates: FeatureGates
    state: State
    informers: Informers
    supervisor: Supervisor
    room: PermitRoom
    http: HttpFetcher
    queue: Queue
    preemptions: Preemptions
    metrics: PluginMetrics
    claim_writer: ClaimWriter
    events: PodEvents
    problems: ProblemWriter
    binder: Binder
    pod_groups: PodGroups
    claims_in_flight: ClaimsInFlight = msgspec.field(default_factory=ClaimsInFlight)

    def provider(
        self, entry: PluginEntry, args: Args | None, background: PluginBackground, published: list[Published[Any]]
    ) -> Callable[[Any], Any]:
        """Returns what one plugin's constructor requires, by type. What it is to publish is added to `published`."""
        shared: Mapping[Any, Callable[[], Any]] = {
            Clock: lambda: self.clock,
            Log: lambda: Log(entry.name),
            FeatureGates: lambda: self.gates,
            Pods: lambda: StatePods(self.state),
            WaitingPods: lambda: self.room,
            Queue: lambda: self.queue,
            Http: lambda: self.http,
            Background: lambda: background,
            Binder: lambda: self.binder,
            VolumeWriter: lambda: ApiVolumeWriter(self.client),
            ClaimWriter: lambda: self.claim_writer,
            ClaimsInFlight: lambda: self.claims_in_flight,
            PodEvents: lambda: self.events,
            ProblemReports: lambda: self.problems.for_plugin(entry.name),
            PodGroups: lambda: self.pod_groups,
            PodWriter: lambda: ApiPodWriter(self.client, self.clock),
            Preemptions: lambda: self.preemptions,
            Metrics: lambda: self.metrics,
            ResourceMetrics: lambda: ApiResourceMetrics(self.client),
        }

        def provide(wanted: Any) -> Any:
            origin = typing.get_origin(wanted)
            if origin is Objects:
                return narrow(self.informers.store(typing.get_args(wanted)[0]), Objects)
            if origin is Published:
                published.append(Published(self.clock))
                return published[-1]
            if isinstance(wanted, type) and issubclass(wanted, Args):
                return args
            return narrow(shared[wanted](), wanted)

        return provide


class Instance(msgspec.Struct, eq=False):
    """A plugin that was built, and what must end with it."""

    plugin: Plugin
    kinds: tuple[type[KubeObject], ...]
    """What it watches."""
    background: PluginBackground
    published: tuple[Published[Any], ...] = ()
    """Outside data that it reads, in the order of its constructor's parameters."""


InstanceKey = tuple[type[Plugin], bytes]
"""The class and the arguments: what makes two instances alike."""


class Assembly(msgspec.Struct):
    """The profiles, ready to decide, and what the queue must know of them."""

    profiles: dict[str, Profile] = msgspec.field(default_factory=dict)
    rules: dict[str, ProfileRules] = msgspec.field(default_factory=dict)
    kinds: dict[str, dict[type[KubeObject], set[str]]] = msgspec.field(default_factory=dict)
    """Per profile: the kinds it cannot do without, and the plugins that read them."""
    instances: dict[InstanceKey, Instance] = msgspec.field(default_factory=dict)
    """Each once, in the order they were built."""
    remedies: dict[type[KubeObject], str] = msgspec.field(default_factory=dict)
    """The command that installs a custom kind."""

    @property
    def plugins(self) -> list[Plugin]:
        return [instance.plugin for instance in self.instances.values()]

    @property
    def sort_key(self) -> Callable[[Any], Any]:
        """Of the first profile; the configuration made sure that all have the same."""
        first = next(iter(self.profiles.values()))
        sort_key: Callable[[Any], Any] = first.at(Point.QUEUE_SORT)[0].sort_key
        return sort_key


class CurrentAssembly:
    """The assembly in force; a reload replaces it."""

    def __init__(self, first: Assembly) -> None:
        self.current = first

    def replace(self, new: Assembly) -> Assembly:
        """Let the new one decide from now on. Returns the old one."""
        old, self.current = self.current, new
        return old


def assemble(
    configuration: Configuration,
    registry: Registry,
    services: PluginServices,
    kept: Mapping[InstanceKey, Instance] | None = None,
) -> Assembly:
    """Build every plugin instance and profile; what is among `kept` is not built again."""
    assembly = Assembly()
    is_extended = any(extender.filter_verb or extender.prioritize_verb for extender in configuration.extenders)

    def instance(entry: PluginEntry, profile: ProfileConfiguration) -> Plugin:
        args = profile.args.get(entry.name)
        key = (entry.cls, msgspec.json.encode(args))
        if key not in assembly.instances:
            alike = kept.get(key) if kept is not None else None
            assembly.instances[key] = alike or _built(entry, args, services)
        return assembly.instances[key].plugin

    for profile in configuration.profiles:
        used: dict[str, Plugin] = {}
        points: dict[Point, list[tuple[Plugin, int]]] = {}
        kinds: dict[type[KubeObject], set[str]] = {}
        for point, uses in profile.points.items():
            for use in uses:
                entry = registry.get(use.name)
                assert entry is not None, "the configuration was checked against this registry"
                used[use.name] = instance(entry, profile)
                points.setdefault(point, []).append((used[use.name], use.weight))
                for kind in entry.object_types:
                    kinds.setdefault(kind, set()).add(entry.name)
                    if issubclass(kind, CustomResource):
                        assembly.remedies.setdefault(kind, install_command(entry.name, entry.paths))
        if services.gates.on("GenericWorkload"):
            kinds[PodGroup] = {"GangScheduling"}
        name = profile.scheduler_name
        percentage = profile.percentage_of_nodes_to_score
        if percentage is None:
            percentage = configuration.percentage_of_nodes_to_score
        assembly.profiles[name] = Profile(name, points, percentage, is_extended=is_extended)
        assembly.rules[name] = _rules(points, used, has_extenders=bool(configuration.extenders))
        assembly.kinds[name] = kinds
    return assembly


def _built(entry: PluginEntry, args: Args | None, services: PluginServices) -> Instance:
    background = services.supervisor.for_plugin(entry.name)
    published: list[Published[Any]] = []
    try:
        plugin = build(entry.cls, services.provider(entry, args, background, published))
    except BaseException as error:  # whatever a constructor raises, also SystemExit
        if isinstance(error, MooringError) or not is_its_own(error):
            raise
        raise OperatorMistake(
            f"plugin {entry.name} ({entry.source}) cannot be built.",
            [Problem(f"{entry.name}.__init__", _raised(error, entry.cls))],
        ) from error
    return Instance(plugin, entry.object_types, background, tuple(published))


def _raised(error: BaseException, cls: type[Plugin]) -> str:
    """What, and at which line of the plugin's own file."""
    line = line_of(error, cls)
    return f"{described(error)} ({line})" if line else described(error)


def _hints(plugin: Plugin, *, can_refuse: bool) -> list[Hint]:
    try:
        return registered_hints(plugin.events(), can_refuse=can_refuse)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        what = _raised(error, type(plugin))
        raise OperatorMistake(
            f"plugin {plugin.name} cannot be built.", [Problem(f"{plugin.name}.events", what)]
        ) from error


def _rules(
    points: Mapping[Point, list[tuple[Plugin, int]]], used: Mapping[str, Plugin], *, has_extenders: bool
) -> ProfileRules:
    refusers = {plugin.name for point in CAN_REFUSE for plugin, _ in points.get(point, ())}
    hints: dict[str, list[Hint]] = {name: _hints(plugin, can_refuse=name in refusers) for name, plugin in used.items()}
    if has_extenders:
        # They register for no events: any may help a pod that they rejected.
        hints[EXTENDER] = registered_hints(None, can_refuse=True)
    gates = [(plugin.name, plugin.pre_enqueue) for plugin, _ in points.get(Point.PRE_ENQUEUE, ())]
    return ProfileRules(hints=hints, pre_enqueue=gates)
