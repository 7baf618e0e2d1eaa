"""Roles and role bindings. They are stored; the embedded server does not authorize by them."""

from __future__ import annotations

from mooring.apiserver.documents import Document, items_of
from mooring.apiserver.status import FieldError, invalid_value
from mooring.apiserver.strategies.base import CreateOnUpdateStrategy, StrategyContext, set_text
from mooring.objects.names import path_segment

RBAC_GROUP = "rbac.authorization.k8s.io"


class RoleBindingStrategy(CreateOnUpdateStrategy):
    """Names must be path segments; `apiGroup` of the role and of users and groups is defaulted."""

    def name_rule(self, name: str) -> list[str]:
        return path_segment(name)

    def default(self, document: Document, context: StrategyContext) -> None:
        if isinstance(document.get("roleRef"), dict):
            set_text(document["roleRef"], "apiGroup", RBAC_GROUP)
        for subject in items_of(document, "subjects"):
            if subject.get("kind") in ("User", "Group"):
                set_text(subject, "apiGroup", RBAC_GROUP)

    def validate_update(self, document: Document, old: Document, context: StrategyContext) -> list[FieldError]:
        if document.get("roleRef") != old.get("roleRef"):
            return [invalid_value("roleRef", document.get("roleRef"), "cannot change roleRef")]
        return []


class RoleStrategy(RoleBindingStrategy):
    def default(self, document: Document, context: StrategyContext) -> None:
        document.setdefault("rules", [])
