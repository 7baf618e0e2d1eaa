"""What pods use of their quotas, and whether more would be too much.

Sums are standing ones of the state: no pod is visited for a decision. They follow the evictions of a what-if.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from mooring.framework import Cycle, PlacedPod, Pod, Pods, PodsWhere
from mooring.objects.requests import Amounts, PodRequests
from mooring.plugins.community.capacity_scheduling.quotas import Quota, Quotas

PODS = "pods"
NATIVE = ("cpu", "memory", "ephemeral-storage")
UNLIMITED = 2**63 - 1


class Rules(Protocol):
    """What a quota means for resources that it does not name, and which are compared."""

    def requested(self, pod: Pod | PlacedPod) -> Amounts: ...
    def least(self, quota: Quota, resource: str) -> int: ...
    def most(self, quota: Quota, resource: str) -> int: ...
    def total_least(self, quotas: Quotas, resource: str) -> int: ...
    def compared(self, wanted: Mapping[str, int]) -> Iterable[str]:
        """The resources in which a pod that wants this may exceed a quota."""
        ...

    def shared(self, pods: PodsWhere, wanted: Mapping[str, int]) -> Iterable[str]:
        """The resources of which these pods may use more than is guaranteed, as far as one that wants this cares."""
        ...


class OurRules:
    """A resource that no quota guarantees is not accounted for; one that max does not name is not limited.

    Only what a pod requests can be too much. `pods` counts pods.
    """

    def __init__(self) -> None:
        self._last: tuple[PodRequests | None, Amounts] = (None, {})

    def requested(self, pod: Pod | PlacedPod) -> Amounts:
        requests = pod.requests
        if self._last[0] is not requests:  # one object for all pods of a template
            amounts = {resource: amount for resource, amount in requests.amounts.items() if amount}
            self._last = requests, {**amounts, PODS: 1}
        return self._last[1]

    def least(self, quota: Quota, resource: str) -> int:
        return (quota.min or {}).get(resource, 0)

    def most(self, quota: Quota, resource: str) -> int:
        return (quota.max or {}).get(resource, UNLIMITED)

    def total_least(self, quotas: Quotas, resource: str) -> int:
        return quotas.total_min.get(resource, UNLIMITED)

    def compared(self, wanted: Mapping[str, int]) -> Iterable[str]:
        return wanted

    def shared(self, pods: PodsWhere, wanted: Mapping[str, int]) -> Iterable[str]:
        return wanted


class RecordedRules:
    """As scheduler-plugins: cpu, memory and ephemeral-storage that a list does not name are 0, also in max."""

    def __init__(self, pods: Pods) -> None:
        self._pods = pods

    def requested(self, pod: Pod | PlacedPod) -> Amounts:
        return dict(pod.requests.amounts)

    def least(self, quota: Quota, resource: str) -> int:
        return (quota.min or {}).get(resource, 0)

    def most(self, quota: Quota, resource: str) -> int:
        if quota.max is None:
            return UNLIMITED
        return quota.max.get(resource, 0 if resource in NATIVE else UNLIMITED)

    def total_least(self, quotas: Quotas, resource: str) -> int:
        return quotas.total_min.get(resource, 0)

    def compared(self, wanted: Mapping[str, int]) -> Iterable[str]:
        return {**dict.fromkeys(NATIVE), **wanted}

    def shared(self, pods: PodsWhere, wanted: Mapping[str, int]) -> Iterable[str]:
        # Everything that they use, also what no pod wants: that is why this costs a visit to each of them.
        used = (name for pod in self._pods.placed(pods) for name in pod.requests.amounts)
        return dict.fromkeys((*NATIVE, *wanted, *used))


class Limits:
    """What the sums of others may be at most where a pod comes, resource by resource.

    Pods of a template come one after the other: their limits are computed once per namespace.
    """

    def __init__(self, quotas: Quotas, rules: Rules) -> None:
        self._quotas, self._rules = quotas, rules
        self._by_namespace: dict[str, tuple[Quota, PodRequests, list[tuple[PodsWhere, str, int]]]] = {}

    def of(self, quota: Quota, pod: Pod) -> Sequence[tuple[PodsWhere, str, int]]:
        """The pods whose requests are summed up, the resource, and the most that they may request of it."""
        known = self._by_namespace.get(quota.namespace)
        requests = pod.requests
        if known is None or known[0] is not quota or known[1] is not requests:
            if len(self._by_namespace) > len(self._quotas.refresh()):
                self._by_namespace.clear()
            known = self._by_namespace[quota.namespace] = quota, requests, list(self._read(quota, pod))
        return known[2]

    def _read(self, quota: Quota, pod: Pod) -> Iterator[tuple[PodsWhere, str, int]]:
        rules, quotas = self._rules, self._quotas
        for resource, amount in rules.requested(pod).items():
            if (most := rules.most(quota, resource)) != UNLIMITED:
                yield quota.pods, resource, most - amount
            if (total := rules.total_least(quotas, resource)) != UNLIMITED:
                yield quotas.pods, resource, total - amount


class Usage:
    """Of one cycle: what is used now, and what a pod adds."""

    def __init__(self, cycle: Cycle, quotas: Quotas, rules: Rules) -> None:
        self._cycle, self._quotas, self._rules = cycle, quotas, rules
        self._left_out: dict[str, Amounts] = {}
        """By namespace."""
        self._all_left_out: Amounts = {}

    def leave_out(self, pods: Iterable[PlacedPod]) -> None:
        """From now on, what these pods use does not count. They are on their nodes still."""
        self._left_out, self._all_left_out = {}, {}
        for pod in pods:
            self.leave_out_also(pod)

    def leave_out_also(self, pod: PlacedPod, sign: int = 1) -> None:
        """This one, too; or not any more (-1)."""
        quota = self._quotas.refresh().get(pod.namespace)
        if quota is None or quota.problem:
            return
        left_out = self._left_out.setdefault(pod.namespace, {})
        for resource, amount in self._rules.requested(pod).items():
            left_out[resource] = left_out.get(resource, 0) + sign * amount
            self._all_left_out[resource] = self._all_left_out.get(resource, 0) + sign * amount

    @property
    def is_any_left_out(self) -> bool:
        return bool(self._left_out)

    def used(self, quota: Quota, resource: str) -> int:
        used = self._cycle.total(quota.pods, resource)
        if self._left_out and (left_out := self._left_out.get(quota.namespace)) is not None:
            return used - left_out.get(resource, 0)
        return used

    def used_by_all(self, resource: str) -> int:
        return self._cycle.total(self._quotas.pods, resource) - self._all_left_out.get(resource, 0)

    def exceeds_max(self, quota: Quota, added: Mapping[str, int]) -> bool:
        rules = self._rules
        for resource in rules.compared(added):
            most = rules.most(quota, resource)
            if most != UNLIMITED and self.used(quota, resource) + added.get(resource, 0) > most:
                return True
        return False

    def exceeds_min(self, quota: Quota, added: Mapping[str, int]) -> bool:
        """Whether the namespace would borrow."""
        rules, quotas = self._rules, self._quotas
        return any(
            self.used(quota, resource) + added.get(resource, 0) > rules.least(quota, resource)
            for resource in rules.compared(added)
            if rules.total_least(quotas, resource) != UNLIMITED
        )

    def exceeds_total(self, added: Mapping[str, int]) -> bool:
        """Whether all namespaces together would use more than they are guaranteed."""
        rules, quotas = self._rules, self._quotas
        for resource in rules.shared(quotas.pods, added):
            total = rules.total_least(quotas, resource)
            if total != UNLIMITED and self.used_by_all(resource) + added.get(resource, 0) > total:
                return True
        return False

    def borrowing(self, quota: Quota, wanted: Mapping[str, int], without: Mapping[str, int]) -> bool:
        """Whether it uses more than its min of anything that is wanted, even without these amounts."""
        rules, quotas = self._rules, self._quotas
        return any(
            self.used(quota, resource) - without.get(resource, 0) > rules.least(quota, resource)
            for resource in rules.shared(quota.pods, wanted)
            if rules.total_least(quotas, resource) != UNLIMITED
        )


def plus(one: Mapping[str, int], other: Mapping[str, int]) -> Amounts:
    sums = dict(one)
    for name, amount in other.items():
        sums[name] = sums.get(name, 0) + amount
    return sums
