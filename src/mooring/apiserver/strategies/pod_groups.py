"""PodGroups and Workloads of scheduling.k8s.io/v1alpha2; served with the gate GenericWorkload alone.

Admission of PodGroups: PodGroupWorkloadExists, PodGroupProtection and Priority.
"""

from __future__ import annotations

from mooring.apiserver.disabled_fields import PREEMPTION, WORKLOADS
from mooring.apiserver.documents import Document, items_of, metadata_of, part
from mooring.apiserver.status import FieldError, StatusError, forbidden, quoted
from mooring.apiserver.strategies.base import Strategy, StrategyContext, set_default, spec_of
from mooring.apiserver.strategies.pod_admission import priority_class
from mooring.apiserver.validation.pod_groups import (
    check_pod_group,
    check_pod_group_status,
    check_pod_group_update,
    check_workload,
    check_workload_update,
)
from mooring.objects.pod_groups import DISRUPT_POD, GROUP, PROTECTION

_KEPT_BY_STATUS = ("labels", "annotations", "finalizers", "ownerReferences")


class PodGroupStrategy(Strategy):
    has_status = True
    checks_required = False

    def default(self, document: Document, context: StrategyContext) -> None:
        set_default(spec_of(document), "disruptionMode", DISRUPT_POD)

    def admit(self, document: Document, context: StrategyContext) -> None:
        spec, metadata = document["spec"], metadata_of(document)
        if PREEMPTION in context.features:
            _priority(document, spec, context)
        finalizers = items_of(metadata, "finalizers")
        if PROTECTION not in finalizers:
            metadata["finalizers"] = [*finalizers, PROTECTION]

    def prepare_create(self, document: Document, context: StrategyContext) -> None:
        super().prepare_create(document, context)
        self.default(document, context)  # the default is served, too, where the gate is off and the field was dropped

    def admit_valid(self, document: Document, context: StrategyContext) -> None:
        _template_exists(document, document["spec"], context)

    def prepare_status(self, document: Document, old: Document, context: StrategyContext) -> None:
        super().prepare_status(document, old, context)
        now, then = metadata_of(document), part(old, "metadata")
        for field in _KEPT_BY_STATUS:
            now.pop(field, None)
            if field in then:
                now[field] = then[field]

    def validate(self, document: Document, context: StrategyContext) -> list[FieldError]:
        return check_pod_group(document)

    def validate_update(self, document: Document, old: Document, context: StrategyContext) -> list[FieldError]:
        return check_pod_group_update(document, old, context.features)

    def validate_status(self, document: Document, old: Document, context: StrategyContext) -> list[FieldError]:
        return check_pod_group_status(document)


class PodGroupWorkloadStrategy(Strategy):
    checks_required = False

    def default(self, document: Document, context: StrategyContext) -> None:
        spec_of(document)

    def validate(self, document: Document, context: StrategyContext) -> list[FieldError]:
        return check_workload(document)

    def validate_update(self, document: Document, old: Document, context: StrategyContext) -> list[FieldError]:
        return check_workload_update(document, old)


def _priority(group: Document, spec: Document, context: StrategyContext) -> None:
    """The group's priority comes from its class, as that of a pod."""
    name = spec.get("priorityClassName")
    found = priority_class(name, context)
    if name and found is None:
        raise _rejected(group, f"no PriorityClass with name {name} was found")
    value = found.get("value", 0) if found else 0
    given = spec.get("priority")
    if given is not None and given != value:
        why = (
            f"priority set in the pod group ({given}) must match the priority computed ({value}) based on the"
            " priority class set in the spec"
        )
        raise _rejected(group, why)
    spec["priority"] = value
    if found:
        spec["priorityClassName"] = found["metadata"]["name"]


def _template_exists(group: Document, spec: Document, context: StrategyContext) -> None:
    reference = part(spec, "podGroupTemplateRef", "workload")
    if not reference:
        return
    name, template = reference.get("workloadName") or "", reference.get("podGroupTemplateName") or ""
    workload = context.store.get(WORKLOADS, metadata_of(group)["namespace"], name)
    if workload is None:
        raise _rejected(group, f"PodGroup rejected: Workload {quoted(name)} not found")
    if metadata_of(workload).get("deletionTimestamp"):
        raise _rejected(group, f"PodGroup rejected: Workload {quoted(name)} is being deleted")
    if template not in [each["name"] for each in items_of(workload["spec"], "podGroupTemplates")]:
        why = f"PodGroup rejected: PodGroupTemplate {quoted(template)} not found in Workload {quoted(name)}"
        raise _rejected(group, why)


def _rejected(group: Document, why: str) -> StatusError:
    metadata = metadata_of(group)
    return forbidden(GROUP, "podgroups", metadata.get("name") or metadata.get("generateName", ""), why)
