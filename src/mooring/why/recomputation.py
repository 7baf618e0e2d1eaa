"""Decides about pods of a cluster as a scheduler would now, and carries out nothing.

The state, the plugins and `decide` are those of a running scheduler. Between decisions the state can be changed and
changed back: that is how a proposed change is verified.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from types import TracebackType
from typing import Any, TypeVar

import msgspec

from mooring.config import Configuration
from mooring.engine import Decision, EngineCycle, Profile, ScoreColumns, decide, explanations
from mooring.engine.every_filter import PluginFilterResult, run_every_filter
from mooring.engine.scoring import score_nodes
from mooring.framework import FeatureGates, Objects, Pod
from mooring.framework.registry import Registry
from mooring.objects import Node
from mooring.objects.meta import KubeObject
from mooring.objects.placed import PlacedPod, placed
from mooring.objects.resource import ResourceClaim
from mooring.queue import QueuedPodInfo
from mooring.scheduler.loop import Scheduler
from mooring.scheduler.shadow.wiring import SilentReporter
from mooring.scheduler.watching.feeds import NodeFeed
from mooring.scheduler.watching.informers import ObjectStore
from mooring.scheduler.wiring import Core, build_core, cluster_executor, complete
from mooring.simulator.outside_data import OutsideData
from mooring.simulator.scenario import Cluster
from mooring.simulator.simulated_client import SimulatedClient
from mooring.simulator.virtual_time import START, SimulatedClock, VirtualTimeLoop
from mooring.state import RowView, State
from mooring.why.changes import ProposedChange

K = TypeVar("K", bound=KubeObject)


class Recomputation:
    """The scheduler of a configuration, with a cluster as its state. Used by `with`."""

    def __init__(
        self,
        cluster: Cluster,
        configuration: Configuration,
        registry: Registry,
        gates: FeatureGates | None = None,
        outside_data: OutsideData | None = None,
    ) -> None:
        """`outside_data`: what plugins read of other systems; None: nothing of it is known."""
        self._cluster, self._outside_data = cluster, outside_data
        self._configuration, self._registry = configuration, registry
        self.gates = gates or FeatureGates()
        self.configured_times = 1
        """How many configurations have been in force, this one included."""
        self._notes: list[str] = []
        self._core: Core
        self._scheduler: Scheduler
        self._loop: VirtualTimeLoop
        self._runner: asyncio.Runner

    def __enter__(self) -> Recomputation:
        self._loop = VirtualTimeLoop()
        self._runner = asyncio.Runner(loop_factory=lambda: self._loop)
        self._runner.__enter__()
        self._runner.run(self._begin())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.run(self._scheduler.shutdown.run())
        self._runner.__exit__(kind, error, trace)

    async def _begin(self) -> None:
        clock = SimulatedClock(self._loop, START)
        client = SimulatedClient(clock)
        names = [profile.scheduler_name for profile in self._configuration.profiles]
        self._core = core = build_core(
            client,
            self._configuration,
            self._registry,
            clock=clock,
            reporter=SilentReporter(client, names),
            gates=self.gates,
            attempt_timeout_seconds=0,
        )
        self._scheduler = complete(core, cluster_executor(core), is_explained=False)
        nodes = NodeFeed(core.state, core.queue)
        for node in self.cluster.nodes:
            nodes.found(node)
        core.informers.preload(self.cluster.seen_as)
        for pod in self.cluster.pods:
            core.pods.found(pod)
        core.services.http.is_offline = True
        self._notes = (self._outside_data or OutsideData()).publish(core.assembly.current)
        for instance in core.assembly.current.instances.values():
            await self._scheduler.lifecycle.start(instance)

    # What is known

    @property
    def cluster(self) -> Cluster:
        """What is decided on."""
        return self._cluster

    @property
    def configuration(self) -> Configuration:
        return self._configuration

    @property
    def state(self) -> State:
        return self._core.state

    @property
    def pods(self) -> Mapping[str, Pod]:
        """By uid."""
        return self._by_uid

    @cached_property
    def _by_uid(self) -> dict[str, Pod]:
        return {pod.uid: pod for pod in self.cluster.pods}

    def objects(self, kind: type[K]) -> Objects[K]:
        """All of a kind that a plugin reads."""
        return self._core.informers.store(kind)

    def known(self, kind: type[K]) -> Iterable[K]:
        """All of a kind, if a plugin reads it."""
        store = self._core.informers.stores.get(kind)
        return store.all() if store is not None else ()

    def profile_of(self, pod: Pod) -> Profile:
        """The profile that schedules it; the first one for a pod of another scheduler."""
        profiles = self._core.assembly.current.profiles
        return profiles.get(pod.spec.scheduler_name) or next(iter(profiles.values()))

    @property
    def profiles_by_name(self) -> Mapping[str, Profile]:
        return self._core.assembly.current.profiles

    @property
    def profiles(self) -> list[str]:
        return sorted(self._core.assembly.current.profiles)

    @property
    def is_extended(self) -> bool:
        """Extenders are not called here, so their results are missing."""
        return bool(self._configuration.extenders)

    def queued(self, pod: Pod) -> QueuedPodInfo | None:
        """The pod as it waits in the queue: what gates it."""
        return self._core.queue.find(pod.uid)

    def gating(self, pod: Pod) -> dict[str, Any] | None:
        """The plugin that keeps the pod out of the queue and its reasons, ready for JSON; None: it is not gated."""
        queued = self.queued(pod)
        if queued is None or queued.gating is None:
            return None
        return {"plugin": queued.gating.plugin, "reasons": list(queued.gating.reasons)}

    def view(self, node: str) -> RowView | None:
        return self.state.node(node)

    def explanations(self, pod: Pod) -> list[dict[str, Any]]:
        """What plugins know of the pod beside a decision."""
        return explanations(self.profile_of(pod), pod)

    @property
    def notes(self) -> list[str]:
        """Sentences about the outside data: from when it is, or that there is none."""
        return self._notes

    @property
    def outside_data(self) -> OutsideData:
        """What the plugins read of other systems, for a simulation."""
        return self._outside_data or OutsideData()

    # Decisions

    def decide(self, pod: Pod, profile: Profile | None = None) -> Decision:
        """One attempt, as the scheduler would make it now; everything is kept. The pod must not be on a node."""
        return decide(profile or self.profile_of(pod), pod, self.state).keep()

    def results(self, pod: Pod, node: str | None = None) -> tuple[EngineCycle, dict[str, PluginFilterResult]]:
        """Every filter's results for all nodes, or for one; and the cycle, which has the states of PreFilter."""
        cycle = EngineCycle(self.profile_of(pod), pod, self.state)
        nodes = self.state.nodes
        if node is not None:
            nodes = nodes.where(nodes.where_named((node,)))
        return cycle, run_every_filter(cycle, nodes)

    def rejecting(self, pod: Pod, node: str) -> dict[str, PluginFilterResult]:
        """The filters that reject the node, or fail there."""
        _, results = self.results(pod, node)
        return {name: each for name, each in results.items() if each.rejected or each.fault is not None}

    def scores(self, pod: Pod, nodes: list[str]) -> ScoreColumns:
        """The scores of these nodes beside each other, also of those that filters reject."""
        cycle = EngineCycle(self.profile_of(pod), pod, self.state)
        run_every_filter(cycle, self.state.nodes)
        return score_nodes(cycle, self.state.nodes.where(self.state.nodes.where_named(nodes)))

    # What-ifs

    @contextlib.contextmanager
    def without(self, pod: Pod) -> Iterator[Pod]:
        """The pod as it was before it was bound, while it counts nowhere."""
        record = self.state.remove_pod(pod.uid)
        try:
            yield unbound(pod)
        finally:
            if record is not None:
                self.state.set_pod(record)

    @contextlib.contextmanager
    def placed(self, pod: Pod, node: str) -> Iterator[None]:
        """While inside, the pod runs on the node, too."""
        self.state.set_pod(placed(pod, node))
        try:
            yield
        finally:
            self.state.remove_pod(pod.uid)

    @contextlib.contextmanager
    def applied(self, change: ProposedChange) -> Iterator[None]:
        """While inside, nodes, pods and objects are as the change makes them. The pod itself is the caller's."""
        state = self.state
        nodes: list[Node] = []
        pods: list[PlacedPod] = []
        objects: list[tuple[ObjectStore[Any], KubeObject, KubeObject | None]] = []
        try:
            for each in (*change.objects, *self._released(change.deleted)):
                if (store := self._core.informers.stores.get(type(each))) is not None:
                    objects.append((store, each, store.put(each)))
            for node in change.nodes:
                if (before := state.set_node(node)) is not None:
                    nodes.append(before)
            for uid in change.deleted:
                if (record := state.remove_pod(uid)) is not None:
                    pods.append(record)
            for resized in change.resized:
                if (record := state.set_pod(resized)) is not None:
                    pods.append(record)
            yield
        finally:
            for record in reversed(pods):
                state.set_pod(record)
            for before in reversed(nodes):
                state.set_node(before)
            for store, each, known in reversed(objects):
                store.discard(each.key) if known is None else store.put(known)

    def _released(self, deleted: Collection[str]) -> Iterator[ResourceClaim]:
        """The claims that nothing uses without these pods, as the claim controller leaves them: without devices."""
        for claim in self.known(ResourceClaim) if deleted else ():
            left = [user for user in claim.status.reserved_for if user.uid not in deleted]
            if claim.status.reserved_for and not left:
                yield ResourceClaim(metadata=claim.metadata, spec=claim.spec)


def unbound(pod: Pod) -> Pod:
    """The pod without its node, as it is decided."""
    if not pod.spec.node_name:
        return pod
    return Pod(metadata=pod.metadata, spec=msgspec.structs.replace(pod.spec, node_name=""), status=pod.status)
