"""ResourceClaims, their templates, ResourceSlices and DeviceClasses."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.apiserver.documents import Document, ensured, items_of, part
from mooring.apiserver.status import FieldError, invalid_value, required, unsupported
from mooring.apiserver.strategies.base import Strategy, StrategyContext, set_default, text_at
from mooring.apiserver.validation.checks import broken
from mooring.base.clock import timestamp
from mooring.objects.names import dns_label

EXACT_COUNT, ALL = "ExactCount", "All"
_OPERATORS = ("Equal", "Exists")


class ResourceClaimStrategy(Strategy):
    has_status = True
    checks_required = False

    def default(self, document: Document, context: StrategyContext) -> None:
        _default_claim(ensured(document, "spec"))
        for result in items_of(part(document, "status", "allocation", "devices"), "results"):
            _default_tolerations(result)

    def validate(self, document: Document, context: StrategyContext) -> list[FieldError]:
        return _check_claim(part(document, "spec"), "spec")

    def validate_update(self, document: Document, old: Document, context: StrategyContext) -> list[FieldError]:
        return _check_unchanged(document, old)


class ResourceClaimTemplateStrategy(Strategy):
    checks_required = False

    def default(self, document: Document, context: StrategyContext) -> None:
        _default_claim(ensured(ensured(document, "spec"), "spec"))

    def validate(self, document: Document, context: StrategyContext) -> list[FieldError]:
        return _check_claim(part(document, "spec", "spec"), "spec.spec")

    def validate_update(self, document: Document, old: Document, context: StrategyContext) -> list[FieldError]:
        return _check_unchanged(document, old)


class ResourceSliceStrategy(Strategy):
    """ResourceSlices can be selected by node and driver."""

    has_generation = True
    fields = {"spec.nodeName": text_at("spec", "nodeName"), "spec.driver": text_at("spec", "driver")}

    def default(self, document: Document, context: StrategyContext) -> None:
        for device in items_of(part(document, "spec"), "devices"):
            for taint in items_of(device, "taints"):
                set_default(taint, "timeAdded", timestamp(context.clock.now()))


class DeviceClassStrategy(Strategy):
    has_generation = True


def _default_claim(spec: Document) -> None:
    """A request without an allocation mode is for one device."""
    for request in items_of(ensured(spec, "devices"), "requests"):
        for _, request_spec in _alternatives(request):
            request_spec["allocationMode"] = request_spec.get("allocationMode") or EXACT_COUNT
            if request_spec["allocationMode"] == EXACT_COUNT and not request_spec.get("count"):
                request_spec["count"] = 1
            _default_tolerations(request_spec)


def _default_tolerations(holder: Document) -> None:
    for toleration in items_of(holder, "tolerations"):
        toleration["operator"] = toleration.get("operator") or "Equal"


def _alternatives(request: Document) -> Iterator[tuple[str, Document]]:
    """The exact request or the alternatives of a request, each with its path below the request."""
    if isinstance(request.get("exactly"), dict):
        yield "exactly", request["exactly"]
    for at, each in enumerate(items_of(request, "firstAvailable")):
        yield f"firstAvailable[{at}]", each


def _check_claim(spec: Document, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for at, request in enumerate(items_of(part(spec, "devices"), "requests")):
        errors += _check_request(request, f"{path}.devices.requests[{at}]")
    return errors


def _check_request(request: Document, path: str) -> list[FieldError]:
    errors = broken(dns_label, request.get("name") or "", f"{path}.name")
    rule = "exactly one of `exactly` or `firstAvailable` is required"
    has_exactly, has_alternatives = isinstance(request.get("exactly"), dict), bool(items_of(request, "firstAvailable"))
    if has_exactly and has_alternatives:
        return [*errors, invalid_value(path, None, f"{rule}, but multiple fields are set")]
    if not has_exactly and not has_alternatives:
        return [*errors, required(path, rule)]
    for where, request_spec in _alternatives(request):
        errors += _check_alternative(request_spec, f"{path}.{where}")
    return errors


def _check_alternative(request_spec: Document, path: str) -> list[FieldError]:
    errors = [] if request_spec.get("deviceClassName") else [required(f"{path}.deviceClassName")]
    mode, count = request_spec["allocationMode"], request_spec.get("count") or 0
    if mode not in (ALL, EXACT_COUNT):
        errors.append(unsupported(f"{path}.allocationMode", mode, (ALL, EXACT_COUNT)))
    elif mode == ALL and count:
        why = f"must not be specified when allocationMode is '{ALL}'"
        errors.append(invalid_value(f"{path}.count", count, why))
    elif mode == EXACT_COUNT and count <= 0:
        errors.append(invalid_value(f"{path}.count", count, "must be greater than zero"))
    for at, toleration in enumerate(items_of(request_spec, "tolerations")):
        if toleration["operator"] not in _OPERATORS:
            where = f"{path}.tolerations[{at}].operator"
            errors.append(unsupported(where, toleration["operator"], _OPERATORS))
    return errors


def _check_unchanged(document: Document, old: Document) -> list[FieldError]:
    if document.get("spec") != old.get("spec"):
        return [invalid_value("spec", document.get("spec"), "field is immutable")]
    return []
