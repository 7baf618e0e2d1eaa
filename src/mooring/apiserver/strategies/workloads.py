"""Deployments, ReplicaSets, ReplicationControllers and PodTemplates: a pod template, a selector that matches it."""

from __future__ import annotations

from typing import ClassVar

from mooring.apiserver.documents import Document, ensured, items_of, metadata_of, part
from mooring.apiserver.status import FieldError, forbidden_field, invalid_value, required, unsupported
from mooring.apiserver.strategies.base import (
    Strategy,
    StrategyContext,
    set_default,
    set_text,
    spec_of,
    stored_only_warning,
    text_at,
)
from mooring.apiserver.strategies.pod_defaults import default_pod_spec
from mooring.apiserver.validation.metadata import check_labels
from mooring.apiserver.validation.pod import check_pod_spec
from mooring.apiserver.validation.rollouts import (
    check_amount_of_pods,
    check_at_most_all,
    check_not_negative,
    number_in,
)
from mooring.apiserver.validation.selectors import check_label_selector
from mooring.objects.selectors import requirement_matches


def selector_matches(selector: Document, labels: Document) -> bool:
    return all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items()) and all(
        requirement_matches(each.get("key", ""), each.get("operator", ""), items_of(each, "values"), labels)
        for each in items_of(selector, "matchExpressions")
    )


def check_template(template: Document, path: str, restart_policies: tuple[str, ...]) -> list[FieldError]:
    spec = part(template, "spec")
    errors = check_labels(part(template, "metadata").get("labels"), f"{path}.metadata.labels")
    errors += check_pod_spec(spec, f"{path}.spec")
    policy = spec.get("restartPolicy")
    if policy is not None and policy not in restart_policies:
        errors.append(unsupported(f"{path}.spec.restartPolicy", policy, restart_policies))
    return errors


class WorkloadStrategy(Strategy):
    """What Deployment, ReplicaSet, StatefulSet and DaemonSet share."""

    has_status = True
    has_generation = True
    checks_required = False
    word: ClassVar[str] = "deployment"
    title: ClassVar[str] = "ReplicaSet"
    """The kind in errors about deadlines of pods; a Deployment's pods belong to ReplicaSets."""
    scales: ClassVar[bool] = True

    def default(self, document: Document, context: StrategyContext) -> None:
        spec = spec_of(document)
        if self.scales:
            set_default(spec, "replicas", 1)
        template = ensured(spec, "template")
        default_pod_spec(ensured(template, "spec"))
        self.default_spec(spec)

    def default_spec(self, spec: Document) -> None:
        """Further defaults of the kind."""

    def initial_status(self, document: Document) -> Document:
        return {}

    def validate(self, document: Document, context: StrategyContext) -> list[FieldError]:
        spec = document["spec"]
        errors = check_not_negative(spec.get("replicas"), "spec.replicas")
        errors += check_not_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
        selector = spec.get("selector")
        if selector is None:
            errors.append(required("spec.selector"))
        else:
            errors += check_label_selector(selector, "spec.selector")
            if not selector.get("matchLabels") and not selector.get("matchExpressions"):
                why = f"empty selector is invalid for {self.word}"
                errors.append(invalid_value("spec.selector", selector, why))
        labels = part(spec, "template", "metadata", "labels")
        if selector is not None and not selector_matches(selector, labels):
            why = "`selector` does not match template `labels`"
            errors.append(invalid_value("spec.template.metadata.labels", labels, why))
        errors += check_template(self.template_of(spec), "spec.template", ("Always",))
        if part(spec, "template", "spec").get("activeDeadlineSeconds") is not None:
            why = f"activeDeadlineSeconds in {self.title} is not Supported"
            errors.append(forbidden_field("spec.template.spec.activeDeadlineSeconds", why))
        return errors

    def template_of(self, spec: Document) -> Document:
        """The pod template as it is validated."""
        template: Document = spec["template"]
        return template

    def validate_update(self, document: Document, old: Document, context: StrategyContext) -> list[FieldError]:
        errors = self.validate(document, context)
        now, then = document["spec"].get("selector"), part(old, "spec").get("selector")
        if now != then:
            errors.append(invalid_value("spec.selector", now, "field is immutable"))
        return errors


class DeploymentStrategy(WorkloadStrategy):
    def default_spec(self, spec: Document) -> None:
        strategy = ensured(spec, "strategy")
        set_text(strategy, "type", "RollingUpdate")
        if strategy["type"] == "RollingUpdate":
            rolling = ensured(strategy, "rollingUpdate")
            set_default(rolling, "maxUnavailable", "25%")
            set_default(rolling, "maxSurge", "25%")
        set_default(spec, "revisionHistoryLimit", 10)
        set_default(spec, "progressDeadlineSeconds", 600)

    def generation_content(self, document: Document) -> object:
        return document.get("spec"), part(document, "metadata").get("annotations")

    def validate(self, document: Document, context: StrategyContext) -> list[FieldError]:
        errors = super().validate(document, context)
        strategy = document["spec"]["strategy"]
        if strategy["type"] not in ("Recreate", "RollingUpdate"):
            errors.append(unsupported("spec.strategy.type", strategy["type"], ("Recreate", "RollingUpdate")))
        if strategy["type"] == "Recreate" and strategy.get("rollingUpdate"):
            why = "may not be specified when strategy `type` is 'Recreate'"
            errors.append(forbidden_field("spec.strategy.rollingUpdate", why))
        if strategy["type"] == "RollingUpdate":
            errors += _check_rolling_update(strategy["rollingUpdate"], "spec.strategy.rollingUpdate")
        return errors


def _check_rolling_update(rolling: Document, path: str) -> list[FieldError]:
    surge, unavailable = rolling["maxSurge"], rolling["maxUnavailable"]
    errors = check_amount_of_pods(unavailable, f"{path}.maxUnavailable")
    errors += check_amount_of_pods(surge, f"{path}.maxSurge")
    if not number_in(unavailable) and not number_in(surge):
        why = "may not be 0 when `maxSurge` is 0"
        errors.append(invalid_value(f"{path}.maxUnavailable", unavailable, why))
    return errors + check_at_most_all(unavailable, f"{path}.maxUnavailable")


class ReplicaSetStrategy(WorkloadStrategy):
    word = "replicaset"
    fields = {"status.replicas": text_at("status", "replicas")}

    def initial_status(self, document: Document) -> Document:
        return {"replicas": 0}


class ReplicationControllerStrategy(Strategy):
    """Its selector is a plain map, which defaults to the labels of the template."""

    has_status = True
    has_generation = True
    checks_required = False
    warning_on_create = stored_only_warning("ReplicationControllers", "runs no pods for them: use a Deployment")

    def default(self, document: Document, context: StrategyContext) -> None:
        spec = spec_of(document)
        set_default(spec, "replicas", 1)
        template = ensured(spec, "template")
        default_pod_spec(ensured(template, "spec"))
        labels = part(template, "metadata", "labels")
        if labels:
            if not spec.get("selector"):
                spec["selector"] = dict(labels)
            if not part(document, "metadata", "labels"):
                metadata_of(document)["labels"] = dict(labels)

    def initial_status(self, document: Document) -> Document:
        return {"replicas": 0}

    def validate(self, document: Document, context: StrategyContext) -> list[FieldError]:
        spec = document["spec"]
        selector, labels = spec.get("selector"), part(spec, "template", "metadata", "labels")
        errors: list[FieldError] = []
        if not selector:
            errors.append(required("spec.selector"))
        elif any(labels.get(key) != value for key, value in selector.items()):
            why = "`selector` does not match template `labels`"
            errors.append(invalid_value("spec.template.metadata.labels", labels, why))
        return errors + check_template(spec["template"], "spec.template", ("Always",))


class PodTemplateStrategy(Strategy):
    has_generation = True

    def generation_content(self, document: Document) -> object:
        return document.get("template")

    def default(self, document: Document, context: StrategyContext) -> None:
        default_pod_spec(ensured(ensured(document, "template"), "spec"))
