"""Validation of nodes: taints, capacity and allocatable."""

from __future__ import annotations

from typing import Any

from mooring.apiserver.documents import Document, items_of, part
from mooring.apiserver.status import FieldError, quoted
from mooring.apiserver.validation.checks import each, filled, named, one_of, repeats
from mooring.apiserver.validation.quantities import check_amount
from mooring.apiserver.validation.scheduling import TAINT_EFFECTS
from mooring.objects.names import label_value, qualified_name


def check_node(node: Document) -> list[FieldError]:
    errors = check_taints(items_of(part(node, "spec"), "taints"), "spec.taints")
    for field in ("capacity", "allocatable"):
        for resource, text in part(node, "status", field).items():
            errors += check_amount(resource, text, f"status.{field}[{resource}]")
    return errors


def _taint_twice(taint: Document, path: str) -> FieldError:
    sentence = f"Duplicate value: {quoted(taint)}: taints must be unique by key and effect pair"
    return FieldError(path, "FieldValueDuplicate", sentence)


def _taint_effect(taint: Document, path: str) -> list[FieldError]:
    return filled("effect")(taint, path) or one_of("effect", *TAINT_EFFECTS)(taint, path)


def check_taints(taints: list[Any], path: str) -> list[FieldError]:
    return each(
        taints,
        path,
        named("key", qualified_name),
        named("value", label_value),
        _taint_effect,
        repeats(taints, lambda taint: (taint.get("key", ""), taint.get("effect", "")), _taint_twice),
    )
