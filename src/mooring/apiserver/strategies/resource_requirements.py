"""Defaulting and rounding of requests and limits.

The requests of a container default to its limits. Pod-level requests default to what the containers request together,
or else to the pod-level limits.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from mooring.apiserver.documents import Document, ensured, items_of
from mooring.apiserver.schema import canonical_quantity
from mooring.objects.quantity import exact, milli, notation

HUGE_PAGES = "hugepages-"
Quantities = dict[str, str]


def default_pod_amounts(spec: Document) -> None:
    """Defaults of a pod's requests and limits; templates have none."""
    for name in ("initContainers", "containers"):
        for container in items_of(spec, name):
            _requests_from_limits(container.get("resources"))
    if isinstance(whole := spec.get("resources"), dict):
        _limit_huge_pages(whole, spec)
        _request_as_a_whole(whole, spec)


def round_up(quantities: Any) -> None:
    """Round up to thousandths: the API stores no finer quantity of a resource."""
    if isinstance(quantities, dict):
        for name, text in quantities.items():
            if isinstance(text, str) and (text[-1:] in ("u", "n") or "e-" in text):
                quantities[name] = canonical_quantity(f"{milli(text)}m")


def round_requirements(resources: Any) -> None:
    if isinstance(resources, dict):
        round_up(resources.get("requests"))
        round_up(resources.get("limits"))


def _requests_from_limits(resources: Any) -> None:
    if isinstance(resources, dict) and resources.get("limits"):
        requests = ensured(resources, "requests")
        for resource, limit in resources["limits"].items():
            requests.setdefault(resource, limit)


def _limit_huge_pages(whole: Document, spec: Document) -> None:
    if not whole.get("limits") and not whole.get("requests"):
        return
    requested = whole.get("requests") or {}
    for resource, total in _together(spec, "limits").items():
        if resource.startswith(HUGE_PAGES) and resource not in requested:
            ensured(whole, "limits").setdefault(resource, total)


def _request_as_a_whole(whole: Document, spec: Document) -> None:
    if not (limits := whole.get("limits")):
        return
    requests = dict(whole.get("requests") or {})
    for resource, total in _together(spec, "requests").items():
        if resource in ("cpu", "memory"):
            requests.setdefault(resource, total)
    for resource, limit in limits.items():
        if resource in ("cpu", "memory") or resource.startswith(HUGE_PAGES):
            requests.setdefault(resource, limit)
    if requests:
        whole["requests"] = requests


def _together(spec: Document, field: str) -> Quantities:
    """The aggregate over containers: regular ones with sidecars, or an init container with the sidecars before it."""

    def of(container: Document) -> Quantities:
        return dict((container.get("resources") or {}).get(field) or {})

    running: Quantities = {}
    for container in items_of(spec, "containers"):
        _merge(running, of(container), _sum)
    sidecars: Quantities = {}
    peak: Quantities = {}
    for container in items_of(spec, "initContainers"):
        own = of(container)
        if container.get("restartPolicy") == "Always":
            _merge(running, own, _sum)
            _merge(sidecars, own, _sum)
            own = dict(sidecars)
        else:
            _merge(own, sidecars, _sum)
        _merge(peak, own, _greater)
    _merge(running, peak, _greater)
    return running


def _merge(total: Quantities, more: Quantities, combined: Callable[[str, str], str]) -> None:
    for resource, text in more.items():
        total[resource] = combined(total[resource], text) if resource in total else text


def _greater(one: str, other: str) -> str:
    return other if exact(other) > exact(one) else one


def _sum(one: str, other: str) -> str:
    """Written in the family (binary or decimal) of the first, unless that is zero."""
    value = exact(one) + exact(other)
    is_binary = bool(notation(one if exact(one) else other).doublings)
    scale = 1024 if is_binary else 1
    number = Decimal(value.numerator) / Decimal(value.denominator * scale)
    return canonical_quantity(f"{number:f}{'Ki' if is_binary else ''}")
