"""Fields behind feature gates: dropped at a write while their gate is off, unless the stored object has them.

The gates are handed in by name: those that are on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from mooring.apiserver.documents import Document, items_of, part

GENERIC_WORKLOAD = "GenericWorkload"
WITH_JOB = "WorkloadWithJob"
TOPOLOGY, PREEMPTION = "TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption"
CLAIMS = "DRAWorkloadResourceClaims"

OF_GROUPS = {
    "schedulingConstraints": TOPOLOGY,
    "resourceClaims": CLAIMS,
    "disruptionMode": PREEMPTION,
    "priorityClassName": PREEMPTION,
    "priority": PREEMPTION,
}
"""Fields of a PodGroup's spec and of a PodGroupTemplate, and their gates."""

_TEMPLATE = ("spec", "template", "spec")
POD_SPECS = {
    "pods": ("spec",),
    "podtemplates": ("template", "spec"),
    "replicationcontrollers": _TEMPLATE,
    "deployments.apps": _TEMPLATE,
    "replicasets.apps": _TEMPLATE,
    "statefulsets.apps": _TEMPLATE,
    "daemonsets.apps": _TEMPLATE,
    "jobs.batch": _TEMPLATE,
    "cronjobs.batch": ("spec", "jobTemplate", "spec", "template", "spec"),
}
"""Where a kind has the spec of a pod, by storage key."""

POD_GROUPS, WORKLOADS = "podgroups.scheduling.k8s.io", "workloads.scheduling.k8s.io"


def drop_disabled(storage: str, document: Document, old: Document, features: Collection[str]) -> None:
    """Drop the fields in place. `old`: the stored object; empty at creation."""
    for gated, before, gates in _gated_parts(storage, document, old):
        for field, gate in gates.items():
            if gate not in features and not before.get(field):
                gated.pop(field, None)


def _gated_parts(
    storage: str, document: Document, old: Document
) -> Iterator[tuple[Document, Document, dict[str, str]]]:
    if path := POD_SPECS.get(storage):
        yield part(document, *path), part(old, *path), {"schedulingGroup": GENERIC_WORKLOAD}
    elif storage == POD_GROUPS:
        yield part(document, "spec"), part(old, "spec"), OF_GROUPS
        if not items_of(part(old, "spec"), "resourceClaims"):
            yield part(document, "status"), {}, {"resourceClaimStatuses": CLAIMS}
    elif storage == WORKLOADS:
        before = items_of(part(old, "spec"), "podGroupTemplates")
        for at, template in enumerate(items_of(part(document, "spec"), "podGroupTemplates")):
            yield template, before[at] if at < len(before) else {}, OF_GROUPS
