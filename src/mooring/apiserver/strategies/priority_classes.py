"""PriorityClasses: the values of user and system classes, which never change."""

from __future__ import annotations

from mooring.apiserver.documents import Document, part
from mooring.apiserver.status import FieldError, forbidden_field, invalid_value
from mooring.apiserver.strategies.base import Strategy, StrategyContext, set_default

SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
HIGHEST_USER_PRIORITY = 1_000_000_000


class PriorityClassStrategy(Strategy):
    has_generation = True
    checks_required = False

    def generation_content(self, document: Document) -> object:
        return None

    def default(self, document: Document, context: StrategyContext) -> None:
        set_default(document, "preemptionPolicy", "PreemptLowerPriority")
        set_default(document, "value", 0)

    def validate(self, document: Document, context: StrategyContext) -> list[FieldError]:
        name, value = part(document, "metadata").get("name", ""), document["value"]
        if name.startswith("system-"):
            if SYSTEM_CLASSES.get(name) != value:
                why = (
                    "priority class names with 'system-' prefix are reserved for system use only."
                    f" error: {name} is not a known system priority class"
                )
                return [forbidden_field("metadata.name", why)]
        elif value > HIGHEST_USER_PRIORITY:
            why = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
            return [forbidden_field("value", why)]
        if document["preemptionPolicy"] not in ("Never", "PreemptLowerPriority"):
            return [invalid_value("preemptionPolicy", document["preemptionPolicy"], "not supported")]
        return []

    def validate_update(self, document: Document, old: Document, context: StrategyContext) -> list[FieldError]:
        return [
            forbidden_field(field, f"may not be changed in an update{'.' if field == 'value' else ''}")
            for field in ("value", "preemptionPolicy")
            if document.get(field) != old.get(field)
        ]
