"""HorizontalPodAutoscalers: stored as autoscaling/v2, and converted to and from v1.

What v1 has no field for is kept in the annotations that kube-apiserver uses for it, as the JSON of v2, so that a client
of v1 that reads and writes an object loses nothing.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mooring.apiserver.documents import Document, copied, decode, encode, ensured, items_of, part
from mooring.apiserver.status import FieldError, invalid_value
from mooring.apiserver.strategies.base import Strategy, StrategyContext, set_default, spec_of, stored_only_warning

DEFAULT_CPU_PERCENT = 80
_PREFIX = "autoscaling.alpha.kubernetes.io/"
# Annotation to the field of v2 that it holds.
_CARRIED = {
    f"{_PREFIX}metrics": ("spec", "metrics"),
    f"{_PREFIX}behavior": ("spec", "behavior"),
    f"{_PREFIX}current-metrics": ("status", "currentMetrics"),
    f"{_PREFIX}conditions": ("status", "conditions"),
}
_PERIOD_SECONDS = 15
_UP_RULES: Document = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": _PERIOD_SECONDS},
        {"type": "Percent", "value": 100, "periodSeconds": _PERIOD_SECONDS},
    ],
}
_DOWN_RULES: Document = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": _PERIOD_SECONDS}],
}


def to_v1(stored: Document) -> Document:
    """A stored autoscaler as autoscaling/v1."""
    shown = copied(stored)
    shown["apiVersion"] = "autoscaling/v1"
    metadata, spec, status = shown["metadata"], ensured(shown, "spec"), ensured(shown, "status")
    kept = {key: value for key, value in part(metadata, "annotations").items() if key not in _CARRIED}
    metrics = items_of(spec, "metrics")
    spec["metrics"] = [metric for metric in metrics if _cpu_percent(metric) is None]
    percents = [percent for metric in metrics if (percent := _cpu_percent(metric)) is not None]
    for annotation, (place, field) in _CARRIED.items():
        if value := part(shown, place).get(field):
            kept[annotation] = encode(value).decode()
    current = (_cpu_percent(metric, "current") for metric in items_of(status, "currentMetrics"))
    if (percent := next((each for each in current if each is not None), None)) is not None:
        status["currentCPUUtilizationPercentage"] = percent
    for place, field in _CARRIED.values():
        part(shown, place).pop(field, None)
    # Fields that v1 always has.
    status.setdefault("currentReplicas", 0)
    status.setdefault("desiredReplicas", 0)
    if percents:
        spec["targetCPUUtilizationPercentage"] = percents[0]
    if kept:
        metadata["annotations"] = kept
    else:
        metadata.pop("annotations", None)
    return shown


def to_v2(written: Document) -> Document:
    """An autoscaling/v1 autoscaler in the stored form."""
    stored = copied(written)
    stored["apiVersion"] = "autoscaling/v2"
    spec = ensured(stored, "spec")
    annotations = part(stored, "metadata", "annotations")
    for annotation, (place, field) in _CARRIED.items():
        if (text := annotations.pop(annotation, None)) is not None and (value := _read(text)):
            ensured(stored, place)[field] = value
    if (percent := spec.pop("targetCPUUtilizationPercentage", None)) is not None:
        spec["metrics"] = [*items_of(spec, "metrics"), _cpu_metric(percent)]
    if isinstance(stored.get("status"), dict):
        stored["status"].pop("currentCPUUtilizationPercentage", None)
    return stored


def _cpu_metric(percent: int) -> Document:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _cpu_percent(metric: Document, state: str = "target") -> int | None:
    resource = part(metric, "resource")
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    return part(resource, state).get("averageUtilization")


def _read(text: str) -> Any:
    """The value of an annotation; one that is not JSON is ignored, as upstream."""
    try:
        return decode(text)
    except msgspec.DecodeError:
        return None


class AutoscalerStrategy(Strategy):
    """Autoscalers are stored; no controller scales by them."""

    has_status = True
    warning_on_create = stored_only_warning("HorizontalPodAutoscalers", "runs no controller that scales by metrics")

    def default(self, document: Document, context: StrategyContext) -> None:
        spec = spec_of(document)
        set_default(spec, "minReplicas", 1)
        if not spec.get("metrics"):
            spec["metrics"] = [_cpu_metric(DEFAULT_CPU_PERCENT)]
        if isinstance(behavior := spec.get("behavior"), dict):
            for field, rules in (("scaleUp", _UP_RULES), ("scaleDown", _DOWN_RULES)):
                behavior[field] = copied(rules) | (behavior.get(field) or {})

    def initial_status(self, document: Document) -> Document:
        return {"currentMetrics": None, "desiredReplicas": 0}

    def validate(self, document: Document, context: StrategyContext) -> list[FieldError]:
        spec = document["spec"]
        least, most = spec["minReplicas"], spec.get("maxReplicas")
        errors: list[FieldError] = []
        if least < 1:
            errors.append(invalid_value("spec.minReplicas", least, "must be greater than or equal to 1"))
        if most is None:
            return errors
        if most < 1:
            errors.append(invalid_value("spec.maxReplicas", most, "must be greater than 0"))
        if most < least:
            errors.append(
                invalid_value("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"),
            )
        return errors
