"""How much a pod requests, and how much it counts as on a node.

Per resource: the greater of all regular containers with all sidecars, and any init container with the sidecars
started before it; plus overhead. Pod-level requests replace the aggregate for what they name (cpu, memory,
hugepages). CPU in thousandths, everything else in whole units. While a pod on a node is being resized, what counts
there is the most of what it requests, was allocated and uses.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from mooring.base.bounded import BoundedCache
from mooring.objects.quantity import QuantityText, milli, whole
from mooring.objects.read_only import ReadOnlyDict

if TYPE_CHECKING:
    from mooring.objects.core import Container, Pod, PodSpec

MOST_CACHED_BYTES = 16 * 1024 * 1024
REQUESTS_BYTES, RESOURCE_BYTES = 512, 384
"""About what the requests of a pod take in memory, and the name and the quantity of each resource."""

NONZERO = {"cpu": 100, "memory": 200 * 1024 * 1024}
"""What a container that names none counts as when nodes are ranked."""

Amounts = dict[str, int]


_encode = msgspec.msgpack.Encoder().encode


class AmountsOrZero(ReadOnlyDict[str, int]):
    """Amounts by resource. One that is not there is read as 0."""

    __slots__ = ()

    def __missing__(self, resource: str) -> int:
        return 0


class PodRequests(msgspec.Struct, frozen=True, gc=False):
    """A pod's requests in the scheduler's units."""

    amounts: AmountsOrZero
    """What the pod requests; resources that scheduling does not account for are left out."""
    nonzero_cpu_milli: int
    nonzero_memory_bytes: int
    """For scoring: a container that names no CPU or memory counts as 100m and 200Mi."""


_known: BoundedCache[Hashable, PodRequests] = BoundedCache(MOST_CACHED_BYTES)
"""By what one container requests, or by the text of what several do."""


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
    return {
        name: milli(text) if name == "cpu" else whole(text)
        for name, text in quantities.items()
        if name in NONZERO or is_counted(name)
    }


def requests_of(pod: Pod) -> PodRequests:
    """The requests of a pod by its spec: what it needs of a node that it is not on yet.

    One object for all pods whose containers request the same: pods on nodes are many, and no two of them have the same
    spec, because it names the node.
    """
    spec = pod.spec
    if _has_one_container(spec):
        requests = spec.containers[0].resources.requests
        alone = tuple(requests.items())
        known = _known.get(alone)
        if known is None:
            amounts = AmountsOrZero(in_units(requests))
            known = PodRequests(amounts, amounts.get("cpu", NONZERO["cpu"]), amounts.get("memory", NONZERO["memory"]))
            _known.put(alone, known, REQUESTS_BYTES + RESOURCE_BYTES * len(alone))
        return known
    inits = [(container.restart_policy, container.resources.requests) for container in spec.init_containers]
    whole_pod = spec.resources.requests if spec.resources is not None else None
    text = _encode(([container.resources.requests for container in spec.containers], inits, spec.overhead, whole_pod))
    known = _known.get(text)
    if known is None:
        known = _requests(pod, lambda container: in_units(container.resources.requests), _pod_level(pod))
        _known.put(text, known, len(text) + REQUESTS_BYTES)
    return known


def _has_one_container(spec: PodSpec) -> bool:
    """As most pods: what it requests is what the pod does."""
    return len(spec.containers) == 1 and not spec.init_containers and not spec.overhead and spec.resources is None


def requests_of_containers(pod: Pod) -> PodRequests:
    """As `requests_of`, without pod-level requests: kube-scheduler ranks nodes for an incoming pod by this."""
    if pod.spec.resources is None:
        return pod.requests
    return _requests(pod, lambda container: in_units(container.resources.requests), {})


def requests_on_node(pod: Pod) -> PodRequests:
    """What a pod counts as on its node: its spec, except while it is being resized in place."""
    status = pod.status
    if not status.container_statuses and not status.init_container_statuses and status.resources is None:
        return pod.requests
    sidecars = {container.name for container in pod.spec.init_containers if container.restart_policy == "Always"}
    held_by = {
        reported.name: _most(in_units(reported.resources.requests), in_units(reported.allocated_resources or {}))
        for reported in [
            *status.container_statuses,
            *(reported for reported in status.init_container_statuses if reported.name in sidecars),
        ]
        if reported.resources is not None
    }
    pod_level = _pod_level(pod)
    reports_whole_pod = bool(pod_level) and status.resources is not None
    if not held_by and not reports_whole_pod:
        return pod.requests
    # A resize that the kubelet found infeasible will not happen; otherwise the spec counts at once.
    pending = pod.condition("PodResizePending")
    spec_counts = pending is None or pending.reason != "Infeasible"

    def of_container(container: Container) -> Amounts:
        wanted = in_units(container.resources.requests)
        held = held_by.get(container.name)
        if held is None:
            return wanted
        return _most(wanted, held) if spec_counts else dict(held)

    if pod_level and status.resources is not None:
        held = _most(in_units(status.resources.requests), in_units(status.allocated_resources or {}))
        # Only what the spec names at the level of the pod counts there.
        pod_level = {name: max(wanted if spec_counts else 0, held.get(name, 0)) for name, wanted in pod_level.items()}
    return _requests(pod, of_container, pod_level)


def _pod_level(pod: Pod) -> Amounts:
    return in_units(pod.spec.resources.requests) if pod.spec.resources is not None else {}


def _requests(pod: Pod, of_container: Callable[[Container], Amounts], pod_level: Amounts) -> PodRequests:
    spec = pod.spec
    overhead = in_units(spec.overhead)
    pod_level = {name: value for name, value in pod_level.items() if is_pod_level(name)}
    amounts = _aggregate(spec.init_containers, spec.containers, of_container) | pod_level
    _add(amounts, overhead)
    # With pod-level requests, containers are filled up only where the pod as a whole names none.
    defaults = {name: value for name, value in NONZERO.items() if not pod_level or name not in amounts}
    filled = amounts
    if defaults:
        filled = (
            _aggregate(spec.init_containers, spec.containers, lambda container: defaults | of_container(container))
            | pod_level
        )
        _add(filled, overhead)
    return PodRequests(AmountsOrZero(amounts), filled.get("cpu", 0), filled.get("memory", 0))


def _aggregate(
    init_containers: Sequence[Container], containers: Sequence[Container], of_container: Callable[[Container], Amounts]
) -> Amounts:
    running: Amounts = {}
    for container in containers:
        _add(running, of_container(container))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in init_containers:
        wanted = of_container(container)
        if container.restart_policy == "Always":
            _add(sidecars, wanted)
            _add(running, wanted)
            wanted = dict(sidecars)
        else:
            _add(wanted, sidecars)
        peak = _most(peak, wanted)
    return _most(running, peak)


def _most(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in one | other}


def _add(total: Amounts, more: Amounts) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value
