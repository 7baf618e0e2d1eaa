"""CustomResourceDefinitions: their validation, their conditions, and the resources they add while they exist."""

from __future__ import annotations

from typing import Any

from mooring.apiserver.custom.resources import column_of, rows_of, strategy_of
from mooring.apiserver.documents import Document, items_of, metadata_of, part
from mooring.apiserver.schema import missing
from mooring.apiserver.status import FieldError, invalid_value, required, unsupported
from mooring.apiserver.strategies.base import Strategy, StrategyContext, set_default, spec_of
from mooring.base.clock import timestamp
from mooring.base.regex import BadPattern, compiled
from mooring.objects.names import dns1035_label, dns_subdomain

APPROVED = "api-approved.kubernetes.io"
_SEE = "see https://github.com/kubernetes/enhancements/pull/1111"
_DEFINITION = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
_LOOSE = ("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")


class DefinitionStrategy(Strategy):
    has_status = True
    has_generation = True

    def default(self, document: Document, context: StrategyContext) -> None:
        spec = spec_of(document)
        names = spec.setdefault("names", {})
        if names.get("kind"):
            set_default(names, "singular", names["kind"].lower())
            set_default(names, "listKind", names["kind"] + "List")
        set_default(spec, "conversion", {"strategy": "None"})
        if service := part(spec, "conversion", "webhook", "clientConfig", "service"):
            set_default(service, "port", 443)

    def initial_status(self, document: Document) -> Document:
        return {"conditions": [], "acceptedNames": {"kind": "", "plural": ""}, "storedVersions": []}

    def validate(self, document: Document, context: StrategyContext) -> list[FieldError]:
        spec = document["spec"]
        names, group = part(spec, "names"), spec.get("group", "")
        errors: list[FieldError] = []
        name, expected = metadata_of(document).get("name", ""), f"{names.get('plural', '')}.{group}"
        if name != expected:
            errors.append(invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
        if not group:
            errors.append(required("spec.group"))
        else:
            errors += [invalid_value("spec.group", group, sentence) for sentence in dns_subdomain(group)]
            if "." not in group:
                errors.append(invalid_value("spec.group", group, "should be a domain with at least one dot"))
        errors += self._check_approval(document, group)
        if spec.get("scope") not in ("Cluster", "Namespaced"):
            scope = spec.get("scope")
            errors.append(
                unsupported("spec.scope", scope, ("Cluster", "Namespaced")) if scope else required("spec.scope")
            )
        for field in ("plural", "singular"):
            if names.get(field):
                errors += [
                    invalid_value(f"spec.names.{field}", names[field], sentence)
                    for sentence in dns1035_label(names[field])
                ]
        return errors + self._check_versions(items_of(spec, "versions"))

    def validate_restore(self, document: Document, context: StrategyContext) -> list[FieldError]:
        """Without names and one storage version no kind can be served."""
        absent = [required(path) for path in missing(document, _DEFINITION)]
        return absent or _check_storage_version(items_of(document["spec"], "versions"))

    def _check_approval(self, document: Document, group: str) -> list[FieldError]:
        """Kubernetes' own groups are protected: a definition in one needs the approval annotation."""
        if not any(group == domain or group.endswith("." + domain) for domain in ("k8s.io", "kubernetes.io")):
            return []
        path = f"metadata.annotations[{APPROVED}]"
        value = part(document, "metadata", "annotations").get(APPROVED, "")
        if not value:
            return [required(path, f'protected groups must have approval annotation "{APPROVED}", {_SEE}')]
        if value.startswith(("unapproved", "http://", "https://")):
            return []
        why = (
            f'protected groups must have approval annotation "{APPROVED}" with either a URL or a reason starting with'
            f' "unapproved", {_SEE}'
        )
        return [invalid_value(path, value, why)]

    def _check_versions(self, versions: list[Any]) -> list[FieldError]:
        errors = _check_storage_version(versions)
        for index, version in enumerate(versions):
            path = f"spec.versions[{index}].schema.openAPIV3Schema"
            schema = part(version, "schema").get("openAPIV3Schema")
            if schema is None:
                errors.append(required(path, "schemas are required"))
            else:
                if schema.get("type") != "object":
                    why = "must be object at the root"
                    errors.append(invalid_value(f"{path}.type", schema.get("type", ""), why))
                errors += _check_structural(schema, path)
            errors += _check_columns(version, f"spec.versions[{index}]")
        return errors

    def validate_update(self, document: Document, old: Document, context: StrategyContext) -> list[FieldError]:
        errors = self.validate(document, context)
        now, then = document["spec"], part(old, "spec")
        for path in (("group",), ("scope",), ("names", "kind"), ("names", "plural")):
            mine, before = _at(now, path), _at(then, path)
            if mine != before:
                errors.append(invalid_value("spec." + ".".join(path), mine, "field is immutable"))
        return errors

    def prepare_create(self, document: Document, context: StrategyContext) -> None:
        super().prepare_create(document, context)
        self._accept(document, context)

    def prepare_restore(self, document: Document, context: StrategyContext) -> None:
        super().prepare_restore(document, context)
        self._accept(document, context)

    def prepare_update(self, document: Document, old: Document, context: StrategyContext) -> None:
        super().prepare_update(document, old, context)
        if document.get("spec") != old.get("spec"):
            self._accept(document, context)

    def _accept(self, document: Document, context: StrategyContext) -> None:
        """Accept the names and establish the kind, as upstream's naming and establishing controllers do."""
        spec = document["spec"]
        names, now = part(spec, "names"), timestamp(context.clock.now())
        taken = _name_taken(spec, names, context)
        status = dict(document.get("status") or {})
        if taken:
            conditions = [
                _condition("NamesAccepted", "False", f"{taken}Conflict", "is already in use", now),
                _condition("Established", "False", "NotAccepted", "not all names are accepted", now),
            ]
        else:
            status["acceptedNames"] = dict(names)
            conditions = [
                _condition("NamesAccepted", "True", "NoConflicts", "no conflicts found", now),
                _condition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted", now),
            ]
        stored = [version.get("name") for version in items_of(spec, "versions") if version.get("storage")]
        before = items_of(status, "storedVersions")
        status["storedVersions"] = before + [name for name in stored if name not in before]
        status["conditions"] = conditions
        document["status"] = status

    def after_create(self, document: Document, context: StrategyContext) -> None:
        if _is_established(document):
            for row in rows_of(document):
                context.table.add(row)
            context.strategies[document["metadata"]["name"]] = strategy_of(document)

    def after_update(self, document: Document, old: Document, context: StrategyContext) -> None:
        if document["spec"] == old["spec"]:
            return
        for row in context.table.stored_as(document["metadata"]["name"]):
            context.table.remove(row)
        self.after_create(document, context)

    def after_delete(self, document: Document, context: StrategyContext) -> None:
        """Delete the definition's objects and end their watches."""
        storage = document["metadata"]["name"]
        rows = context.table.stored_as(storage)
        if not rows or rows[0].custom is None:
            return
        for _, stored in list(context.store.scan(storage)):
            context.store.delete(storage, stored)
        for row in rows:
            context.table.remove(row)
        context.strategies.pop(storage, None)
        context.store.end_watches(storage)


def _at(document: Document, path: tuple[str, ...]) -> Any:
    here: Any = document
    for name in path:
        here = here.get(name) if isinstance(here, dict) else None
    return here


def _condition(type: str, status: str, reason: str, message: str, now: str) -> Document:
    return {"type": type, "status": status, "lastTransitionTime": now, "reason": reason, "message": message}


def _is_established(document: Document) -> bool:
    return any(
        each["type"] == "Established" and each["status"] == "True"
        for each in items_of(document["status"], "conditions")
    )


def _name_taken(spec: Document, names: Document, context: StrategyContext) -> str:
    """Which name, `Plural` or `Kind`, conflicts with another resource of the group; empty if none."""
    storage = f"{names.get('plural')}.{spec.get('group')}"
    for row in context.table:
        if row.group == spec.get("group") and row.storage != storage:
            if row.plural == names.get("plural"):
                return "Plural"
            if row.kind == names.get("kind"):
                return "Kind"
    return ""


def _check_storage_version(versions: list[Any]) -> list[FieldError]:
    why = "must have exactly one version marked as storage version"
    if not versions:
        return [required("spec.versions", why)]
    if sum(bool(version.get("storage")) for version in versions) != 1:
        return [invalid_value("spec.versions", [version.get("name") for version in versions], why)]
    return []


def _check_columns(version: Document, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, declared in enumerate(items_of(version, "additionalPrinterColumns")):
        try:
            column_of(declared)
        except ValueError as mistake:
            where = f"{path}.additionalPrinterColumns[{index}].jsonPath"
            errors.append(invalid_value(where, declared.get("jsonPath", ""), str(mistake)))
    return errors


def _check_structural(schema: Any, path: str) -> list[FieldError]:
    """Every schema has a type, unless it is int-or-string or preserves unknown fields."""
    errors: list[FieldError] = []
    if not isinstance(schema, dict):
        return errors
    if not schema.get("type") and not any(schema.get(mark) for mark in _LOOSE):
        errors.append(required(f"{path}.type", "must not be empty for specified object fields"))
    if schema.get("pattern"):
        try:
            compiled(schema["pattern"])
        except BadPattern as mistake:
            why = f"must be a valid regular expression, but isn't: {mistake}"
            errors.append(invalid_value(f"{path}.pattern", schema["pattern"], why))
    if schema.get("properties") and schema.get("additionalProperties"):
        why = "must not be used together with properties"
        errors.append(FieldError(f"{path}.additionalProperties", "FieldValueForbidden", f"Forbidden: {why}"))
    for name, property in (schema.get("properties") or {}).items():
        errors += _check_structural(property, f"{path}.properties[{name}]")
    errors += _check_structural(schema.get("items"), f"{path}.items") if "items" in schema else []
    if isinstance(schema.get("additionalProperties"), dict):
        errors += _check_structural(schema["additionalProperties"], f"{path}.additionalProperties")
    return errors
