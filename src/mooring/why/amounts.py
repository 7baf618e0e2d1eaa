"""Amounts of resources as people write them: "200m", "1.5Gi", "3"."""

from __future__ import annotations

from mooring.objects.quantity import BINARY

IN_BYTES = ("memory", "ephemeral-storage")
MEBIBYTE = 2**20


def is_in_bytes(resource: str) -> bool:
    return resource in IN_BYTES or resource.startswith("hugepages-")


def shown(resource: str, amount: int) -> str:
    """For sentences: rounded to two digits behind the point."""
    if resource == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if not is_in_bytes(resource):
        return str(amount)
    for suffix, doublings in sorted(BINARY.items(), key=lambda each: -each[1]):
        if amount >= 2**doublings:
            return f"{amount / 2**doublings:.2f}".rstrip("0").rstrip(".") + suffix
    return str(amount)


def quantity(resource: str, amount: int) -> str:
    """For manifests: never more than the amount."""
    if not is_in_bytes(resource) or amount < MEBIBYTE:
        return shown(resource, amount) if resource == "cpu" else str(amount)
    mebibytes = amount // MEBIBYTE
    return f"{mebibytes // 1024}Gi" if mebibytes % 1024 == 0 else f"{mebibytes}Mi"
