"""One pod explained: a decision that is taken now, its scores or nearest misses, and what changed since its binding."""

from __future__ import annotations

from typing import Any

from mooring.base.clock import parse_timestamp
from mooring.engine import Decision
from mooring.framework import Pod
from mooring.why.changes import command
from mooring.why.gates import gated_misses
from mooring.why.near_misses import near_misses
from mooring.why.owner_kinds import owner_of
from mooring.why.pending import Served, is_unserved
from mooring.why.pod_groups import lacks_group
from mooring.why.proposals.resources import absent_resources
from mooring.why.recomputation import Recomputation
from mooring.why.score_tables import runner_up, score_table
from mooring.why.unserved import unserved_miss

MOST_NAMED = 5


def recomputed(
    recomputation: Recomputation, pod: Pod, most_nodes: int | None = None, served: Served = ()
) -> dict[str, Any]:
    """Ready for JSON. `most_nodes`: how many rows the table of scores has; None: all.

    A pending pod that no scheduler here serves is not decided: nothing would come of it.
    """
    profile = recomputation.profile_of(pod)
    found: dict[str, Any] = {"profile": profile.name}
    if pod.spec.scheduler_name != profile.name:
        found["isOtherScheduler"] = True
    if is_unserved(pod, served):
        return found | {"nearest": [unserved_miss(recomputation, pod, served)]}
    if recomputation.is_extended:
        found["lacksExtenders"] = True
    if plugins := recomputation.explanations(pod):
        found["plugins"] = plugins
    if pod.spec.node_name:
        with recomputation.without(pod) as free:
            found |= _decided(recomputation, free, pod.spec.node_name, most_nodes)
        found["since"] = _since(recomputation, pod)
        return found
    if (gating := recomputation.gating(pod)) is not None:
        return found | {"gating": gating, "nearest": gated_misses(recomputation, pod, gating)}
    if lacks_group(pod):
        found["lacksGroup"] = True
    return found | _decided(recomputation, pod, None, most_nodes)


def _decided(recomputation: Recomputation, pod: Pod, bound_to: str | None, most_nodes: int | None) -> dict[str, Any]:
    decision = recomputation.decide(pod)
    found: dict[str, Any] = {"decision": decision.evidence()}
    chosen = bound_to or decision.node
    if (columns := decision.columns()) is not None:
        found["table"] = score_table(columns, chosen, most_nodes)
        if chosen is not None and (second := runner_up(columns, chosen)) is not None:
            found["runnerUp"] = second
    if bound_to is not None:
        verdict = decision.rejections.get(bound_to)
        if recomputation.view(bound_to) is None:
            found["ownNode"] = {"node": bound_to, "isGone": True}
            found["nearest"] = [_of_gone_node(pod, bound_to, decision)]
        elif verdict is not None:
            found["ownNode"] = {"node": bound_to, "plugin": verdict.plugin, "reasons": list(verdict.refusal.reasons)}
    elif decision.is_refused and decision.rejections:
        found["nearest"] = near_misses(recomputation, pod, decision)
        if absent := absent_resources(recomputation, pod):
            found["absentResources"] = absent
    return found


def _of_gone_node(pod: Pod, node: str, decision: Decision) -> dict[str, Any]:
    """As one of `near_misses`."""
    owner = owner_of(pod)
    again = f"{owner} creates it again" if owner is not None else "create it again without spec.nodeName"
    change = {
        "change": f"delete the pod; {again}",
        "node": decision.node,
        "command": command("kubectl", "delete", "pod", pod.name, "-n", pod.namespace, "--force"),
    }
    return {
        "plugin": "",
        "reasons": [f"node {node} does not exist"],
        "code": "UnschedulableAndUnresolvable",
        "count": 0,
        "onlyThis": 0,
        "node": None,
        "missing": ["is run by no kubelet, until kube-controller-manager's pod garbage collector deletes it"],
        "changes": [change] if decision.node is not None else [],
    }


def _since(recomputation: Recomputation, pod: Pod) -> dict[str, Any]:
    """What the objects show of the time after the pod was bound. Deletions and changed labels leave no trace there."""
    bound = bound_at(pod)
    if bound is None:
        return {}
    moment = parse_timestamp(bound)
    nodes = [
        node.name
        for node in recomputation.cluster.nodes
        if node.metadata.creation_timestamp and parse_timestamp(node.metadata.creation_timestamp) > moment
    ]
    others = [
        (other, parse_timestamp(at))
        for other in recomputation.cluster.pods
        if other.uid != pod.uid and (at := bound_at(other)) is not None
    ]
    later = [other for other, at in others if at > moment]
    here = [other.key for other in later if other.spec.node_name == pod.spec.node_name]
    return {
        "boundAt": bound,
        "newNodes": nodes[:MOST_NAMED],
        "newNodeCount": len(nodes),
        "newPods": len(later),
        "newPodsHere": len(here),
        # Times are whole seconds: whether these were bound before the pod or after it, the objects do not show.
        "podsOfTheSameSecond": sum(at == moment for _, at in others),
    }


def bound_at(pod: Pod) -> str | None:
    """When it got its node, as far as its status shows that."""
    condition = pod.condition("PodScheduled")
    if condition is not None and condition.status == "True" and condition.last_transition_time:
        return condition.last_transition_time
    return pod.status.start_time if pod.spec.node_name else None
