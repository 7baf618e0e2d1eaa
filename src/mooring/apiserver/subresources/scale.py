"""`scale`: the replicas of any kind that has them, as autoscaling/v1 Scale."""

from __future__ import annotations

from typing import Any

from mooring.apiserver.documents import Document, copied, items_of, part
from mooring.apiserver.negotiation import decode_as
from mooring.apiserver.options import write_options
from mooring.apiserver.resources import Resource
from mooring.apiserver.status import invalid, invalid_value, no_such_path
from mooring.apiserver.subresources.base import SubresourceHandler, SubresourceRequest

SCALE = "io.k8s.api.autoscaling.v1.Scale"
REPLICAS, STATUS_REPLICAS = ("spec", "replicas"), ("status", "replicas")


def selector_text(selector: Any) -> str:
    """A label selector in its text form, as the status of a Scale has it."""
    if not isinstance(selector, dict):
        return ""
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for each in items_of(selector, "matchExpressions"):
        values = ",".join(sorted(items_of(each, "values")))
        match each.get("operator"):
            case "In" | "NotIn":
                parts.append(f"{each['key']} {each['operator'].lower()} ({values})")
            case "Exists":
                parts.append(str(each["key"]))
            case "DoesNotExist":
                parts.append(f"!{each['key']}")
    return ",".join(parts)


def _at(document: Document, path: tuple[str, ...]) -> Any:
    here: Any = document
    for name in path:
        here = here.get(name) if isinstance(here, dict) else None
    return here


def _paths(row: Resource) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Where spec replicas, status replicas and selector are in this kind."""
    if row.custom is None:
        return REPLICAS, STATUS_REPLICAS, ("spec", "selector")
    scale: Document = row.custom.scale or {}

    def path(field: str) -> tuple[str, ...]:
        return tuple(part for part in scale.get(field, "").split(".") if part)

    return path("specReplicasPath"), path("statusReplicasPath"), path("labelSelectorPath")


class ScaleHandler(SubresourceHandler):
    def get(self, call: SubresourceRequest) -> Document:
        route = call.route
        stored = call.registry.stored(route.row, route.namespace, route.name)
        return _scale(route.row, stored.converted(route.row.to_served)[0])

    def put(self, call: SubresourceRequest) -> Document:
        route, row = call.route, call.route.row
        scale = decode_as(call.body, SCALE, "Scale")
        replicas = part(scale, "spec").get("replicas", 0)
        if replicas < 0:
            error = invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
            raise invalid("autoscaling", "Scale", route.name, [error])
        spec_path = _paths(row)[0]
        if not spec_path:
            raise no_such_path()

        def change(document: Document) -> Document:
            changed = copied(document)
            here = changed
            for name in spec_path[:-1]:
                here = here.setdefault(name, {})
            here[spec_path[-1]] = replicas
            if version := part(scale, "metadata").get("resourceVersion"):
                changed["metadata"]["resourceVersion"] = version
            return changed

        dry_run = write_options(call.query, "UpdateOptions").dry_run
        stored, _ = call.registry.update(row, route.namespace, route.name, change, dry_run=dry_run)
        return _scale(row, stored.converted(row.to_served)[0])


def _scale(row: Resource, document: Document) -> Document:
    spec_path, status_path, selector_path = _paths(row)
    metadata = document["metadata"]
    selector = _at(document, selector_path) if selector_path else ""
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            field: metadata[field]
            for field in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
            if field in metadata
        },
        "spec": {"replicas": _at(document, spec_path) or 0},
        "status": {
            "replicas": _at(document, status_path) or 0,
            "selector": selector if isinstance(selector, str) else selector_text(selector),
        },
    }
