"""Nodes. A kubelet creates them with their status."""

from __future__ import annotations

from mooring.apiserver.documents import Document, ensured, part
from mooring.apiserver.status import FieldError
from mooring.apiserver.strategies.base import Strategy, StrategyContext, set_default, spec_of
from mooring.apiserver.strategies.resource_requirements import round_up
from mooring.apiserver.validation.node import check_node


class NodeStrategy(Strategy):
    has_status = True
    keeps_status_at_creation = True
    checks_required = False
    fields = {"spec.unschedulable": lambda node: "true" if part(node, "spec").get("unschedulable") else "false"}

    def default(self, document: Document, context: StrategyContext) -> None:
        spec_of(document)
        status = ensured(document, "status")
        # Allocatable defaults to capacity.
        if status.get("capacity") and not status.get("allocatable"):
            status["allocatable"] = dict(status["capacity"])
        if not spec_of(document).get("unschedulable"):
            document["spec"].pop("unschedulable", None)
        round_up(status.get("capacity"))
        round_up(status.get("allocatable"))
        if spec_of(document).get("podCIDR"):
            set_default(document["spec"], "podCIDRs", [document["spec"]["podCIDR"]])
        set_default(status, "daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})

    def validate(self, document: Document, context: StrategyContext) -> list[FieldError]:
        return check_node(document)

    def validate_status(self, document: Document, old: Document, context: StrategyContext) -> list[FieldError]:
        return check_node(document)
