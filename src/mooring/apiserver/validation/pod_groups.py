"""Validation of PodGroups and Workloads. Their specs are immutable, so an update is checked for changes alone."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from mooring.apiserver.disabled_fields import GENERIC_WORKLOAD, OF_GROUPS
from mooring.apiserver.documents import Document, items_of, part
from mooring.apiserver.status import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    too_many,
    unsupported,
)
from mooring.apiserver.validation.conditions import check_conditions
from mooring.objects.names import NameRule, dns_label, dns_subdomain, path_segment, qualified_name

MOST_TOPOLOGY_CONSTRAINTS, MOST_CLAIMS, MOST_TEMPLATES = 1, 4, 8
HIGHEST_PRIORITY = 1_000_000_000
DISRUPTION_MODES = ("Pod", "PodGroup")
IMMUTABLE = "field is immutable"

OF_A_GROUP = (
    "podGroupTemplateRef",
    "schedulingPolicy",
    "schedulingConstraints",
    "resourceClaims",
    "disruptionMode",
    "priorityClassName",
    "priority",
)


def check_pod_group(document: Document) -> list[FieldError]:
    spec = part(document, "spec")
    return _check_reference(spec, "spec") + _check_scheduling(spec, "spec")


def check_pod_group_update(document: Document, old: Document, features: Collection[str]) -> list[FieldError]:
    """A field whose gate is off may stay, and may not change either."""
    return [
        forbidden_field(error.path)
        if OF_GROUPS.get(error.path.removeprefix("spec."), GENERIC_WORKLOAD) not in features
        else error
        for error in _unchanged(document, old, OF_A_GROUP)
    ]


def check_pod_group_status(document: Document) -> list[FieldError]:
    status = part(document, "status")
    errors = check_conditions(items_of(status, "conditions"), "status.conditions")
    claims = {claim.get("name") for claim in items_of(part(document, "spec"), "resourceClaims")}
    statuses, path = items_of(status, "resourceClaimStatuses"), "status.resourceClaimStatuses"
    for at, entry in enumerate(statuses):
        if entry.get("name") not in claims:
            why = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(invalid_value(f"{path}[{at}].name", entry.get("name") or "", why))
    if len(statuses) > MOST_CLAIMS:
        return [*errors, too_many(path, len(statuses), MOST_CLAIMS)]
    errors += _check_unique(statuses, path)
    for at, entry in enumerate(statuses):
        errors += _check_name(dns_subdomain, entry.get("resourceClaimName"), f"{path}[{at}].resourceClaimName")
    return errors


def check_workload(document: Document) -> list[FieldError]:
    spec = part(document, "spec")
    errors = _check_controller(spec.get("controllerRef"), "spec.controllerRef")
    templates, path = items_of(spec, "podGroupTemplates"), "spec.podGroupTemplates"
    if not templates:
        return [*errors, required(path)]
    if len(templates) > MOST_TEMPLATES:
        return [*errors, too_many(path, len(templates), MOST_TEMPLATES)]
    errors += _check_unique(templates, path)
    for at, template in enumerate(templates):
        errors += _check_required_name(_short_name, template.get("name"), f"{path}[{at}].name")
        errors += _check_scheduling(template, f"{path}[{at}]")
    return errors


def check_workload_update(document: Document, old: Document) -> list[FieldError]:
    return _unchanged(document, old, ("controllerRef", "podGroupTemplates"))


def _unchanged(document: Document, old: Document, fields: tuple[str, ...]) -> list[FieldError]:
    now, then = part(document, "spec"), part(old, "spec")
    return [
        invalid_value(f"spec.{field}", None, IMMUTABLE)
        for field in fields
        if (now.get(field) or None) != (then.get(field) or None)
    ]


def _check_scheduling(spec: Document, path: str) -> list[FieldError]:
    """What a PodGroup's spec and a PodGroupTemplate have in common."""
    errors = _check_policy(part(spec, "schedulingPolicy"), f"{path}.schedulingPolicy")
    errors += _check_constraints(part(spec, "schedulingConstraints"), f"{path}.schedulingConstraints")
    errors += _check_claims(items_of(spec, "resourceClaims"), f"{path}.resourceClaims")
    mode = spec.get("disruptionMode")
    if mode is not None and mode not in DISRUPTION_MODES:
        errors.append(unsupported(f"{path}.disruptionMode", mode, DISRUPTION_MODES))
    if name := spec.get("priorityClassName"):
        errors += _check_name(dns_subdomain, name, f"{path}.priorityClassName")
    priority = spec.get("priority")
    if priority is not None and priority > HIGHEST_PRIORITY:
        why = f"must be less than or equal to {HIGHEST_PRIORITY}"
        errors.append(invalid_value(f"{path}.priority", priority, why))
    return errors


def _check_policy(policy: Document, path: str) -> list[FieldError]:
    errors = _check_union(policy, path, ("basic", "gang"))
    gang = policy.get("gang")
    if gang is not None:
        count = gang.get("minCount") or 0
        if count == 0:
            errors.append(required(f"{path}.gang.minCount"))
        elif count < 1:
            errors.append(invalid_value(f"{path}.gang.minCount", count, "must be greater than or equal to 1"))
    return errors


def _check_constraints(constraints: Document, path: str) -> list[FieldError]:
    topology = items_of(constraints, "topology")
    if len(topology) > MOST_TOPOLOGY_CONSTRAINTS:
        return [too_many(f"{path}.topology", len(topology), MOST_TOPOLOGY_CONSTRAINTS)]
    errors: list[FieldError] = []
    for at, constraint in enumerate(topology):
        errors += _check_required_name(qualified_name, constraint.get("key"), f"{path}.topology[{at}].key")
    return errors


def _check_claims(claims: list[Document], path: str) -> list[FieldError]:
    if len(claims) > MOST_CLAIMS:
        return [too_many(path, len(claims), MOST_CLAIMS)]
    errors = _check_unique(claims, path)
    for at, claim in enumerate(claims):
        where = f"{path}[{at}]"
        errors += _check_union(claim, where, ("resourceClaimName", "resourceClaimTemplateName"))
        errors += _check_required_name(_short_name, claim.get("name"), f"{where}.name")
        for field in ("resourceClaimName", "resourceClaimTemplateName"):
            errors += _check_name(dns_subdomain, claim.get(field), f"{where}.{field}")
    return errors


def _check_reference(spec: Document, path: str) -> list[FieldError]:
    reference, path = spec.get("podGroupTemplateRef"), f"{path}.podGroupTemplateRef"
    if reference is None:
        return []
    errors = _check_union(reference, path, ("workload",))
    if (workload := reference.get("workload")) is not None:
        errors += _check_required_name(dns_subdomain, workload.get("workloadName"), f"{path}.workload.workloadName")
        where = f"{path}.workload.podGroupTemplateName"
        errors += _check_required_name(_short_name, workload.get("podGroupTemplateName"), where)
    return errors


def _check_controller(reference: Any, path: str) -> list[FieldError]:
    if reference is None:
        return []
    errors = _check_name(dns_subdomain, reference.get("apiGroup") or None, f"{path}.apiGroup")
    for field in ("kind", "name"):
        errors += _check_required_name(path_segment, reference.get(field), f"{path}.{field}")
    return errors


def check_scheduling_group(spec: Document, path: str) -> list[FieldError]:
    """The group of a pod; nothing checks that it exists."""
    group = spec.get("schedulingGroup")
    if group is None:
        return []
    name, path = group.get("podGroupName"), f"{path}.schedulingGroup.podGroupName"
    if name is None:
        return [invalid_value(path, None, "must specify one of: `podGroupName`")]
    return _check_name(dns_subdomain, name, path)


def _check_union(value: Document, path: str, members: tuple[str, ...]) -> list[FieldError]:
    """Exactly one of the members is set."""
    present = [member for member in members if value.get(member) is not None]
    listed = ", ".join(f"`{member}`" for member in members)
    if not present:
        return [invalid_value(path, "", f"must specify one of: {listed}")]
    if len(present) > 1:
        return [invalid_value(path, f"{{{', '.join(present)}}}", f"must specify exactly one of: {listed}")]
    return []


def _check_unique(entries: list[Document], path: str) -> list[FieldError]:
    names: set[str] = set()
    errors: list[FieldError] = []
    for at, entry in enumerate(entries):
        name = entry.get("name") or ""
        if name in names:
            errors.append(duplicate(f"{path}[{at}]", _as_go_shows(entry)))
        names.add(name)
    return errors


def _as_go_shows(entry: Document) -> Document:
    """One field of a template has no `omitempty`."""
    if "schedulingPolicy" not in entry:
        return entry
    shown = {"name": entry.get("name") or "", "schedulingPolicy": entry["schedulingPolicy"]}
    return {**shown, "schedulingConstraints": entry.get("schedulingConstraints"), **entry}


def _short_name(name: str) -> list[str]:
    """A DNS label, with a sentence of its own for a name that would be one without its dots."""
    if "." in name and not dns_subdomain(name):
        return ["must not contain dots"]
    return dns_label(name)


def _check_required_name(rule: NameRule, name: Any, path: str) -> list[FieldError]:
    return _check_name(rule, name, path) if name else [required(path)]


def _check_name(rule: NameRule, name: Any, path: str) -> list[FieldError]:
    return [] if name is None else [invalid_value(path, name, sentence) for sentence in rule(name)]
