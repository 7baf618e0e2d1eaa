"""What pods request and may use at most, of CPU and memory, by the rule of the load-aware plugins.

The sum of the containers, at least what each init container names, plus overhead. Unlike what scheduling accounts for,
sidecars are not added up, and resources at the level of the pod do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from mooring.base.computed import computed_once
from mooring.framework import Pod
from mooring.objects.core import Quantities, ResourceRequirements
from mooring.objects.meta import KubeObject
from mooring.objects.quantity import QuantityText, milli, whole
from mooring.objects.wire import Wire


class LoadContainer(Wire):
    resources: ResourceRequirements = msgspec.field(default_factory=ResourceRequirements)


class LoadPodSpec(Wire):
    containers: list[LoadContainer] = []
    init_containers: list[LoadContainer] = []
    overhead: Quantities = {}


class LoadPod(KubeObject, version="v1", plural="pods", kind="Pod"):
    """What load-aware plugins read of a running pod. The scheduler's records of it have no limits."""

    spec: LoadPodSpec = msgspec.field(default_factory=LoadPodSpec)

    @computed_once
    def amounts(self) -> tuple[Amount, Amount]:
        """What it requests, and what it may use at most."""
        return requests_of(self), limits_of(self)


class Amount(NamedTuple):
    cpu_milli: int = 0
    memory_bytes: int = 0


AnyPod = Pod | LoadPod


def requests_of(pod: AnyPod) -> Amount:
    return _total(pod, lambda resources: resources.requests)


def limits_of(pod: AnyPod) -> Amount:
    """At least the requests."""
    requests, limits = requests_of(pod), _total(pod, lambda resources: resources.limits)
    return Amount(max(requests.cpu_milli, limits.cpu_milli), max(requests.memory_bytes, limits.memory_bytes))


def _total(pod: AnyPod, of: Callable[[ResourceRequirements], Mapping[str, QuantityText]]) -> Amount:
    spec = pod.spec
    containers = [_amount(of(container.resources)) for container in spec.containers]
    cpu, memory = sum(each.cpu_milli for each in containers), sum(each.memory_bytes for each in containers)
    for container in spec.init_containers:
        each = _amount(of(container.resources))
        cpu, memory = max(cpu, each.cpu_milli), max(memory, each.memory_bytes)
    overhead = _amount(spec.overhead)
    return Amount(cpu + overhead.cpu_milli, memory + overhead.memory_bytes)


def _amount(quantities: Mapping[str, QuantityText]) -> Amount:
    return Amount(milli(quantities.get("cpu", 0)), whole(quantities.get("memory", 0)))
