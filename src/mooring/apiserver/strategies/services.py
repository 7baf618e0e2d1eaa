"""Services: addresses from the cluster's range, and the defaults of their ports."""

from __future__ import annotations

import ipaddress

from mooring.apiserver.documents import Document, items_of, part
from mooring.apiserver.status import FieldError, invalid_value, required, unsupported
from mooring.apiserver.strategies.base import Strategy, StrategyContext, set_default, set_text, spec_of, text_at
from mooring.objects.names import dns1035_label

CLUSTER_RANGE = ipaddress.ip_network("10.96.0.0/12")
NODE_PORTS = range(30_000, 32_768)
TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")


class ServiceStrategy(Strategy):
    has_status = True
    fields = {"spec.clusterIP": text_at("spec", "clusterIP"), "spec.type": text_at("spec", "type")}

    def name_rule(self, name: str) -> list[str]:
        return dns1035_label(name)

    def default(self, document: Document, context: StrategyContext) -> None:
        spec = spec_of(document)
        set_text(spec, "type", "ClusterIP")
        set_text(spec, "sessionAffinity", "None")
        if spec["sessionAffinity"] == "None":
            spec.pop("sessionAffinityConfig", None)
        elif not part(spec, "sessionAffinityConfig", "clientIP").get("timeoutSeconds"):
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10_800}}
        if spec["type"] != "ExternalName":
            set_default(spec, "internalTrafficPolicy", "Cluster")
            # Without a selector and an address of its own, a service may have endpoints of both families.
            is_open = spec.get("clusterIP") == "None" and not spec.get("selector")
            set_default(spec, "ipFamilyPolicy", "RequireDualStack" if is_open else "SingleStack")
            set_default(spec, "ipFamilies", ["IPv4", "IPv6"] if is_open else ["IPv4"])
        if spec["type"] in ("NodePort", "LoadBalancer") or (spec["type"] == "ClusterIP" and spec.get("externalIPs")):
            set_text(spec, "externalTrafficPolicy", "Cluster")
        if spec["type"] == "LoadBalancer":
            set_default(spec, "allocateLoadBalancerNodePorts", True)
        for port in items_of(spec, "ports"):
            set_text(port, "protocol", "TCP")
            if port.get("targetPort") in (None, 0, ""):
                port["targetPort"] = port.get("port")

    def admit(self, document: Document, context: StrategyContext) -> None:
        self._allocate(document, context)

    def prepare_update(self, document: Document, old: Document, context: StrategyContext) -> None:
        super().prepare_update(document, old, context)
        then = part(old, "spec")
        for field in ("clusterIP", "clusterIPs"):
            if then.get(field) and not document["spec"].get(field) and document["spec"]["type"] != "ExternalName":
                document["spec"][field] = then[field]
        self._allocate(document, context)

    def _allocate(self, document: Document, context: StrategyContext) -> None:
        spec = document["spec"]
        if spec["type"] == "ExternalName":
            return
        others = [part(each, "spec") for each in context.store.list("services")]
        if not spec.get("clusterIP"):
            taken = {each.get("clusterIP") for each in others}
            hosts = CLUSTER_RANGE.hosts()
            # The first address is that of the `kubernetes` service, as everywhere.
            spec["clusterIP"] = next(str(host) for host in hosts if str(host) not in taken)
        set_default(spec, "clusterIPs", [spec["clusterIP"]])
        if spec["type"] in ("NodePort", "LoadBalancer"):
            used = {port.get("nodePort") for each in others for port in items_of(each, "ports")}
            for port in items_of(spec, "ports"):
                if not port.get("nodePort"):
                    port["nodePort"] = next(number for number in NODE_PORTS if number not in used)
                used.add(port["nodePort"])
            is_local = spec["type"] == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"
            if is_local and not spec.get("healthCheckNodePort"):
                used |= {each.get("healthCheckNodePort") for each in others}
                spec["healthCheckNodePort"] = next(number for number in NODE_PORTS if number not in used)

    def initial_status(self, document: Document) -> Document:
        return {"loadBalancer": {}}

    def validate(self, document: Document, context: StrategyContext) -> list[FieldError]:
        spec = document["spec"]
        errors: list[FieldError] = []
        if spec["type"] not in TYPES:
            errors.append(unsupported("spec.type", spec["type"], TYPES))
        ports = items_of(spec, "ports")
        if not ports and spec["type"] != "ExternalName" and spec.get("clusterIP") != "None":
            errors.append(required("spec.ports"))
        for index, port in enumerate(ports):
            if not 1 <= port.get("port", 0) <= 65535:
                why = "must be between 1 and 65535, inclusive"
                errors.append(invalid_value(f"spec.ports[{index}].port", port.get("port", 0), why))
            if len(ports) > 1 and not port.get("name"):
                errors.append(required(f"spec.ports[{index}].name"))
        return errors

    def validate_update(self, document: Document, old: Document, context: StrategyContext) -> list[FieldError]:
        errors = self.validate(document, context)
        now, then = document["spec"].get("clusterIP"), part(old, "spec").get("clusterIP")
        if then and now != then and document["spec"]["type"] != "ExternalName":
            errors.append(invalid_value("spec.clusterIPs[0]", now, "may not change once set"))
        return errors
