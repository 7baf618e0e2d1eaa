"""A pod that a plugin keeps out of the queue: what would let it in, and whether it then fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from mooring.framework import Pod
from mooring.objects.resource import ResourceClaim
from mooring.why.changes import ProposedChange, command, with_spec
from mooring.why.near_misses import near_misses
from mooring.why.recomputation import Recomputation
from mooring.why.similar import similar, similar_words
from mooring.why.verification import Verifier

Document = dict[str, Any]


def gated_misses(recomputation: Recomputation, pod: Pod, gating: Mapping[str, Any]) -> list[Document]:
    """As `near_misses`: what the gate is about; then what keeps the pod from nodes even without its gate."""
    missing, changes = _of_gate(recomputation, pod, gating["plugin"])
    verifier = Verifier(recomputation, pod)
    found = [each for change in changes if (each := verifier.verified(change)) is not None]
    first: Document = {
        "plugin": gating["plugin"],
        "reasons": list(gating["reasons"]),
        "code": "UnschedulableAndUnresolvable",
        "count": 0,
        "onlyThis": 0,
        "node": None,
        "missing": missing,
        "changes": [each.document() for each in found],
    }
    if found or gating["plugin"] != "SchedulingGates":
        return [first]
    free = changes[0].after(pod)
    decision = recomputation.decide(free)
    first["missing"] = [*missing, "would wait for a node without that, too"]
    return [first, *(near_misses(recomputation, free, decision) if decision.is_refused and decision.rejections else [])]


def _of_gate(recomputation: Recomputation, pod: Pod, plugin: str) -> tuple[list[str], Sequence[ProposedChange]]:
    """What is missing, and the changes that may help."""
    if plugin == "SchedulingGates":
        return _scheduling_gates(pod)
    if plugin == "DynamicResources":
        return _resource_claims(recomputation, pod)
    return [], ()


def _scheduling_gates(pod: Pod) -> tuple[list[str], Sequence[ProposedChange]]:
    names = [gate.name for gate in pod.spec.scheduling_gates]
    many = "gates" if len(names) > 1 else "gate"
    patch = '[{"op":"remove","path":"/spec/schedulingGates"}]'
    removal = ProposedChange(
        f"remove the scheduling {many} {' and '.join(names)}, unless a controller does once it may run",
        pod=with_spec(pod, scheduling_gates=[]),
        command=command("kubectl", "patch", "pod", pod.name, "-n", pod.namespace, "--type=json", "-p", patch),
    )
    return [f"has the scheduling {many} {' and '.join(names)}"], [removal]


def _resource_claims(recomputation: Recomputation, pod: Pod) -> tuple[list[str], Sequence[ProposedChange]]:
    claims = {claim.name for claim in recomputation.known(ResourceClaim) if claim.namespace == pod.namespace}
    created = {status.name for status in pod.status.resource_claim_statuses}
    missing: list[str] = []
    changes: list[ProposedChange] = []
    for entry in pod.spec.resource_claims:
        name, template = entry.resource_claim_name, entry.resource_claim_template_name
        if name is not None and name not in claims:
            known = similar_words(name, claims)
            missing.append(f"lacks the ResourceClaim {pod.namespace}/{name}, which does not exist{known}")
            changes += _renamed(pod, entry.name, name, claims)
        elif template is not None and entry.name not in created:
            missing.append(
                f"waits until a ResourceClaim is created from the ResourceClaimTemplate {pod.namespace}/{template}; "
                f"see that it exists: kubectl get resourceclaimtemplates {template} -n {pod.namespace}"
            )
    return missing, changes


def _renamed(pod: Pod, entry: str, name: str, claims: set[str]) -> Iterator[ProposedChange]:
    for near in similar(name, claims):
        entries = [
            msgspec.structs.replace(each, resource_claim_name=near) if each.name == entry else each
            for each in pod.spec.resource_claims
        ]
        yield ProposedChange(
            f"use the ResourceClaim {near} in place of {name}",
            pod=with_spec(pod, resource_claims=entries),
            manifest={"spec": {"resourceClaims": [msgspec.to_builtins(each) for each in entries]}},
        )
