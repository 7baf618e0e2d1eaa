"""What a pod requests of NUMA nodes: by container, and as a whole."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from mooring.framework import Pod
from mooring.objects.qos import Qos, qos_of
from mooring.objects.quantity import QuantityText, exact
from mooring.plugins.community.node_resource_topology.topologies import NumaNode

Amounts = Mapping[str, Fraction]


class ContainerNeeds(NamedTuple):
    kind: str
    """`init` or `sidecar`; "" for an ordinary container."""
    requests: Amounts


class PodNeeds(NamedTuple):
    containers: tuple[ContainerNeeds, ...]
    """Init containers first."""
    whole: Amounts
    """The containers together, at least each init container, plus overhead."""
    is_guaranteed: bool
    is_ignored: bool
    """Whether NUMA nodes do not matter to it: it requests neither CPU nor memory nor devices."""

    def is_suitable(self, resource: str, wanted: Fraction, available: Fraction) -> bool:
        """CPU and memory are shared by pods that are not Guaranteed."""
        return not self.is_exclusive(resource) or available >= wanted

    def is_exclusive(self, resource: str) -> bool:
        """Whether the pod has what it requests for itself alone."""
        return self.is_guaranteed or not is_numa_bound(resource)

    def listed_on(self, numa_nodes: Sequence[NumaNode]) -> PodNeeds:
        """Without the resources that no NUMA node lists: they are bound to none."""
        listed = {name for numa in numa_nodes for name in numa.available}
        if self.whole.keys() <= listed:
            return self
        containers = tuple(each._replace(requests=_only(listed, each.requests)) for each in self.containers)
        return self._replace(containers=containers, whole=_only(listed, self.whole))


def needs_of(pod: Pod) -> PodNeeds:
    spec, qos = pod.spec, qos_of(pod)
    init = [
        ContainerNeeds("sidecar" if each.restart_policy == "Always" else "init", _exact(each.resources.requests))
        for each in spec.init_containers
    ]
    containers = [ContainerNeeds("", _exact(each.resources.requests)) for each in spec.containers]
    whole: dict[str, Fraction] = {}
    for each in containers:
        for name, amount in each.requests.items():
            whole[name] = whole.get(name, Fraction(0)) + amount
    for each in init:
        for name, amount in each.requests.items():
            whole[name] = max(whole.get(name, Fraction(0)), amount)
    for name, amount in _exact(spec.overhead).items():
        whole[name] = whole.get(name, Fraction(0)) + amount
    requests_device = any(not is_native(name) for each in (*init, *containers) for name in each.requests)
    return PodNeeds((*init, *containers), whole, qos is Qos.GUARANTEED, qos is Qos.BEST_EFFORT and not requests_device)


def is_native(resource: str) -> bool:
    """Whether Kubernetes itself defines the resource."""
    return "/" not in resource or "kubernetes.io/" in resource


def is_numa_bound(resource: str) -> bool:
    """Whether every NUMA node has some of it. Devices may be bound to one, or to none."""
    return resource in ("cpu", "memory") or resource.startswith("hugepages-")


def is_host_level(resource: str) -> bool:
    """Whether the resource may be bound to no NUMA node."""
    return resource in ("ephemeral-storage", "storage") or not is_native(resource)


def _only(names: Container[str], amounts: Amounts) -> Amounts:
    return {name: amount for name, amount in amounts.items() if name in names}


def _exact(quantities: Mapping[str, QuantityText]) -> dict[str, Fraction]:
    return {name: exact(text) for name, text in quantities.items()}
