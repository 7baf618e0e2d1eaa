"""MakeRoom: evict as few expendable pods as will do.

When no node is left for a pod, the pods labelled `example.com/expendable` may go, whatever their priority. The node
that loses the fewest is chosen. The plugin only proposes: the scheduler nominates the node, evicts, and tries the pod
again when the room is there.
"""

from __future__ import annotations

from mooring.framework import Candidate, Diagnosis, NodeView, Plan, Plugin, Pod, Preemptions, Refusal, WhatIf

from .labels import EXPENDABLE


class MakeRoom(Plugin):
    """Evict as few expendable pods as will do."""

    def __init__(self, preemptions: Preemptions) -> None:
        self._preemptions = preemptions

    def post_filter(self, pod: Pod, refused: Diagnosis, what_if: WhatIf) -> Plan | Refusal:
        if EXPENDABLE in pod.labels:
            return Refusal("an expendable pod evicts no others")
        nodes = list(refused.resolvable_nodes())
        if self._preemptions.is_under_way(pod.uid) or _is_leaving(pod, nodes):
            return Refusal("room is being made")
        found = [candidate for node in nodes if (candidate := _candidate(pod, node, what_if)) is not None]
        if not found:
            return Refusal("evicting expendable pods makes no room")
        best = min(found, key=lambda candidate: len(candidate.victims))
        return Plan(nominate=best.node, evict=best.victims, candidates=tuple(found))


def _is_leaving(pod: Pod, nodes: list[NodeView]) -> bool:
    """Whether pods are going from the node that is kept for this one."""
    kept = [node for node in nodes if node.name == pod.status.nominated_node_name]
    return any(placed.is_terminating for node in kept for placed in node.pods)


def _candidate(pod: Pod, node: NodeView, what_if: WhatIf) -> Candidate | None:
    """Who has to go from this node; None if that does not help."""
    expendable = [placed for placed in node.pods if EXPENDABLE in placed.labels and not placed.is_terminating]
    if not expendable:
        return None
    victims = []
    with what_if.without(node, expendable) as evicted:
        if not what_if.fits(pod, node):
            return None
        # The largest first: what can stay, stays.
        for each in sorted(expendable, key=lambda placed: -placed.request("cpu")):
            evicted.reprieve(each)
            if not what_if.fits(pod, node):
                evicted.evict(each)
                victims.append(each)
    return Candidate(node.name, tuple(victims))
