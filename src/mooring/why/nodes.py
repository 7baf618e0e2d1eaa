"""One node explained: what runs there, what is free, and which pending pods it would take, or rejects and why."""

from __future__ import annotations

from typing import Any

from mooring.base.errors import OperatorMistake, did_you_mean
from mooring.framework import Pod
from mooring.objects.placed import PlacedPod
from mooring.state import RowView
from mooring.why.amounts import shown
from mooring.why.proposals.taints import text_of
from mooring.why.recomputation import Recomputation
from mooring.why.verification import Verifier

MOST_PENDING = 500
"""Pending pods that are evaluated; where there are more, those of the highest priority."""
PODS = "pods"

Document = dict[str, Any]


def explain_node(recomputation: Recomputation, name: str) -> Document:
    """Ready for JSON. Pending pods are evaluated one by one, each as if it were the next."""
    view = recomputation.view(name)
    if view is None:
        names = sorted(node.name for node in recomputation.cluster.nodes)
        if not names:
            raise OperatorMistake(f'there is no node "{name}": the cluster has none.')
        near = did_you_mean(name, names) or f" The cluster has {', '.join(names[:3])}{', …' * (len(names) > 3)}."
        raise OperatorMistake(f'there is no node "{name}".{near}')
    pending = [pod for pod in recomputation.cluster.pods if not pod.spec.node_name and not pod.is_terminating]
    evaluated = sorted(pending, key=lambda pod: (-pod.priority, pod.key))[:MOST_PENDING]
    return {
        "node": name,
        "isUnschedulable": view.is_unschedulable,
        "isReady": view.conditions.get("Ready") in (None, "True"),
        "taints": [text_of(taint) for taint in view.taints],
        "resources": _resources(view),
        "pods": [_placed(pod) for pod in sorted(view.pods, key=lambda pod: (-pod.priority, pod.key))],
        "pending": len(pending),
        "evaluated": len(evaluated),
        **_verdicts(recomputation, evaluated, name),
    }


def _resources(view: RowView) -> list[Document]:
    status = view.object.status.allocatable
    names = sorted({"cpu", "memory", *status} - {PODS}, key=lambda each: (each not in ("cpu", "memory"), each))
    rows = [
        {
            "resource": each,
            "allocatable": shown(each, view.allocatable(each)),
            "requested": shown(each, view.requested(each)),
            "free": shown(each, max(0, view.free(each))),
        }
        for each in names
        if view.allocatable(each) or view.requested(each)
    ]
    room, used = view.allocatable(PODS), len(view.placed)
    return [
        *rows,
        {"resource": PODS, "allocatable": str(room), "requested": str(used), "free": str(max(0, room - used))},
    ]


def _placed(pod: PlacedPod) -> Document:
    amounts = {resource: shown(resource, amount) for resource, amount in pod.requests.amounts.items() if amount}
    return {"pod": pod.key, "priority": pod.priority, "requests": amounts}


def _verdicts(recomputation: Recomputation, pods: list[Pod], node: str) -> Document:
    """`fits`: pods that no filter keeps away. `rejected`: groups by the filters that do, the largest first."""
    fits: list[str] = []
    gated: list[str] = []
    groups: dict[tuple[tuple[str, tuple[str, ...]], ...], list[Pod]] = {}
    for pod in pods:
        if recomputation.gating(pod) is not None:
            gated.append(pod.key)
            continue
        rejecting = tuple(
            (plugin, tuple(result.rejected[node].reasons) if node in result.rejected else (str(result.fault),))
            for plugin, result in recomputation.rejecting(pod, node).items()
        )
        if rejecting:
            groups.setdefault(rejecting, []).append(pod)
        else:
            fits.append(pod.key)
    return {
        "fits": fits,
        "gated": gated,
        "rejected": [
            {
                "filters": [{"plugin": plugin, "reasons": list(reasons)} for plugin, reasons in filters],
                "count": len(rejected),
                "pods": [pod.key for pod in rejected],
                "first": {"pod": rejected[0].key, "missing": Verifier(recomputation, rejected[0]).gaps(node)},
            }
            for filters, rejected in sorted(groups.items(), key=lambda group: -len(group[1]))
        ],
    }
