"""Validation of resource quantities: names, signs, whole numbers, requests within limits."""

from __future__ import annotations

from typing import Any

from mooring.apiserver.documents import Document
from mooring.apiserver.status import FieldError, invalid_value, required
from mooring.objects.names import qualified_name
from mooring.objects.quantity import exact

STANDARD = ("cpu", "memory", "ephemeral-storage")


def is_native(resource: str) -> bool:
    return "/" not in resource or resource.partition("/")[0].endswith("kubernetes.io")


def may_overcommit(resource: str) -> bool:
    return is_native(resource) and not resource.startswith("hugepages-")


def check_amount(resource: str, text: Any, path: str) -> list[FieldError]:
    value = exact(text)
    if value < 0:
        return [invalid_value(path, text, "must be greater than or equal to 0")]
    if not is_native(resource) and value.denominator != 1:
        return [invalid_value(path, text, "must be an integer")]
    return []


def check_resource_name(resource: str, path: str) -> list[FieldError]:
    errors = [invalid_value(path, resource, sentence) for sentence in qualified_name(resource)]
    if not errors and "/" not in resource and resource not in STANDARD and not resource.startswith("hugepages-"):
        return [invalid_value(path, resource, "must be a standard resource for containers")]
    return errors


def check_resources(resources: Any, path: str) -> list[FieldError]:
    """A container's (or pod's) `resources`."""
    if not resources:
        return []
    errors: list[FieldError] = []
    limits: Document = resources.get("limits") or {}
    requests: Document = resources.get("requests") or {}
    for resource, text in limits.items():
        here = f"{path}.limits[{resource}]"
        errors += check_resource_name(resource, here) + check_amount(resource, text, here)
    for resource, text in requests.items():
        here = f"{path}.requests[{resource}]"
        errors += check_resource_name(resource, here) + check_amount(resource, text, here)
        limit = limits.get(resource)
        if limit is not None:
            if not may_overcommit(resource) and exact(text) != exact(limit):
                why = f"must be equal to {resource} limit of {limit}"
                errors.append(invalid_value(f"{path}.requests", text, why))
            elif exact(text) > exact(limit):
                why = f"must be less than or equal to {resource} limit of {limit}"
                errors.append(invalid_value(f"{path}.requests", text, why))
        elif not may_overcommit(resource):
            errors.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
    return errors
