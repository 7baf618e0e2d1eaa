"""How much a pod asks for, and how much it counts as on a node.

Per resource: the greater of all regular containers with all sidecars, and any init container with the sidecars
started before it; plus overhead. Pod-level requests replace the aggregate for what they name (cpu, memory,
hugepages). CPU in thousandths, everything else in whole units.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from mooring.objects.quantity import QuantityText, amount

if TYPE_CHECKING:
    from mooring.objects.core import Container, Pod

NONZERO_CPU_MILLI = 100
NONZERO_MEMORY_BYTES = 200 * 1024 * 1024

Amounts = dict[str, int]


class PodRequests(msgspec.Struct, frozen=True, gc=False):
    """A pod's requests in the scheduler's units."""

    amounts: Amounts
    """What the pod asks for; resources that nobody counts are left out."""
    nonzero_cpu_milli: int
    nonzero_memory_bytes: int
    """For scoring: a container that names no CPU or memory counts as 100m and 200Mi."""


def is_counted(resource: str) -> bool:
    """Whether scheduling accounts for this resource name."""
    return (
        resource in ("cpu", "memory", "ephemeral-storage")
        or "/" in resource
        or resource.startswith(("hugepages-", "attachable-volumes-"))
    )


def is_pod_level(resource: str) -> bool:
    """Whether pod-level requests may name it."""
    return resource in ("cpu", "memory") or resource.startswith("hugepages-")


def in_units(quantities: Mapping[str, QuantityText]) -> Amounts:
    """A resource list in the scheduler's units, with what it does not count left out."""
    return {name: amount(name, text) for name, text in quantities.items() if is_counted(name)}


def requests_of(pod: Pod) -> PodRequests:
    """The requests of a pod by its spec."""
    spec = pod.spec
    amounts = _aggregate(spec.init_containers, spec.containers, nonzero=False)
    filled = _aggregate(spec.init_containers, spec.containers, nonzero=True)
    if spec.resources is not None:
        for name, value in in_units(spec.resources.requests).items():
            if is_pod_level(name):
                amounts[name] = filled[name] = value
    for name, value in in_units(spec.overhead).items():
        amounts[name] = amounts.get(name, 0) + value
        filled[name] = filled.get(name, 0) + value
    return PodRequests(amounts, filled.get("cpu", 0), filled.get("memory", 0))


def _aggregate(init_containers: list[Container], containers: list[Container], *, nonzero: bool) -> Amounts:
    running: Amounts = {}
    for container in containers:
        _add(running, _asked(container, nonzero=nonzero))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in init_containers:
        asked = _asked(container, nonzero=nonzero)
        if container.restart_policy == "Always":
            _add(sidecars, asked)
            _add(running, asked)
            asked = dict(sidecars)
        else:
            _add(asked, sidecars)
        for name, value in asked.items():
            peak[name] = max(peak.get(name, 0), value)
    return {name: max(running.get(name, 0), peak.get(name, 0)) for name in running | peak}


def _asked(container: Container, *, nonzero: bool) -> Amounts:
    asked = in_units(container.resources.requests)
    if nonzero:
        asked.setdefault("cpu", NONZERO_CPU_MILLI)
        asked.setdefault("memory", NONZERO_MEMORY_BYTES)
    return asked


def _add(total: Amounts, more: Amounts) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value
