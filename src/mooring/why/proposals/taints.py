"""TaintToleration and NodeUnschedulable: which taint keeps the pod off, and the toleration that covers it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from mooring.objects.core import Node, Taint, Toleration
from mooring.objects.placement_rules import DO_NOT_SCHEDULE, Tolerations
from mooring.why.changes import ProposedChange, combined, command, with_node_fields, with_spec
from mooring.why.proposals.rejected_node import Gap, RejectedNode

OF_CONDITIONS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""Taints that Kubernetes sets because of a condition of the node: a pod that tolerates one goes to a broken node."""
OF_ADMISSION = [
    Toleration(key=f"node.kubernetes.io/{condition}", operator="Exists", effect="NoExecute", toleration_seconds=300)
    for condition in ("not-ready", "unreachable")
]
"""What the API server gives every pod that does not have it: a manifest needs not repeat it."""
UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def gap(case: RejectedNode) -> Gap:
    taints = _untolerated(case)
    named = " and ".join(map(text_of, taints))
    return Gap(f"has the taint{'s' * (len(taints) != 1)} {named}", len(taints))


def changes(case: RejectedNode) -> Iterator[ProposedChange]:
    taints, node = _untolerated(case), case.view.object
    set_by_kubernetes = [taint for taint in taints if taint.key.startswith(OF_CONDITIONS)]
    others = [taint for taint in taints if taint not in set_by_kubernetes]
    recovery = [_recovery(node, set_by_kubernetes)] if set_by_kubernetes else []
    if others:
        yield combined([*recovery, _toleration(case, others)])
        recovered = recovery[0].nodes[0] if recovery else node
        yield combined([*recovery, _untainted(recovered, others)])
    elif recovery:
        yield recovery[0]


def uncordoned_gap(_: RejectedNode) -> Gap:
    return Gap("is cordoned", 1.0)


def uncordoned(case: RejectedNode) -> Iterator[ProposedChange]:
    """NodeUnschedulable: let the node take pods again."""
    node = case.view.object
    taints = [taint for taint in node.spec.taints if taint != UNSCHEDULABLE]
    yield ProposedChange(
        f"uncordon {node.name}",
        nodes=(with_node_fields(node, spec={"unschedulable": False, "taints": taints}),),
        command=command("kubectl", "uncordon", node.name),
    )


def text_of(taint: Taint) -> str:
    """As kubectl writes it."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _untolerated(case: RejectedNode) -> list[Taint]:
    tolerations = Tolerations(case.pod.spec.tolerations)
    compares = case.recomputation.gates.on("TaintTolerationComparisonOperators")
    return [
        taint
        for taint in case.view.taints
        if taint.effect in DO_NOT_SCHEDULE and not tolerations.cover(taint, compare_numbers=compares)
    ]


def _toleration(case: RejectedNode, taints: list[Taint]) -> ProposedChange:
    added = [
        Toleration(key=taint.key, operator="Equal" if taint.value else "Exists", value=taint.value, effect=taint.effect)
        for taint in taints
    ]
    tolerations = [*case.pod.spec.tolerations, *added]
    manifest = {
        "spec": {"tolerations": [msgspec.to_builtins(each) for each in tolerations if each not in OF_ADMISSION]}
    }
    what = "this toleration" if len(added) == 1 else "these tolerations"
    return ProposedChange(f"add {what}", pod=with_spec(case.pod, tolerations=tolerations), manifest=manifest)


def _untainted(node: Node, taints: list[Taint]) -> ProposedChange:
    kept = [taint for taint in node.spec.taints if taint not in taints]
    named = " and ".join(map(text_of, taints))
    removals = [f"{taint.key}:{taint.effect}-" for taint in taints]
    return ProposedChange(
        f"remove the taint{'s' * (len(taints) != 1)} {named} from {node.name}",
        nodes=(with_node_fields(node, spec={"taints": kept}),),
        command=command("kubectl", "taint", "nodes", node.name, *removals),
    )


def _recovery(node: Node, taints: list[Taint]) -> ProposedChange:
    kept = [taint for taint in node.spec.taints if taint not in taints]
    if [taint.key for taint in taints] == [UNSCHEDULABLE.key]:
        cordoned = with_node_fields(node, spec={"unschedulable": False, "taints": kept})
        return ProposedChange(
            f"uncordon {node.name}", nodes=(cordoned,), command=command("kubectl", "uncordon", node.name)
        )
    named = " and ".join(map(text_of, taints))
    return ProposedChange(
        f"wait until {node.name} has recovered: Kubernetes then removes {named}",
        nodes=(with_node_fields(node, spec={"taints": kept}),),
    )
