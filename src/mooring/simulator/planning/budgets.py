"""Which PodDisruptionBudgets object to evictions, by the rules of the Eviction API.

Where no controller has counted a budget's pods yet, as in a cluster file, its pods on nodes count as healthy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from mooring.objects import Pod
from mooring.objects.policy import PodDisruptionBudget
from mooring.simulated.controllers.disruption_budgets import UnknownScale, expected_and_desired
from mooring.simulated.records import BudgetRecord
from mooring.simulator.scenario import Cluster

SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_KEY = (PodDisruptionBudget.KIND.api_version, PodDisruptionBudget.KIND.kind)


class BudgetCheck(msgspec.Struct, frozen=True, rename="camel"):
    """A budget, and the pods that are to be evicted of those that it protects."""

    budget: str
    """Namespace and name."""
    disruptions_allowed: int
    pods: list[str]
    current_healthy: int
    desired_healthy: int

    @property
    def objects(self) -> bool:
        """It allows no eviction now."""
        return bool(self.pods) and self.disruptions_allowed < 1

    @property
    def must_wait(self) -> int:
        """So many pods are evicted only when others are healthy again."""
        return max(0, len(self.pods) - max(0, self.disruptions_allowed))

    @property
    def message(self) -> str:
        """In the words of the Eviction API."""
        name = self.budget.partition("/")[2]
        if self.current_healthy <= self.desired_healthy:
            needs = f"needs {self.desired_healthy} healthy pods and has {self.current_healthy} currently"
            return f"The disruption budget {name} {needs}"
        return f"The disruption budget {name} does not allow evicting pods currently"


def check_budgets(cluster: Cluster, evicted: Sequence[Pod]) -> tuple[list[BudgetCheck], dict[str, str]]:
    """The budgets that protect these pods, and pods that cannot be evicted at all with the reason."""
    budgets: defaultdict[str, list[BudgetRecord]] = defaultdict(list)
    for budget in _budgets(cluster):
        budgets[budget.namespace].append(budget)
    charged: defaultdict[str, list[str]] = defaultdict(list)
    refused: dict[str, str] = {}
    for pod in evicted:
        matching = [each for each in budgets[pod.namespace] if _selects(each, pod)]
        if len(matching) > 1 and _is_protected(pod, matching[0]):
            refused[pod.key] = SEVERAL
        elif matching and _is_protected(pod, matching[0]) and not _is_unhealthy_and_evictable(pod, matching[0]):
            charged[matching[0].key].append(pod.key)
    known = {budget.key: budget for group in budgets.values() for budget in group}
    return [_check(cluster, known[key], pods) for key, pods in sorted(charged.items())], refused


def _budgets(cluster: Cluster) -> Iterator[BudgetRecord]:
    documents: list[Any] = list(cluster.documents.get(_KEY, ()))
    documents += [msgspec.to_builtins(each) for each in cluster.objects if isinstance(each, PodDisruptionBudget)]
    for document in documents:
        yield msgspec.convert(document, BudgetRecord, strict=False)


def _selects(budget: BudgetRecord, pod: Pod) -> bool:
    return budget.spec.selector is not None and budget.spec.selector.matches(pod.labels)


def _is_counted(budget: BudgetRecord) -> bool:
    """The disruption controller has written its status."""
    return budget.status.observed_generation >= budget.metadata.generation


def _is_protected(pod: Pod, budget: BudgetRecord) -> bool:
    """A pod that does not run yet, or ends already, may always be evicted."""
    return not pod.is_terminating and (pod.status.phase != "Pending" or not _is_counted(budget))


def _is_unhealthy_and_evictable(pod: Pod, budget: BudgetRecord) -> bool:
    """A pod that is not ready may be evicted by the policy, or if there are enough healthy pods without it."""
    ready = pod.condition("Ready")
    if not _is_counted(budget) or (ready is not None and ready.status == "True"):
        return False
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    return 0 < budget.status.desired_healthy <= budget.status.current_healthy


def _check(cluster: Cluster, budget: BudgetRecord, pods: list[str]) -> BudgetCheck:
    status = budget.status
    if _is_counted(budget):
        return BudgetCheck(budget.key, status.disruptions_allowed, pods, status.current_healthy, status.desired_healthy)
    healthy = sum(
        bool(pod.spec.node_name) and not pod.is_terminating and _selects(budget, pod)
        for pod in cluster.pods
        if pod.namespace == budget.namespace
    )
    try:
        _, desired = expected_and_desired(budget, healthy, healthy)
    except UnknownScale:
        desired = healthy
    return BudgetCheck(budget.key, max(0, healthy - desired), pods, healthy, desired)
