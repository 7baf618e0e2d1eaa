"""TopologyPlacementGenerator: the pods of a group stay within one topology domain.

The domains are the values of the node label that the PodGroup names. Each is a placement; a group without such a
constraint has all nodes. Pods of the group that have a node already fix the domain.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mooring.framework import Fault, GroupPlacement, NodeRows, PlacedPod, Plugin, PodGroupInfo, PodGroups

ALL_NODES = ""
"""The name of the placement of a group without a constraint."""


class TopologyPlacementGenerator(Plugin):
    """Offer each topology domain as a placement for a group that must stay within one."""

    def __init__(self, groups: PodGroups) -> None:
        self._groups = groups

    def placement_generate(self, group: PodGroupInfo, nodes: NodeRows) -> Sequence[GroupPlacement]:
        found = self._groups.get(group.namespace, group.name)
        if found is None:
            raise Fault(f'podgroup.scheduling.k8s.io "{group.name}" not found')
        if (key := found.topology_key) is None:
            return [GroupPlacement(ALL_NODES, nodes)]
        members = self._groups.members(group.namespace, group.name)
        if members is None:
            raise Fault(f"pod group state for {group.key} not found")
        scheduled = members.scheduled
        required = _domain_of(scheduled, key, nodes) if scheduled else None
        places: dict[str, list[int]] = {}
        for place, node in enumerate(nodes):
            domain = node.domain(key)
            if domain is not None and required in (None, domain):
                places.setdefault(domain, []).append(place)
        return [GroupPlacement(domain, nodes.take(np.array(at, np.int64))) for domain, at in places.items()]


def _domain_of(pods: Sequence[PlacedPod], key: str, nodes: NodeRows) -> str:
    """The one domain that these pods are in."""
    by_name = {node.name: node for node in nodes}
    found: str | None = None
    for pod in pods:
        node = by_name.get(pod.node)
        if node is None:
            raise _undetermined(f'getting node for pod {pod.key}: nodeinfo not found for node name "{pod.node}"')
        domain = node.domain(key)
        if domain is None:
            raise _undetermined(f"no topology domain found for pod {pod.key}")
        if found is not None and domain != found:
            raise _undetermined(f"more than 1 domain found for pod group: {found}, {domain}")
        found = domain
    assert found is not None, "there are scheduled pods"
    return found


def _undetermined(why: str) -> Fault:
    return Fault(f"cannot determine domain for already scheduled pods: {why}")
