"""Kinds with a rule or two: priority classes, RBAC, secrets, budgets, leases, limits."""

from __future__ import annotations

import base64

from mooring.apiserver.documents import Document, ensured, items_of, part
from mooring.apiserver.status import FieldError, forbidden_field, invalid_value, unsupported
from mooring.apiserver.strategies.base import Strategy, World, set_default, set_text, spec_of, stored_only, text_at
from mooring.apiserver.strategies.pod_defaults import default_pod_spec
from mooring.apiserver.validation.rollouts import check_amount_of_pods, check_at_most_all
from mooring.apiserver.validation.selectors import check_label_selector
from mooring.objects.names import path_segment

SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
HIGHEST_USER_PRIORITY = 1_000_000_000
UNHEALTHY_POLICIES = ("AlwaysAllow", "IfHealthyBudget")
RBAC_GROUP = "rbac.authorization.k8s.io"


class PriorityClassStrategy(Strategy):
    has_generation = True
    checks_required = False

    def meaning(self, document: Document) -> object:
        return None

    def default(self, document: Document, world: World) -> None:
        set_default(document, "preemptionPolicy", "PreemptLowerPriority")
        set_default(document, "value", 0)

    def validate(self, document: Document, world: World) -> list[FieldError]:
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

    def validate_update(self, document: Document, old: Document, world: World) -> list[FieldError]:
        return [
            forbidden_field(field, f"may not be changed in an update{'.' if field == 'value' else ''}")
            for field in ("value", "preemptionPolicy")
            if document.get(field) != old.get(field)
        ]


class RbacStrategy(Strategy):
    """Names need only fit into a URL; groups of references are filled in."""

    create_on_update = True

    def name_rule(self, name: str) -> list[str]:
        return path_segment(name)

    def default(self, document: Document, world: World) -> None:
        if isinstance(document.get("roleRef"), dict):
            set_text(document["roleRef"], "apiGroup", RBAC_GROUP)
        for subject in items_of(document, "subjects"):
            if subject.get("kind") in ("User", "Group"):
                set_text(subject, "apiGroup", RBAC_GROUP)

    def validate_update(self, document: Document, old: Document, world: World) -> list[FieldError]:
        if document.get("roleRef") != old.get("roleRef"):
            return [invalid_value("roleRef", document.get("roleRef"), "cannot change roleRef")]
        return []


class RoleStrategy(RbacStrategy):
    def default(self, document: Document, world: World) -> None:
        document.setdefault("rules", [])


class SecretStrategy(Strategy):
    fields = {"type": text_at("type")}

    def default(self, document: Document, world: World) -> None:
        set_text(document, "type", "Opaque")
        plain = document.pop("stringData", None)
        if plain:
            data = ensured(document, "data")
            for key, value in plain.items():
                data[key] = base64.b64encode(value.encode()).decode()

    def validate_update(self, document: Document, old: Document, world: World) -> list[FieldError]:
        if document.get("type") != old.get("type"):
            return [invalid_value("type", document.get("type"), "field is immutable")]
        return _immutable_data(document, old)


class ConfigMapStrategy(Strategy):
    def validate_update(self, document: Document, old: Document, world: World) -> list[FieldError]:
        return _immutable_data(document, old)


def _immutable_data(document: Document, old: Document) -> list[FieldError]:
    if old.get("immutable"):
        return [
            forbidden_field(field, "field is immutable when `immutable` is set")
            for field in ("data", "binaryData", "immutable")
            if document.get(field) != old.get(field)
        ]
    return []


class BudgetStrategy(Strategy):
    has_status = True
    has_generation = True

    def initial_status(self, document: Document) -> Document:
        return dict.fromkeys(("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"), 0)

    def validate(self, document: Document, world: World) -> list[FieldError]:
        spec = spec_of(document)
        wrong = check_label_selector(spec.get("selector"), "spec.selector")
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            wrong.append(invalid_value("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
        for field in ("minAvailable", "maxUnavailable"):
            if (amount := spec.get(field)) is not None:
                wrong += check_amount_of_pods(amount, f"spec.{field}") + check_at_most_all(amount, f"spec.{field}")
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy is not None and policy not in UNHEALTHY_POLICIES:
            wrong.append(unsupported("spec.unhealthyPodEvictionPolicy", policy, UNHEALTHY_POLICIES))
        return wrong


class LeaseStrategy(Strategy):
    create_on_update = True


class StatusStrategy(Strategy):
    """Kinds that have a status somebody else writes, and no more rules here."""

    has_status = True


class QuotaStrategy(StatusStrategy):
    notice = stored_only("ResourceQuotas", "does not enforce them")


class LimitRangeStrategy(Strategy):
    notice = stored_only("LimitRanges", "does not enforce them")

    def default(self, document: Document, world: World) -> None:
        for limit in items_of(part(document, "spec"), "limits"):
            if limit.get("type") == "Container":
                default, request = ensured(limit, "default"), ensured(limit, "defaultRequest")
                for target, source in ((default, "max"), (request, "default"), (request, "min")):
                    for resource, amount in part(limit, source).items():
                        target.setdefault(resource, amount)


class PodTemplateStrategy(Strategy):
    has_generation = True

    def meaning(self, document: Document) -> object:
        return document.get("template")

    def default(self, document: Document, world: World) -> None:
        default_pod_spec(ensured(ensured(document, "template"), "spec"))
