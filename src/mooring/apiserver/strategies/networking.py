"""Endpoints, EndpointSlices, NetworkPolicies and Ingresses. They are stored; the embedded cluster has no network."""

from __future__ import annotations

from mooring.apiserver.documents import Document, items_of, part
from mooring.apiserver.strategies.base import (
    Strategy,
    StrategyContext,
    set_default,
    set_text,
    spec_of,
    stored_only_warning,
)


class EndpointsStrategy(Strategy):
    def default(self, document: Document, context: StrategyContext) -> None:
        for subset in items_of(document, "subsets"):
            for port in items_of(subset, "ports"):
                set_text(port, "protocol", "TCP")


class EndpointSliceStrategy(Strategy):
    has_generation = True

    def generation_content(self, document: Document) -> object:
        return document.get("endpoints"), document.get("ports")

    def default(self, document: Document, context: StrategyContext) -> None:
        for port in items_of(document, "ports"):
            set_default(port, "name", "")
            set_default(port, "protocol", "TCP")


class NetworkPolicyStrategy(Strategy):
    has_generation = True
    warning_on_create = stored_only_warning("NetworkPolicies", "has no network")

    def default(self, document: Document, context: StrategyContext) -> None:
        spec = spec_of(document)
        rules = items_of(spec, "ingress") + items_of(spec, "egress")
        for port in (port for rule in rules for port in items_of(rule, "ports")):
            set_default(port, "protocol", "TCP")
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if items_of(spec, "egress") else ["Ingress"]


class IngressStrategy(Strategy):
    has_status = True
    has_generation = True
    warning_on_create = stored_only_warning("Ingresses", "routes no requests")

    def initial_status(self, document: Document) -> Document:
        return {"loadBalancer": {}}


class IngressClassStrategy(Strategy):
    has_generation = True

    def default(self, document: Document, context: StrategyContext) -> None:
        if parameters := part(document, "spec", "parameters"):
            set_default(parameters, "scope", "Cluster")
