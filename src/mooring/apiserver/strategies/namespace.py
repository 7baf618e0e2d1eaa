"""Namespaces: Active until deleted, then Terminating until their content is deleted."""

from __future__ import annotations

from mooring.apiserver.documents import Document, ensured, metadata_of
from mooring.apiserver.status import forbidden
from mooring.apiserver.strategies.base import Strategy, StrategyContext, spec_of, text_at
from mooring.objects.names import dns_label

PERMANENT = ("default", "kube-public", "kube-system")
NAME_LABEL = "kubernetes.io/metadata.name"


class NamespaceStrategy(Strategy):
    has_status = True
    fields = {"status.phase": text_at("status", "phase"), "name": text_at("metadata", "name")}

    def name_rule(self, name: str) -> list[str]:
        return dns_label(name)

    def default(self, document: Document, context: StrategyContext) -> None:
        metadata = metadata_of(document)
        if metadata.get("name"):
            ensured(metadata, "labels")[NAME_LABEL] = metadata["name"]

    def prepare_create(self, document: Document, context: StrategyContext) -> None:
        super().prepare_create(document, context)
        spec_of(document)["finalizers"] = ["kubernetes"]

    def initial_status(self, document: Document) -> Document:
        return {"phase": "Active"}

    def prepare_update(self, document: Document, old: Document, context: StrategyContext) -> None:
        super().prepare_update(document, old, context)
        spec_of(document)["finalizers"] = old.get("spec", {}).get("finalizers", [])

    def admit_delete(self, document: Document, context: StrategyContext) -> None:
        name = document["metadata"]["name"]
        if name in PERMANENT:
            raise forbidden("", "namespaces", name, "this namespace may not be deleted")
