"""Rules of a node: taints and amounts."""

from __future__ import annotations

from typing import Any

from mooring.apiserver.documents import Document, items_of, part
from mooring.apiserver.status import FieldError, invalid_value, quoted, required, unsupported
from mooring.apiserver.validation.quantities import check_amount
from mooring.apiserver.validation.scheduling import TAINT_EFFECTS
from mooring.objects.names import label_value, qualified_name


def check_node(node: Document) -> list[FieldError]:
    wrong = check_taints(items_of(part(node, "spec"), "taints"), "spec.taints")
    for field in ("capacity", "allocatable"):
        for resource, text in part(node, "status", field).items():
            wrong += check_amount(resource, text, f"status.{field}[{resource}]")
    return wrong


def check_taints(taints: list[Any], path: str) -> list[FieldError]:
    wrong: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        here = f"{path}[{index}]"
        key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")
        wrong += [invalid_value(f"{here}.key", key, sentence) for sentence in qualified_name(key)]
        wrong += [invalid_value(f"{here}.value", value, sentence) for sentence in label_value(value)]
        if not effect:
            wrong.append(required(f"{here}.effect"))
        elif effect not in TAINT_EFFECTS:
            wrong.append(unsupported(f"{here}.effect", effect, TAINT_EFFECTS))
        if (key, effect) in seen:
            sentence = f"Duplicate value: {quoted(taint)}: taints must be unique by key and effect pair"
            wrong.append(FieldError(here, "FieldValueDuplicate", sentence))
        seen.add((key, effect))
    return wrong
