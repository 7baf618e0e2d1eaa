"""PodDisruptionBudgets. The disruption controller writes their status."""

from __future__ import annotations

from mooring.apiserver.documents import Document
from mooring.apiserver.status import FieldError, invalid_value, unsupported
from mooring.apiserver.strategies.base import Strategy, StrategyContext, spec_of
from mooring.apiserver.validation.rollouts import check_amount_of_pods, check_at_most_all
from mooring.apiserver.validation.selectors import check_label_selector

UNHEALTHY_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


class DisruptionBudgetStrategy(Strategy):
    has_status = True
    has_generation = True

    def initial_status(self, document: Document) -> Document:
        return dict.fromkeys(("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"), 0)

    def validate(self, document: Document, context: StrategyContext) -> list[FieldError]:
        spec = spec_of(document)
        errors = check_label_selector(spec.get("selector"), "spec.selector")
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            errors.append(invalid_value("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
        for field in ("minAvailable", "maxUnavailable"):
            if (amount := spec.get(field)) is not None:
                errors += check_amount_of_pods(amount, f"spec.{field}") + check_at_most_all(amount, f"spec.{field}")
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy is not None and policy not in UNHEALTHY_POLICIES:
            errors.append(unsupported("spec.unhealthyPodEvictionPolicy", policy, UNHEALTHY_POLICIES))
        return errors
