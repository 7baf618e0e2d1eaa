"""What the reports of nodes do not contain yet: three ways to account for pods that were just placed.

- `Reports`: none. Reports are used as they are.
- `DiscardReserved`: a node is not used while a pod is being bound to it.
- `OverReserve`: a pod counts on every NUMA node of its node until a report contains it: until the fingerprint of the
  pods in the report is that of the pods on the node. A node with pods of other schedulers is not used until then.
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from typing import Protocol

import msgspec

from mooring.framework import Log, Objects, Pod
from mooring.objects.core import Container, ResourceRequirements
from mooring.objects.meta import KubeObject
from mooring.objects.pod_fingerprint import (
    ANNOTATION,
    ATTRIBUTE,
    METHOD_ATTRIBUTE,
    ONLY_EXCLUSIVE,
    fingerprint,
)
from mooring.objects.qos import Qos, qos_by
from mooring.objects.quantity import exact, whole
from mooring.objects.wire import Wire
from mooring.plugins.community.node_resource_topology.pod_needs import Amounts, is_native, needs_of
from mooring.plugins.community.node_resource_topology.topologies import NodeResourceTopology, NumaNode

ENDED = ("Succeeded", "Failed")


class TopologyPodSpec(Wire):
    node_name: str = ""
    scheduler_name: str = ""
    containers: list[Container] = []
    init_containers: list[Container] = []
    resources: ResourceRequirements | None = None


class TopologyPodStatus(Wire):
    phase: str = ""


class TopologyPod(KubeObject, version="v1", plural="pods", kind="Pod"):
    """What the caches read of a pod on a node: which scheduler placed it, and whether it has resources of its own."""

    spec: TopologyPodSpec = msgspec.field(default_factory=TopologyPodSpec)
    status: TopologyPodStatus = msgspec.field(default_factory=TopologyPodStatus)

    def is_exclusive(self, of_zones: set[str]) -> bool:
        """Whether it has whole CPUs, memory or devices of NUMA nodes to itself once its init containers have ended."""
        spec = self.spec
        every = [container.resources for container in (*spec.containers, *spec.init_containers)]
        is_guaranteed = qos_by(spec.resources, every) is Qos.GUARANTEED
        steady = [*spec.containers, *(each for each in spec.init_containers if each.restart_policy == "Always")]
        for container in steady:
            for name, text in container.resources.requests.items():
                if not is_native(name):
                    if name in of_zones:
                        return True
                elif is_guaranteed and exact(text) > 0:
                    if name == "cpu":
                        if exact(text).denominator == 1:
                            return True
                    elif (name == "memory" or name.startswith("hugepages-")) and whole(text) > 0:
                        return True
        return False


class TopologyCache(Protocol):
    """Which topology counts for a node now."""

    def known_nodes(self) -> Collection[str]:
        """The nodes that have a topology or are stale: all others pass every filter, and score 0."""
        ...

    def is_stale(self, node: str) -> bool:
        """Whether nothing is known that can be used."""
        ...

    def get(self, node: str) -> NodeResourceTopology | None: ...
    def numa_nodes(self, topology: NodeResourceTopology) -> tuple[NumaNode, ...]:
        """Its NUMA nodes, less what is reserved."""
        ...

    def reserve(self, pod: Pod, node: str) -> None: ...
    def unreserve(self, pod: Pod, node: str) -> None: ...
    def bound(self, pod: Pod, node: str) -> None: ...
    def refused(self, node: str) -> None:
        """The node refused a pod, perhaps for what is reserved there."""
        ...


class Reports:
    """Every report as it is."""

    def __init__(self, topologies: Objects[NodeResourceTopology]) -> None:
        self._topologies = topologies
        self._names: tuple[int, frozenset[str]] | None = None
        """The nodes with a report, and of which version of the objects."""

    def known_nodes(self) -> Collection[str]:
        if self._names is None or self._names[0] != self._topologies.version:
            self._names = (self._topologies.version, frozenset(each.name for each in self._topologies.all()))
        return self._names[1]

    def is_stale(self, node: str) -> bool:
        return False

    def get(self, node: str) -> NodeResourceTopology | None:
        return self._topologies.get(node)

    def numa_nodes(self, topology: NodeResourceTopology) -> tuple[NumaNode, ...]:
        return topology.numa_nodes

    def reserve(self, pod: Pod, node: str) -> None:
        pass

    def unreserve(self, pod: Pod, node: str) -> None:
        pass

    def bound(self, pod: Pod, node: str) -> None:
        pass

    def refused(self, node: str) -> None:
        pass


class DiscardReserved(Reports):
    """Reports of nodes to which no pod is being bound."""

    def __init__(self, topologies: Objects[NodeResourceTopology]) -> None:
        super().__init__(topologies)
        self._reserved: dict[str, set[str]] = {}
        """By node the uids of pods."""

    def known_nodes(self) -> Collection[str]:
        return {*super().known_nodes(), *self._reserved} if self._reserved else super().known_nodes()

    def is_stale(self, node: str) -> bool:
        return bool(self._reserved.get(node))

    def reserve(self, pod: Pod, node: str) -> None:
        self._reserved.setdefault(node, set()).add(pod.uid)

    def unreserve(self, pod: Pod, node: str) -> None:
        left = self._reserved.get(node)
        if left is not None:
            left.discard(pod.uid)
            if not left:
                del self._reserved[node]

    bound = unreserve


class OverReserve:
    """Cached reports, less what was placed since on every NUMA node."""

    def __init__(
        self,
        topologies: Objects[NodeResourceTopology],
        pods: Objects[TopologyPod],
        log: Log,
        *,
        foreign_pods: str,
        resync_method: str,
        watches_attributes: bool,
        only_running: bool,
    ) -> None:
        """`foreign_pods`: All, None or OnlyExclusiveResources. `only_running`: of pods on nodes, those that run."""
        self._topologies, self._log = topologies, log
        self._reports = Reports(topologies)
        self._foreign_pods, self._resync_method = foreign_pods, resync_method
        self._watches_attributes, self._only_running = watches_attributes, only_running
        self._on_node = pods.indexed(lambda pod: (pod.spec.node_name,) if pod.spec.node_name else ())
        self._cached: dict[str, NodeResourceTopology] = {}
        self._reserved: dict[str, dict[str, Amounts]] = {}
        """By node and pod."""
        self._dirty: set[str] = set()
        self._known_foreign: dict[str, frozenset[str]] = {}
        """By node: the foreign pods that its cached report contains."""
        self.profiles: set[str] = set()
        """The scheduler names of pods that this plugin decides about; all other pods are foreign."""

    def known_nodes(self) -> Collection[str]:
        return {*self._cached, *self._reports.known_nodes()}

    def is_stale(self, node: str) -> bool:
        if self._foreign_pods == "None" or self.get(node) is None:
            return False
        return self._foreign_on(node) != self._known_foreign.get(node, frozenset())

    def get(self, node: str) -> NodeResourceTopology | None:
        cached = self._cached.get(node)
        if cached is None:
            cached = self._topologies.get(node)
            if cached is not None:
                self._cached[node] = cached
        return cached

    def numa_nodes(self, topology: NodeResourceTopology) -> tuple[NumaNode, ...]:
        reserved = self._reserved.get(topology.name)
        if not reserved:
            return topology.numa_nodes
        return tuple(
            numa._replace(available={name: _less(name, have, reserved) for name, have in numa.available.items()})
            for numa in topology.numa_nodes
        )

    def reserve(self, pod: Pod, node: str) -> None:
        if self.get(node) is not None:
            self._reserved.setdefault(node, {})[pod.key] = needs_of(pod).whole

    def unreserve(self, pod: Pod, node: str) -> None:
        reserved = self._reserved.get(node)
        if reserved is not None:
            reserved.pop(pod.key, None)

    def bound(self, pod: Pod, node: str) -> None:
        """It stays reserved until a report contains it."""

    def refused(self, node: str) -> None:
        self._dirty.add(node)

    async def resync(self) -> None:
        """Take over the reports of nodes that refused pods or have foreign ones, where they contain all pods."""
        stale = {node for node in self._cached if self.is_stale(node)}
        for node in sorted(self._dirty | stale):
            report = self._topologies.get(node)
            if report is not None and self._contains_all_pods(report):
                self._take_over(report)
        for node, cached in list(self._cached.items()):
            report = self._topologies.get(node)
            if report is None:
                self._forget(node)
            elif self._watches_attributes and report.kubelet != cached.kubelet:
                self._take_over(report)

    def _contains_all_pods(self, report: NodeResourceTopology) -> bool:
        expected, only_exclusive = self._fingerprint_of(report)
        if not expected:
            self._log.v(2).info("The report has no fingerprint of its pods", node=report.name)
            return False
        zones = _resources_of(report)
        pods = [
            (pod.namespace, pod.name)
            for pod in self._on_node.at(report.name)
            if self._is_relevant(pod) and (not only_exclusive or pod.is_exclusive(zones))
        ]
        return fingerprint(pods) == expected

    def _fingerprint_of(self, report: NodeResourceTopology) -> tuple[str, bool]:
        """And whether it is of pods with exclusive resources only."""
        expected = report.attribute(ATTRIBUTE)
        if expected is None:
            return report.annotations.get(ANNOTATION, ""), False
        if self._resync_method == "Autodetect":
            return expected, report.attribute(METHOD_ATTRIBUTE) == ONLY_EXCLUSIVE
        return expected, self._resync_method == "OnlyExclusiveResources"

    def _is_relevant(self, pod: TopologyPod) -> bool:
        return pod.status.phase == "Running" if self._only_running else pod.status.phase not in ENDED

    def _take_over(self, report: NodeResourceTopology) -> None:
        node = report.name
        self._forget(node)
        self._cached[node] = report
        self._known_foreign[node] = self._foreign_on(node)
        self._log.v(2).info("The topology of the node is up to date", node=node)

    def _forget(self, node: str) -> None:
        self._cached.pop(node, None)
        self._reserved.pop(node, None)
        self._known_foreign.pop(node, None)
        self._dirty.discard(node)

    def _foreign_on(self, node: str) -> frozenset[str]:
        foreign = [pod for pod in self._on_node.at(node) if pod.spec.scheduler_name not in self.profiles]
        if foreign and self._foreign_pods == "OnlyExclusiveResources":
            cached = self._cached.get(node)
            zones = _resources_of(cached) if cached is not None else set()
            foreign = [pod for pod in foreign if pod.is_exclusive(zones)]
        return frozenset(pod.uid for pod in foreign)


def _less(resource: str, have: Fraction, reserved: dict[str, Amounts]) -> Fraction:
    for amounts in reserved.values():
        have = max(have - amounts.get(resource, Fraction(0)), Fraction(0))
    return have


def _resources_of(report: NodeResourceTopology) -> set[str]:
    return {resource.name for zone in report.zones for resource in zone.resources}
