"""DaemonSets: one pod on every eligible node."""

from __future__ import annotations

from mooring.apiserver.documents import Document, ensured, metadata_of, part
from mooring.apiserver.status import FieldError, invalid_value, required, unsupported
from mooring.apiserver.strategies.base import StrategyContext, set_default, set_text
from mooring.apiserver.strategies.workloads import WorkloadStrategy
from mooring.apiserver.validation.rollouts import (
    check_amount_of_pods,
    check_at_most_all,
    check_not_negative,
    number_in,
)

UPDATE_TYPES = ("RollingUpdate", "OnDelete")
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
"""How often the template has changed: an annotation that the server writes, formerly a field."""


class DaemonSetStrategy(WorkloadStrategy):
    word = "daemonset"
    title = "DaemonSet"
    scales = False

    def default_spec(self, spec: Document) -> None:
        update = ensured(spec, "updateStrategy")
        set_text(update, "type", "RollingUpdate")
        if update["type"] == "RollingUpdate":
            rolling = ensured(update, "rollingUpdate")
            set_default(rolling, "maxUnavailable", 1)
            set_default(rolling, "maxSurge", 0)
        set_default(spec, "revisionHistoryLimit", 10)

    def prepare_create(self, document: Document, context: StrategyContext) -> None:
        super().prepare_create(document, context)
        _set_template_generation(document, max(1, _template_generation(document)))

    def prepare_update(self, document: Document, old: Document, context: StrategyContext) -> None:
        super().prepare_update(document, old, context)
        has_changed = part(document, "spec").get("template") != part(old, "spec").get("template")
        _set_template_generation(document, _template_generation(old) + has_changed)

    def initial_status(self, document: Document) -> Document:
        names = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
        return dict.fromkeys(names, 0)

    def validate(self, document: Document, context: StrategyContext) -> list[FieldError]:
        spec = document["spec"]
        errors = super().validate(document, context)
        errors += _check_update_strategy(spec["updateStrategy"], "spec.updateStrategy")
        return errors + check_not_negative(spec["revisionHistoryLimit"], "spec.revisionHistoryLimit")


def _template_generation(document: Document) -> int:
    text = part(document, "metadata", "annotations").get(TEMPLATE_GENERATION, "")
    return int(text) if isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) < 19 else 0


def _set_template_generation(document: Document, generation: int) -> None:
    ensured(metadata_of(document), "annotations")[TEMPLATE_GENERATION] = str(generation)


def _check_update_strategy(update: Document, path: str) -> list[FieldError]:
    if update["type"] not in UPDATE_TYPES:
        return [unsupported(path, update, UPDATE_TYPES)]
    if update["type"] == "OnDelete":
        return []
    unavailable, surge = update["rollingUpdate"]["maxUnavailable"], update["rollingUpdate"]["maxSurge"]
    path = f"{path}.rollingUpdate"
    errors: list[FieldError] = []
    for check in (check_amount_of_pods, check_at_most_all):
        errors += check(unavailable, f"{path}.maxUnavailable")
        errors += check(surge, f"{path}.maxSurge")
    if number_in(unavailable) and number_in(surge):
        errors.append(invalid_value(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    elif not number_in(unavailable) and not number_in(surge):
        errors.append(required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return errors
