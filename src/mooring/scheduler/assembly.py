"""From a configuration to running profiles: plugin instances with their services, shared where configured alike.

One instance per (class, arguments): profiles that configure a plugin in the same way share it, profiles that differ
do not.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from mooring.base.clock import Clock
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.config import Configuration, ProfileConfiguration
from mooring.engine import Profile
from mooring.framework import (
    Args,
    Background,
    FeatureGates,
    Hint,
    Http,
    Objects,
    Plugin,
    Pod,
    Pods,
    PodsWhere,
    Point,
    Published,
    Queue,
    WaitingPods,
)
from mooring.framework.events import registered_hints
from mooring.framework.points import CAN_REFUSE
from mooring.framework.registry import PluginEntry, Registry, build
from mooring.framework.services import Binder
from mooring.objects.meta import KubeObject
from mooring.objects.placed import PlacedPod
from mooring.queue import ProfileRules, SchedulingQueue
from mooring.scheduler.http import HttpFetcher
from mooring.scheduler.informers import Informers
from mooring.scheduler.supervision import Supervisor
from mooring.scheduler.waiting import PermitRoom
from mooring.state import State


class ApiBinder:
    """The `Binder` service: pods/binding, with the pod's uid as precondition."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def bind(self, pod: Pod, node: str) -> None:
        await self._client.bind(pod.namespace, pod.name, pod.uid, node)


class StatePods:
    """The `Pods` service."""

    def __init__(self, state: State) -> None:
        self._state = state

    def placed(self, where: PodsWhere) -> list[PlacedPod]:
        return self._state.placed(where)

    def pending(self, where: PodsWhere) -> list[Pod]:
        return self._state.pending(where)


class QueueAccess:
    """The `Queue` service. Plugins are built before the queue that asks them, so it is filled in afterwards."""

    def __init__(self) -> None:
        self.queue: SchedulingQueue | None = None

    def activate(self, pods: Iterable[Pod]) -> None:
        if self.queue is not None:
            self.queue.activate(pods)

    def retry_after(self, pod: Pod, seconds: float) -> None:
        if self.queue is not None:
            self.queue.retry_after(pod, seconds)


@dataclass
class Services:
    """Everything a plugin's constructor may be given."""

    clock: Clock
    client: ApiClient
    gates: FeatureGates
    state: State
    informers: Informers
    supervisor: Supervisor
    room: PermitRoom
    http: HttpFetcher
    queue: QueueAccess

    def provider(self, entry: PluginEntry, args: Args | None) -> Callable[[Any], Any]:
        """Answers what one plugin's constructor asks for, by type."""
        shared: Mapping[Any, Callable[[], Any]] = {
            Clock: lambda: self.clock,
            Log: lambda: Log(entry.name),
            FeatureGates: lambda: self.gates,
            Pods: lambda: StatePods(self.state),
            WaitingPods: lambda: self.room,
            Queue: lambda: self.queue,
            Http: lambda: self.http,
            Background: lambda: self.supervisor.for_plugin(entry.name),
            Binder: lambda: ApiBinder(self.client),
        }

        def provide(asked: Any) -> Any:
            origin = typing.get_origin(asked)
            if origin is Objects:
                return self.informers.store(typing.get_args(asked)[0])
            if origin is Published:
                return Published(self.clock)
            if isinstance(asked, type) and issubclass(asked, Args):
                return args
            return shared[asked]()

        return provide


@dataclass
class Assembly:
    """The profiles, ready to decide, and what the queue must know of them."""

    profiles: dict[str, Profile] = field(default_factory=dict)
    rules: dict[str, ProfileRules] = field(default_factory=dict)
    kinds: dict[str, dict[type[KubeObject], set[str]]] = field(default_factory=dict)
    """Per profile: the kinds it cannot do without, and the plugins that read them."""
    plugins: list[Plugin] = field(default_factory=list)
    """Each instance once, in the order they were built."""

    @property
    def sort_key(self) -> Callable[[Any], Any]:
        """Of the first profile; the configuration made sure that all have the same."""
        first = next(iter(self.profiles.values()))
        sort_key: Callable[[Any], Any] = first.at(Point.QUEUE_SORT)[0].sort_key
        return sort_key


def assemble(configuration: Configuration, registry: Registry, services: Services) -> Assembly:
    """Build every plugin instance and profile."""
    assembly = Assembly()
    instances: dict[tuple[type[Plugin], bytes], Plugin] = {}

    def instance(entry: PluginEntry, profile: ProfileConfiguration) -> Plugin:
        args = profile.args.get(entry.name)
        key = (entry.cls, msgspec.json.encode(args))
        if key not in instances:
            instances[key] = build(entry.cls, services.provider(entry, args))
            assembly.plugins.append(instances[key])
        return instances[key]

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
        name = profile.scheduler_name
        percentage = profile.percentage_of_nodes_to_score
        if percentage is None:
            percentage = configuration.percentage_of_nodes_to_score
        assembly.profiles[name] = Profile(name, points, percentage)
        assembly.rules[name] = _rules(points, used)
        assembly.kinds[name] = kinds
    return assembly


def _rules(points: Mapping[Point, list[tuple[Plugin, int]]], used: Mapping[str, Plugin]) -> ProfileRules:
    refusers = {plugin.name for point in CAN_REFUSE for plugin, _ in points.get(point, ())}
    hints: dict[str, list[Hint]] = {
        name: registered_hints(plugin.events(), can_refuse=name in refusers) for name, plugin in used.items()
    }
    # That they have the method the registry has checked, not the type.
    gates = [(plugin.name, getattr(plugin, "pre_enqueue")) for plugin, _ in points.get(Point.PRE_ENQUEUE, ())]  # noqa: B009
    return ProfileRules(hints=hints, pre_enqueue=gates)
