"""The quality of service of a pod: which pods the kubelet evicts last, and which get CPUs of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING

from mooring.objects.quantity import QuantityText, exact

if TYPE_CHECKING:
    from mooring.objects.core import Pod, ResourceRequirements

_COUNTED = ("cpu", "memory")


class Qos(Enum):
    """The classes, by the names of `status.qosClass`."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


def qos_of(pod: Pod) -> Qos:
    """Computed from the spec, as the API server does when it sets `status.qosClass`.

    Guaranteed: every container limits cpu and memory and requests as much in all. BestEffort: none names either.
    Resources at the level of the pod count instead of those of containers.
    """
    spec = pod.spec
    return qos_by(spec.resources, [container.resources for container in (*spec.containers, *spec.init_containers)])


def qos_by(whole_pod: ResourceRequirements | None, containers: Sequence[ResourceRequirements]) -> Qos:
    """As `qos_of`, from the resources of the pod as a whole and those of all its containers."""
    holders = containers
    if whole_pod is not None and (whole_pod.requests or whole_pod.limits):
        holders = [whole_pod]
    requests: dict[str, Fraction] = {}
    limits: dict[str, Fraction] = {}
    is_limited = True
    for resources in holders:
        _add(requests, resources.requests)
        found = _add(limits, resources.limits)
        is_limited = is_limited and found == len(_COUNTED)
    if not requests and not limits:
        return Qos.BEST_EFFORT
    return Qos.GUARANTEED if is_limited and requests == limits else Qos.BURSTABLE


def _add(total: dict[str, Fraction], quantities: Mapping[str, QuantityText]) -> int:
    """Add cpu and memory where they are more than nothing. Returns how many of the two are."""
    found = 0
    for name in _COUNTED:
        if name in quantities and (value := exact(quantities[name])) > 0:
            total[name] = total.get(name, Fraction(0)) + value
            found += 1
    return found
