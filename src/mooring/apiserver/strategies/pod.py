"""Pods: defaulting and admission before a scheduler sees one, and graceful deletion."""

from __future__ import annotations

from typing import Any

from mooring.apiserver.documents import Document, items_of, part
from mooring.apiserver.status import FieldError
from mooring.apiserver.strategies.base import Strategy, StrategyContext, spec_of, text_at
from mooring.apiserver.strategies.pod_admission import admit_pod, admit_pod_update
from mooring.apiserver.strategies.pod_defaults import default_pod
from mooring.apiserver.validation.pod import check_pod
from mooring.apiserver.validation.pod_update import check_pod_update
from mooring.base.clock import timestamp
from mooring.objects.quantity import exact

GATED = "Scheduling is blocked due to non-empty scheduling gates"
_ENDED = ("Succeeded", "Failed")


def _pod_ip(pod: Document) -> str:
    return str(part(pod, "status").get("podIP", ""))


class PodStrategy(Strategy):
    has_status = True
    has_generation = True
    checks_required = False
    fields = {
        "spec.nodeName": text_at("spec", "nodeName"),
        "spec.restartPolicy": text_at("spec", "restartPolicy"),
        "spec.schedulerName": text_at("spec", "schedulerName"),
        "spec.serviceAccountName": text_at("spec", "serviceAccountName"),
        "spec.hostNetwork": lambda pod: "true" if part(pod, "spec").get("hostNetwork") else "false",
        "status.phase": text_at("status", "phase"),
        "status.podIP": _pod_ip,
        "status.nominatedNodeName": text_at("status", "nominatedNodeName"),
    }

    def default(self, document: Document, context: StrategyContext) -> None:
        default_pod(spec_of(document))

    def admit(self, document: Document, context: StrategyContext) -> None:
        admit_pod(document, context)

    def prepare_create(self, document: Document, context: StrategyContext) -> None:
        super().prepare_create(document, context)
        spec = document["spec"]
        if spec.get("schedulingGates"):
            document["status"]["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "lastProbeTime": None,
                    "lastTransitionTime": timestamp(context.clock.now()),
                    "reason": "SchedulingGated",
                    "message": GATED,
                }
            ]
        _merge_label_keys(spec, part(document, "metadata", "labels"))

    def prepare_update(self, document: Document, old: Document, context: StrategyContext) -> None:
        admit_pod_update(document, old)
        super().prepare_update(document, old, context)

    def initial_status(self, document: Document) -> Document:
        return {"phase": "Pending", "qosClass": qos_class(document["spec"])}

    def prepare_status(self, document: Document, old: Document, context: StrategyContext) -> None:
        super().prepare_status(document, old, context)
        status = document.setdefault("status", {})
        status["qosClass"] = part(old, "status").get("qosClass") or qos_class(document["spec"])

    def validate(self, document: Document, context: StrategyContext) -> list[FieldError]:
        return check_pod(document)

    def validate_update(self, document: Document, old: Document, context: StrategyContext) -> list[FieldError]:
        return check_pod_update(document, old)

    def grace_seconds(self, document: Document, requested: int | None) -> int | None:
        """A bound pod stays until its kubelet has stopped it; an unbound or finished one is removed at once."""
        spec = document["spec"]
        if not spec.get("nodeName") or part(document, "status").get("phase") in _ENDED:
            return 0
        grace = spec.get("terminationGracePeriodSeconds", 30) if requested is None else requested
        return max(int(grace), 1) if grace < 0 else int(grace)


def qos_class(spec: Document) -> str:
    """Guaranteed: all containers have limits of cpu and memory, and equal requests. BestEffort: none has any."""
    holders: list[Document] = [spec] if (spec.get("resources") or {}).keys() & {"requests", "limits"} else []
    if not holders:
        holders = items_of(spec, "containers") + items_of(spec, "initContainers")
    is_best_effort, is_guaranteed = True, True
    for holder in holders:
        resources: Any = holder.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for resource in ("cpu", "memory"):
            request, limit = exact(requests.get(resource, "0")), exact(limits.get(resource, "0"))
            is_best_effort = is_best_effort and not request and not limit
            is_guaranteed = is_guaranteed and bool(limit) and request in (0, limit)
    if is_best_effort:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed else "Burstable"


def _merge_label_keys(spec: Document, labels: Document) -> None:
    """Merge `matchLabelKeys` into the selectors, as requirements with the pod's own values."""
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        required = items_of(terms, "requiredDuringSchedulingIgnoredDuringExecution")
        preferred = [
            each.get("podAffinityTerm") or {}
            for each in items_of(terms, "preferredDuringSchedulingIgnoredDuringExecution")
        ]
        for term in required + preferred:
            _merge_keys(term, "matchLabelKeys", "In", labels)
            _merge_keys(term, "mismatchLabelKeys", "NotIn", labels)
    for constraint in items_of(spec, "topologySpreadConstraints"):
        _merge_keys(constraint, "matchLabelKeys", "In", labels)


def _merge_keys(term: Document, field: str, operator: str, labels: Document) -> None:
    selector = term.get("labelSelector")
    keys = [key for key in items_of(term, field) if key in labels]
    if selector is not None and keys:
        added = [{"key": key, "operator": operator, "values": [labels[key]]} for key in keys]
        selector["matchExpressions"] = items_of(selector, "matchExpressions") + added
