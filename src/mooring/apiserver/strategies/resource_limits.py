"""ResourceQuotas and LimitRanges. They are defaulted and stored; the embedded server does not enforce them."""

from __future__ import annotations

from mooring.apiserver.documents import Document, ensured, items_of, part
from mooring.apiserver.strategies.base import Strategy, StrategyContext, stored_only_warning


class ResourceQuotaStrategy(Strategy):
    has_status = True
    warning_on_create = stored_only_warning("ResourceQuotas", "does not enforce them")


class LimitRangeStrategy(Strategy):
    warning_on_create = stored_only_warning("LimitRanges", "does not enforce them")
    nullable = frozenset(["spec.limits"])

    def default(self, document: Document, context: StrategyContext) -> None:
        for limit in items_of(part(document, "spec"), "limits"):
            if limit.get("type") == "Container":
                default, request = ensured(limit, "default"), ensured(limit, "defaultRequest")
                for target, source in ((default, "max"), (request, "default"), (request, "min")):
                    for resource, amount in part(limit, source).items():
                        target.setdefault(resource, amount)
