"""ConfigMaps and Secrets: data that `immutable` freezes."""

from __future__ import annotations

import base64

from mooring.apiserver.documents import Document, ensured
from mooring.apiserver.status import FieldError, forbidden_field, invalid_value
from mooring.apiserver.strategies.base import Strategy, StrategyContext, set_text, text_at


class ConfigMapStrategy(Strategy):
    def validate_update(self, document: Document, old: Document, context: StrategyContext) -> list[FieldError]:
        return _immutable_data(document, old)


class SecretStrategy(Strategy):
    fields = {"type": text_at("type")}

    def default(self, document: Document, context: StrategyContext) -> None:
        set_text(document, "type", "Opaque")
        plain = document.pop("stringData", None)
        if plain:
            data = ensured(document, "data")
            for key, value in plain.items():
                data[key] = base64.b64encode(value.encode()).decode()

    def validate_update(self, document: Document, old: Document, context: StrategyContext) -> list[FieldError]:
        if document.get("type") != old.get("type"):
            return [invalid_value("type", document.get("type"), "field is immutable")]
        return _immutable_data(document, old)


def _immutable_data(document: Document, old: Document) -> list[FieldError]:
    if old.get("immutable"):
        return [
            forbidden_field(field, "field is immutable when `immutable` is set")
            for field in ("data", "binaryData", "immutable")
            if document.get(field) != old.get(field)
        ]
    return []
