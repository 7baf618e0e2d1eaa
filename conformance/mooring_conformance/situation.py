"""A case made real: the state of its cluster, and the profile of its configuration with real plugins.

What the recorder does to the objects is done here too: a namespace and a uid where they are missing, and pods that
have ended are not seen. Times like "now-600s" are relative to the clock of the services. Community plugins decide as
those of scheduler-plugins do, mistakes included (`compatibility: scheduler-plugins`).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import msgspec

from mooring.base.clock import timestamp
from mooring.config import Configuration, ProfileConfiguration, default_configuration, load_configuration
from mooring.engine import Decision, Form, Profile, decide
from mooring.framework import Args, FeatureGates, PlacedPod, Plugin, PodsWhere, Point
from mooring.framework.gates import read_gates
from mooring.framework.registry import Registry, all_object_types, build
from mooring.objects import KubeObject, Node, Pod
from mooring.objects.core import Namespace
from mooring.objects.placed import placed
from mooring.objects.pod_groups import PodGroup
from mooring.plugins.catalogue import catalogue
from mooring.state import State, StatePods
from mooring.testing import Services
from mooring_conformance.cases import Case

ENDED = ("Succeeded", "Failed")
LOAD_WATCHER = "http://load-watcher.invalid/watcher"
"""Every case with metrics names this address."""
LIKE_THE_RECORDED = "scheduler-plugins"
_RELATIVE_TIME = re.compile(rb'"now-([0-9]+)s"')

Points = Mapping[Point, Sequence[tuple[Plugin, int]]]


class Header(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""


@dataclass
class Parts:
    """The decoded objects of a case."""

    pod: Pod
    nodes: list[Node] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    others: list[KubeObject] = field(default_factory=list)
    whole: list[KubeObject] = field(default_factory=list)
    """Nodes and pods once more, for plugins that read more of them than the state keeps."""


@cache
def registry() -> Registry:
    """Every plugin that comes with Mooring; made once, because nothing changes it."""
    return catalogue()


@cache
def _kinds() -> dict[tuple[str, str], type[KubeObject]]:
    known: list[type[KubeObject]] = [Namespace, PodGroup, *all_object_types(registry())]
    return {(kind.KIND.api_version, kind.KIND.kind): kind for kind in known}


def configuration_of(case: Case, gates: FeatureGates) -> Configuration:
    """The case's configuration, read as a file would be. Raises `OperatorMistake` where it is wrong."""
    text = bytes(case.config).decode()
    if text == "null":
        return default_configuration(registry(), gates)
    return load_configuration(text, source=case.name, registry=registry(), gates=gates).configuration


def parts_of(case: Case, now: float = 0.0, watched: Collection[type[KubeObject]] = ()) -> Parts:
    """`watched`: kinds of which plugins read whole objects, also of nodes and pods."""
    parts = Parts(_completed(msgspec.json.decode(case.pod, type=Pod), "Pod", namespaced=True))
    own_kinds = [kind for kind in watched if kind.KIND.kind in ("Node", "Pod")]
    for own in own_kinds:
        if own.KIND.kind == "Pod":
            parts.whole.append(_completed(msgspec.json.decode(case.pod, type=own), "Pod", namespaced=True))
    for raw in case.objects:
        document = _RELATIVE_TIME.sub(partial(_absolute, now), bytes(raw))
        header = msgspec.json.decode(document, type=Header)
        if header.kind == "Node":
            parts.nodes.append(_completed(msgspec.json.decode(document, type=Node), "Node", namespaced=False))
        elif header.kind == "Pod":
            pod = _completed(msgspec.json.decode(document, type=Pod), "Pod", namespaced=True)
            if pod.status.phase not in ENDED:
                parts.pods.append(pod)
        elif (kind := _kinds().get((header.api_version, header.kind))) is not None:
            item = msgspec.json.decode(document, type=kind)
            parts.others.append(_completed(item, header.kind, namespaced=kind.KIND.namespaced))
        for own in own_kinds:
            if own.KIND.kind == header.kind:
                item = msgspec.json.decode(document, type=own)
                parts.whole.append(_completed(item, header.kind, namespaced=own.KIND.namespaced))
    return parts


def _absolute(now: float, relative: re.Match[bytes]) -> bytes:
    return f'"{timestamp(now - int(relative[1]))}"'.encode()


def _completed(item: Any, kind: str, *, namespaced: bool) -> Any:
    metadata = item.metadata
    namespace = metadata.namespace or ("default" if namespaced else "")
    uid = metadata.uid or f"{kind}/{namespace}/{metadata.name}"
    completed = msgspec.structs.replace(metadata, namespace=namespace, uid=uid)
    return msgspec.structs.replace(item, metadata=completed)


class RecordedPods(StatePods):
    """The pods of a case; and those that a step has permitted, which the recorder puts on no node."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.permitted: dict[str, PlacedPod] = {}
        """By uid."""

    def placed(self, where: PodsWhere) -> list[PlacedPod]:
        known = super().placed(where)
        more = [pod for pod in self.permitted.values() if where.names(pod.namespace, pod.labels)]
        return [*known, *more]


class Situation:
    """A case's cluster and the plugins that its configuration names."""

    def __init__(self, case: Case) -> None:
        self.name = case.name
        # Only the first profile counts, and every node is looked at, as the recorder does.
        gates = read_gates(f"{name}={str(value).lower()}" for name, value in (case.feature_gates or {}).items()).gates
        self.configuration = configuration_of(case, gates).profiles[0]
        self.services = Services(gates=case.feature_gates, verbosity=0)
        self.services.pods = self.pods = RecordedPods(self.services.state)
        self.parts = parts_of(case, self.services.clock.now(), _watched(self.configuration))
        self.pod = self.parts.pod
        self.points: Points = _points(self.configuration, self.services)
        for item in sorted(self.parts.others, key=lambda item: item.key):
            self.put(item)
        for node in self.parts.nodes:
            self.state.set_node(node)
        for pod in (*self.parts.pods, self.pod):
            self.put_pod(pod)
        for item in self.parts.whole:
            self.put(item)
        self._start(case)

    def _start(self, case: Case) -> None:
        """Start the plugins that fetch something, and let them fetch it."""
        plugins = {id(plugin): plugin for uses in self.points.values() for plugin, _ in uses}
        starting = [plugin for plugin in plugins.values() if hasattr(plugin, "start")]
        if not starting:
            return
        now = self.services.clock.now()
        if case.metrics is not None:
            window = {"duration": "15m", "start": int(now - 900), "end": int(now + case.window_end_offset)}
            response = {"timestamp": int(now), "window": window} | case.metrics
            self.services.http.responses[LOAD_WATCHER] = response

        async def start() -> None:
            for plugin in starting:
                await plugin.start()
            await self.services.background.step()

        asyncio.run(start())

    @property
    def state(self) -> State:
        return self.services.state

    def put(self, item: KubeObject) -> None:
        self.services.objects(type(item)).put(item)

    def take(self, item: KubeObject) -> None:
        self.services.objects(type(item)).remove(item)

    def put_pod(self, pod: Pod) -> None:
        """On its node, or among those that wait, perhaps nominated."""
        if self.is_placed(pod):
            self.state.set_pod(placed(pod))
        elif pod.spec.scheduler_name == self.configuration.scheduler_name:
            self.state.set_pending(pod)
            if pod.status.nominated_node_name:
                self.state.nominations.set(pod, pod.status.nominated_node_name)

    def take_pod(self, pod: Pod) -> None:
        self.state.remove_pod(pod.uid)
        self.state.remove_pending(pod.uid)
        self.state.nominations.remove(pod.uid)

    def is_placed(self, pod: Pod) -> bool:
        return pod is not self.pod and bool(pod.spec.node_name)

    def decide(self, form: Form, pod: Pod | None = None, points: Points | None = None) -> Decision:
        """What our plugins decide about the case's pod as things stand."""
        profile = Profile(self.configuration.scheduler_name, points or self.points, form=form)
        return decide(profile, pod or self.pod, self.state).keep()


def _points(configuration: ProfileConfiguration, services: Services) -> dict[Point, list[tuple[Plugin, int]]]:
    instances: dict[str, Plugin] = {}

    def instance(name: str) -> Plugin:
        if name not in instances:
            entry = registry().get(name)
            assert entry is not None, "the configuration was checked against this registry"
            instances[name] = build(entry.cls, _provider(configuration.args.get(name), services))
        return instances[name]

    return {point: [(instance(use.name), use.weight) for use in uses] for point, uses in configuration.points.items()}


def _provider(args: Args | None, services: Services) -> Callable[[Any], Any]:
    def provide(wanted: Any) -> Any:
        if isinstance(wanted, type) and issubclass(wanted, Args):
            return _like_the_recorded(args)
        return services.provide(wanted)

    return provide


def _like_the_recorded(args: Args | None) -> Args | None:
    """The arguments of a community plugin, with the behaviour that was recorded."""
    if args is not None and hasattr(args, "compatibility"):
        return msgspec.structs.replace(args, compatibility=LIKE_THE_RECORDED)
    return args


def _watched(configuration: ProfileConfiguration) -> tuple[type[KubeObject], ...]:
    names = dict.fromkeys(use.name for uses in configuration.points.values() for use in uses)
    return all_object_types(entry for name in names if (entry := registry().get(name)) is not None)
