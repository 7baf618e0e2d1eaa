"""Ingress to the serving port: a NetworkPolicy for metrics scrapers, and for nodes where they must be listed.

A policy selects pods by label and addresses by CIDR. Most network plugins let traffic of the kubelet on the pod's own
node pass under any policy; where one does not, the addresses of nodes must be listed. Only ingress is restricted: the
API server's address is not known here.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mooring.base.errors import Problem
from mooring.deploy.writing import Document
from mooring.objects.names import dns_label, label_value, qualified_name

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""Every namespace has this label with its own name."""
METRICS_FROM, PROBES_FROM = "--metrics-from", "--probes-from"


@dataclass(frozen=True)
class Scraper:
    """Pods that may read metrics: all of a namespace, or those with these labels."""

    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)

    def peer(self) -> Document:
        peer: Document = {"namespaceSelector": {"matchLabels": {NAMESPACE_NAME: self.namespace}}}
        if self.labels:
            peer["podSelector"] = {"matchLabels": dict(self.labels)}
        return peer


@dataclass(frozen=True)
class Ingress:
    """Sources that may connect. Without any: only what the network plugin always lets through."""

    scrapers: tuple[Scraper, ...] = (Scraper("monitoring"),)
    nodes: tuple[str, ...] = ()
    """CIDRs."""

    @property
    def peers(self) -> list[Document]:
        return [each.peer() for each in self.scrapers] + [{"ipBlock": {"cidr": each}} for each in self.nodes]

    def spec(self, selector: Mapping[str, str], port: int) -> Document:
        rule = {"from": self.peers, "ports": [{"protocol": "TCP", "port": port}]}
        return {
            "podSelector": {"matchLabels": dict(selector)},
            "policyTypes": ["Ingress"],
            # A rule without peers would let everything in; no rule lets nothing in.
            "ingress": [rule] if self.peers else [],
        }


def ingress_of(metrics_from: Sequence[str], probes_from: Sequence[str]) -> tuple[Ingress, list[Problem]]:
    """What the flags request, and what is wrong with them. `--metrics-from ""` lets no scraper in."""
    problems: list[Problem] = []
    scrapers = tuple(_scraper(text, problems) for text in metrics_from if text)
    problems += [
        Problem(PROBES_FROM, f"must be a network such as 10.0.0.0/16, got {text!r}")
        for text in probes_from
        if not _is_network(text)
    ]
    found = Ingress(scrapers, tuple(probes_from)) if metrics_from else Ingress(nodes=tuple(probes_from))
    return found, problems


def _is_network(text: str) -> bool:
    """Whether the API server accepts it as a CIDR: Python reads an address alone and netmasks too."""
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return text.partition("/")[2].isdecimal()


def _scraper(text: str, problems: list[Problem]) -> Scraper:
    namespace, slash, selector = text.partition("/")
    wrong = list(dns_label(namespace))
    labels: dict[str, str] = {}
    for pair in selector.split(",") if slash else ():
        key, equals, value = pair.partition("=")
        if not equals:
            wrong.append(f"{pair!r} is not a label with its value")
        wrong += qualified_name(key) + label_value(value)
        labels[key] = value
    if wrong:
        form = "NAMESPACE or NAMESPACE/LABEL=VALUE,…, such as monitoring/app.kubernetes.io/name=prometheus"
        problems.append(Problem(METRICS_FROM, f"must be {form}, got {text!r}: {'; '.join(wrong)}"))
    return Scraper(namespace, labels)
