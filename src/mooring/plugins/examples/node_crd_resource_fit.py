"""NodeCRDResourceFit: where a pod may go, and where best, by custom resources.

A `ClusterScopedResource` of a node's name lists which resources pods may request there and how well the node serves
each. A node without one is refused, and so is one that does not enable all that the pod's containers request. The score
is the mean over the requested resources, rounded up. How much of a resource is left is checked by NodeResourcesFit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from mooring.framework import (
    UNRESOLVABLE,
    Action,
    CustomResource,
    Cycle,
    Hint,
    Log,
    Meta,
    Node,
    NodeView,
    Objects,
    Plugin,
    Pod,
    Rejection,
    ResourcePart,
)

NOT_FOUND = "CRD for node not found"
NOT_ENABLED = "Node does not enable resource"
BEST = 100


class ClusterScopedResourceSpec(ResourcePart):
    """What pods may request on the node, and how well it serves it."""

    resources_filter: Annotated[
        dict[str, bool],
        Meta(description="Whether pods that request the resource may run here; a resource not named may not."),
    ] = {}
    resources_score: Annotated[
        dict[str, int],
        Meta(description="How well the node serves the resource, 0 to 100; a resource not named counts 0."),
    ] = {}


class ClusterScopedResource(
    CustomResource,
    group="scheduling.sigs.k8s.io",
    version="v1alpha1",
    plural="clusterscopedresources",
    scope="Cluster",
    approved="unapproved, an example of a scheduling plugin",
):
    """What one node offers to pods, beside what it reports itself. Its name is the node's."""

    spec: ClusterScopedResourceSpec


class NodeCRDResourceFit(Plugin):
    """Admit and favour nodes by their `ClusterScopedResource`."""

    def __init__(self, resources: Objects[ClusterScopedResource], log: Log) -> None:
        self._resources, self._log = resources, log

    def events(self) -> Iterable[Hint]:
        return [
            Hint(ClusterScopedResource, Action.ADD | Action.UPDATE, self._began_to_admit),
            Hint(Node, Action.ADD, self._arrived_admitting),
        ]

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        offered = self._offered_by(node)
        # No eviction changes a custom resource, hence unresolvable.
        if offered is None:
            return Rejection(NOT_FOUND, code=UNRESOLVABLE)
        for resource in _not_enabled(pod, offered):
            self._log.v(5).info(NOT_ENABLED, nodeName=node.name, resource=resource)
            return Rejection(f"{NOT_ENABLED} {resource}", code=UNRESOLVABLE)
        return None

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        self._log.v(5).info("Scoring node", nodeName=node.name)
        offered = self._offered_by(node)
        score = _mean_score(pod, offered) if offered is not None else 0
        self._log.v(5).info("Resources and score", podName=pod.name, nodeName=node.name, score=score)
        return score

    def _offered_by(self, node: NodeView) -> ClusterScopedResource | None:
        offered = self._resources.get(node.name)
        if offered is None:
            self._log.v(5).info(NOT_FOUND, nodeName=node.name)
        return offered

    def _began_to_admit(self, pod: Pod, before: ClusterScopedResource | None, after: ClusterScopedResource) -> bool:
        return _admits(after, pod) and (before is None or not _admits(before, pod))

    def _arrived_admitting(self, pod: Pod, before: None, after: Node) -> bool:
        offered = self._resources.get(after.name)
        return offered is not None and _admits(offered, pod)


def requested_resources(pod: Pod) -> list[str]:
    """What the regular containers request, each resource once, in alphabetical order."""
    return sorted({resource for container in pod.spec.containers for resource in container.resources.requests})


def _not_enabled(pod: Pod, offered: ClusterScopedResource) -> list[str]:
    enabled = offered.spec.resources_filter
    return [resource for resource in requested_resources(pod) if not enabled.get(resource)]


def _admits(offered: ClusterScopedResource, pod: Pod) -> bool:
    return not _not_enabled(pod, offered)


def _mean_score(pod: Pod, offered: ClusterScopedResource) -> int:
    given = offered.spec.resources_score
    scores = [min(max(given.get(resource, 0), 0), BEST) for resource in requested_resources(pod)]
    # Negated twice because // rounds down and a mean is rounded up.
    return -(-sum(scores) // len(scores)) if scores else 0
