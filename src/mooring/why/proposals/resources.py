"""NodeResourcesFit: how much of which resource is missing, and which pod would free it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from mooring.framework import PlacedPod, Pod
from mooring.objects.core import Container
from mooring.objects.requests import AmountsOrZero, in_units
from mooring.plugins.default.node_resources_fit import TOO_MANY_PODS, insufficient
from mooring.why.amounts import quantity, shown
from mooring.why.changes import ProposedChange, with_spec
from mooring.why.proposals import evictions
from mooring.why.proposals.rejected_node import Gap, RejectedNode
from mooring.why.recomputation import Recomputation
from mooring.why.similar import similar_words

RESIZABLE = ("cpu", "memory")
_EVERYWHERE = (*RESIZABLE, "ephemeral-storage", "pods")


def gap(case: RejectedNode) -> Gap:
    parts, distance = [], 0.0
    for resource, missing in _missing(case).items():
        wanted, most = case.pod.request(resource), case.view.allocatable(resource)
        if not most:
            parts.append(f"has no {resource}{_nowhere(case, resource)}")
        elif wanted > most:
            parts.append(f"has only {shown(resource, most)} of the {shown(resource, wanted)} {resource} requested")
        else:
            parts.append(f"lacks {shown(resource, missing)} {resource}")
        distance += missing / wanted
    if TOO_MANY_PODS in case.refusal.reasons:
        parts.append(f"has all the {case.view.allocatable('pods')} pods that it may run")
        distance += 1 / max(1, case.view.allocatable("pods"))
    return Gap(" and ".join(parts), distance) if parts else evictions.gap(case)


def changes(case: RejectedNode) -> Iterator[ProposedChange]:
    yield from evictions.deletions(case, case.view.pods)
    if (other := evictions.single(case, case.view.pods)) is not None and TOO_MANY_PODS not in case.refusal.reasons:
        yield from _shrunk(case, other)
    if (smaller := _smaller(case)) is not None:
        yield smaller


def _missing(case: RejectedNode) -> dict[str, int]:
    """Of the resources that the plugin named."""
    return {
        resource: missing
        for resource, wanted in case.pod.requests.amounts.items()
        if insufficient(resource) in case.refusal.reasons and (missing := wanted - case.view.free(resource)) > 0
    }


def _nowhere(case: RejectedNode, resource: str) -> str:
    """Whether that is so of every node; and which resources of nodes look like it."""
    if resource not in absent_resources(case.recomputation, case.pod):
        return ""
    return f", and no node has any{similar_words(resource, _offered(case.recomputation))}"


def _offered(recomputation: Recomputation) -> set[str]:
    return {name for view in recomputation.state.nodes for name in view.object.status.allocatable} - {"pods"}


def absent_resources(recomputation: Recomputation, pod: Pod) -> list[str]:
    """What the pod requests and no node has."""
    wanted = [name for name, amount in pod.requests.amounts.items() if amount and name not in _EVERYWHERE]
    if not wanted or not recomputation.state.node_count:
        return []
    return [name for name in wanted if not any(view.allocatable(name) for view in recomputation.state.nodes)]


def _shrunk(case: RejectedNode, other: PlacedPod) -> Iterator[ProposedChange]:
    """A pod that would have to go stays, and requests less: of what can be resized while it runs."""
    missing = _missing(case)
    if any(other.request(resource) <= amount or resource not in RESIZABLE for resource, amount in missing.items()):
        return
    less = " and ".join(f"{shown(resource, amount)} {resource}" for resource, amount in missing.items())
    yield ProposedChange(f"shrink {other.key} by {less}", resized=(_resized(other, missing),))


def _resized(pod: PlacedPod, less: Mapping[str, int]) -> PlacedPod:
    amounts = AmountsOrZero({name: amount - less.get(name, 0) for name, amount in pod.requests.amounts.items()})
    requests = msgspec.structs.replace(pod.requests, amounts=amounts)
    return msgspec.structs.replace(pod, requests=requests)


def _smaller(case: RejectedNode) -> ProposedChange | None:
    """The pod itself requests less: taken from the container that requests most."""
    missing, pod = _missing(case), case.pod
    if not missing or pod.spec.resources is not None or TOO_MANY_PODS in case.refusal.reasons:
        return None
    containers = list(pod.spec.containers)
    words, manifests = [], {}
    for resource, amount in missing.items():
        place = max(range(len(containers)), key=lambda at: _request(containers[at], resource))
        before = _request(containers[place], resource)
        left = quantity(resource, max(0, before - amount))
        if before <= amount or left == "0":
            return None
        containers[place] = _with_request(containers[place], resource, left)
        manifests[containers[place].name] = {
            "name": containers[place].name,
            "resources": {"requests": dict(containers[place].resources.requests)},
        }
        words.append(f"{left} {resource} instead of {shown(resource, before)}")
    smaller = _with_containers(pod, containers)
    manifest: dict[str, Any] = {"spec": {"containers": list(manifests.values())}}
    return ProposedChange(f"request {' and '.join(words)}", pod=smaller, manifest=manifest)


def _request(container: Container, resource: str) -> int:
    return in_units(container.resources.requests).get(resource, 0)


def _with_request(container: Container, resource: str, amount: str) -> Container:
    requests = {**container.resources.requests, resource: amount}
    resources = msgspec.structs.replace(container.resources, requests=requests)
    return msgspec.structs.replace(container, resources=resources)


def _with_containers(pod: Pod, containers: list[Container]) -> Pod:
    return with_spec(pod, containers=containers)
