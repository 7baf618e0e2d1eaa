"""The custom resource ElasticQuota (scheduling.x-k8s.io/v1alpha1), and which quota limits which namespace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from operator import is_not
from typing import Annotated

import msgspec

from mooring.framework import CustomResource, Meta, Objects, PodsWhere, ResourcePart
from mooring.objects.meta import KindColumn
from mooring.objects.quantity import BINARY, BadQuantity, QuantityField, milli, whole
from mooring.objects.requests import Amounts

Quantities = dict[str, QuantityField]


class ElasticQuotaSpec(ResourcePart):
    min: Annotated[Quantities | None, Meta(description="What the namespace is guaranteed.")] = None
    max: Annotated[Quantities | None, Meta(description="What it may use at most, borrowed from others included.")] = (
        None
    )


class ElasticQuotaStatus(ResourcePart):
    used: Quantities = {}


class ElasticQuota(
    CustomResource,
    group="scheduling.x-k8s.io",
    version="v1alpha1",
    plural="elasticquotas",
    approved="https://github.com/kubernetes-sigs/scheduler-plugins/pull/52",
    short_names=("eq", "eqs"),
    columns=(
        KindColumn("Used", "string", ".status.used"),
        KindColumn("Max", "string", ".spec.max"),
        KindColumn("Age", "date", ".metadata.creationTimestamp"),
    ),
):
    """What the pods of a namespace may use, and what of it is guaranteed."""

    spec: ElasticQuotaSpec = msgspec.field(default_factory=ElasticQuotaSpec)
    status: ElasticQuotaStatus = msgspec.field(default_factory=ElasticQuotaStatus)


@dataclass(frozen=True)
class Quota:
    """An ElasticQuota in the scheduler's units."""

    namespace: str
    name: str
    min: Amounts | None
    max: Amounts | None
    problem: str = ""
    """Why it cannot be used; "": it can."""
    counts_terminating: bool = False
    """Whether pods that are being deleted use it."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @cached_property
    def pods(self) -> PodsWhere:
        """Those that it limits."""
        return PodsWhere(namespaces=frozenset((self.namespace,)), terminating=self.counts_terminating)

    @classmethod
    def of(cls, quota: ElasticQuota, *, counts_terminating: bool = False) -> Quota:
        try:
            least, most = _amounts(quota.spec.min, "min"), _amounts(quota.spec.max, "max")
        except ValueError as problem:
            return cls(quota.namespace, quota.name, {}, {}, str(problem), counts_terminating)
        problem_with = _contradiction(quota.spec, least, most)
        return cls(quota.namespace, quota.name, least, most, problem_with, counts_terminating)


def _amounts(quantities: Quantities | None, what: str) -> Amounts | None:
    if quantities is None:
        return None
    amounts = {}
    for name, text in quantities.items():
        try:
            amounts[name] = milli(text) if name == "cpu" else whole(text)
        except BadQuantity as problem:
            raise ValueError(f"spec.{what}.{name}: {problem}") from problem
        if amounts[name] < 0:
            raise ValueError(f"spec.{what}.{name} is {text}: it must not be negative")
    return amounts


def _contradiction(spec: ElasticQuotaSpec, least: Amounts | None, most: Amounts | None) -> str:
    for name, amount in (least or {}).items():
        if most is not None and name in most and most[name] < amount:
            return f"spec.min.{name} is {(spec.min or {})[name]}, more than spec.max.{name} {(spec.max or {})[name]}"
    return ""


class Quotas:
    """All quotas; one counts per namespace."""

    def __init__(self, objects: Objects[ElasticQuota], *, is_compatible: bool = False) -> None:
        """`is_compatible`: pods that are being deleted count, and quotas that are impossible, too."""
        self._objects, self._is_compatible = objects, is_compatible
        self._version = -1
        self._read: list[ElasticQuota] = []
        self._by_namespace: dict[str, Quota] = {}
        self._ignored: dict[str, list[str]] = {}
        self.pods = PodsWhere(none=True)
        """Those of all namespaces with a quota that counts."""
        self.total_min: Amounts = {}

    def refresh(self) -> Mapping[str, Quota]:
        """By namespace, as of now."""
        if self._version != self._objects.version:
            self._version = self._objects.version
            before, self._read = self._read, list(self._objects.all())
            if not _are_alike(before, self._read):
                self._rebuild()
        return self._by_namespace

    def _rebuild(self) -> None:
        self._by_namespace, self._ignored, self.total_min = {}, {}, {}
        for quota in sorted(self._read, key=_age):
            if quota.namespace in self._by_namespace:
                self._ignored.setdefault(quota.namespace, []).append(quota.name)
            else:
                self._by_namespace[quota.namespace] = Quota.of(quota, counts_terminating=self._is_compatible)
        # What a namespace is guaranteed by mistake cannot be lent, and what it uses is not taken from others.
        counted = [each for each in self._by_namespace.values() if self._is_compatible or not each.problem]
        self.pods = PodsWhere(namespaces=frozenset(each.namespace for each in counted), terminating=self._is_compatible)
        for each in counted:
            for name, amount in (each.min or {}).items():
                self.total_min[name] = self.total_min.get(name, 0) + amount

    def ignored(self, namespace: str) -> Iterable[str]:
        """The other quotas of a namespace, which do not count."""
        return self._ignored.get(namespace, ())


def _are_alike(before: Sequence[ElasticQuota], now: Sequence[ElasticQuota]) -> bool:
    """Whether they differ in their status at most, which is written whenever a pod comes or goes."""
    if len(before) != len(now):
        return False
    changed = compress(zip(before, now, strict=True), map(is_not, before, now))
    return all(old.key == new.key and old.spec == new.spec and _age(old) == _age(new) for old, new in changed)


def _age(quota: ElasticQuota) -> tuple[str, str]:
    return quota.metadata.creation_timestamp or "", quota.name


def shown_amount(resource: str, amount: int) -> str:
    """For sentences: "2500m" of cpu, "1.5Gi" of memory, "3" of anything else."""
    if resource == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        for suffix, doublings in sorted(BINARY.items(), key=lambda each: -each[1]):
            if amount >= 2**doublings:
                return f"{amount / 2**doublings:.2f}".rstrip("0").rstrip(".") + suffix
    return str(amount)
