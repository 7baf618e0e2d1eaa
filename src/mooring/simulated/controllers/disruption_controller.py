"""The disruption controller: writes the status of PodDisruptionBudgets, which evictions and preemption read.

`disruption_budgets` computes the status.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from mooring.base.clock import Clock
from mooring.base.errors import ApiError, Fault
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.client.core_event_recorder import CoreEventRecorder, EventSource
from mooring.client.informer import Informer
from mooring.client.rest_mapper import RestMapper
from mooring.client.work_queue import WorkQueue
from mooring.objects.meta import OwnerReference
from mooring.objects.selectors import LabelSelector
from mooring.simulated.controllers.disruption_budgets import (
    UnknownScale,
    budget_status,
    failed_status,
    needs_scale,
    overdue,
    seconds_until_overdue,
    still_expected,
)
from mooring.simulated.controllers.pod_control import report_status
from mooring.simulated.controllers.workload_records import Deployment, ReplicaSet, StatefulSet
from mooring.simulated.records import BudgetRecord, PodRecord, controller_of

_SOURCE = EventSource("controllermanager")
_MAX_NAMES = 5


@dataclass
class _SelectedPods:
    """The keys of the pods that a budget selects."""

    selector: LabelSelector | None
    pods: set[str] = field(default_factory=set)

    def selects(self, pod: PodRecord) -> bool:
        return self.selector is not None and self.selector.matches(pod.labels)


class DisruptionController:
    """Keeps the status of every PodDisruptionBudget."""

    def __init__(
        self,
        client: ApiClient,
        budgets: Informer[BudgetRecord],
        pods: Informer[PodRecord],
        deployments: Informer[Deployment],
        replica_sets: Informer[ReplicaSet],
        stateful_sets: Informer[StatefulSet],
        rest_mapper: RestMapper,
        events: CoreEventRecorder,
        *,
        clock: Clock,
    ) -> None:
        self._client = client
        self._budgets = budgets
        self._pods = pods
        self._deployments = deployments
        self._replica_sets = replica_sets
        self._stateful_sets = stateful_sets
        self._rest_mapper = rest_mapper
        self._events = events
        self._clock = clock
        self._selections: defaultdict[str, dict[str, _SelectedPods]] = defaultdict(dict)
        """By namespace and the budget's key."""
        self._reported: dict[str, tuple[str, str]] = {}
        """By the budget's uid: the last event. Each is recorded once, not with every change of a pod."""
        self._queue = WorkQueue("poddisruptionbudget", self._sync, clock=clock, log=Log("disruption"), workers=8)
        budgets.subscribe(changed=self._budget_changed, deleted=self._budget_deleted)
        pods.subscribe(changed=self._pod_changed, deleted=self._pod_deleted)

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"disruption budgets": self._queue.run}

    # Event handlers.

    def _budget_changed(self, budget: BudgetRecord) -> None:
        selections = self._selections[budget.namespace]
        known = selections.get(budget.key)
        if known is None or known.selector != budget.spec.selector:
            selection = selections[budget.key] = _SelectedPods(budget.spec.selector)
            selection.pods = {
                pod.key for pod in self._pods.all() if pod.namespace == budget.namespace and selection.selects(pod)
            }
        self._queue.add(budget.key)

    def _budget_deleted(self, budget: BudgetRecord) -> None:
        self._reported.pop(budget.uid, None)
        selections = self._selections[budget.namespace]
        selections.pop(budget.key, None)
        if not selections:
            del self._selections[budget.namespace]

    def _pod_changed(self, pod: PodRecord) -> None:
        """A pod whose labels changed concerns the budgets that selected it before, too."""
        for key, selection in self._selections.get(pod.namespace, {}).items():
            if selection.selects(pod):
                selection.pods.add(pod.key)
                self._queue.add(key)
            elif pod.key in selection.pods:
                selection.pods.discard(pod.key)
                self._queue.add(key)

    def _pod_deleted(self, pod: PodRecord) -> None:
        for key, selection in self._selections.get(pod.namespace, {}).items():
            if pod.key in selection.pods:
                selection.pods.discard(pod.key)
                self._queue.add(key)

    # One budget.

    async def _sync(self, key: str) -> None:
        budget = self._budgets.get(key)
        selection = self._selections.get(key.partition("/")[0], {}).get(key)
        if budget is None or selection is None:
            return
        try:
            await self._count(budget, selection)
        except Fault as error:
            if isinstance(error, ApiError) and error.code == 409:
                raise  # an eviction was admitted meanwhile: sync again
            self._record(budget, "CalculateExpectedPodCountFailed", f"Cannot count the expected pods: {error}")
            await report_status(
                self._client,
                self._budgets,
                budget,
                budget.status,
                failed_status(budget, str(error), self._clock.now()),
                replaces=True,
            )
            if not isinstance(error, UnknownScale):
                raise

    async def _count(self, budget: BudgetRecord, selection: _SelectedPods) -> None:
        managed = self._selected(selection) if needs_scale(budget) else []
        scale, unmanaged = await self._expected_scale(managed)
        pods, now = self._selected(selection), self._clock.now()
        if not pods:
            self._record(budget, "NoPods", "No matching pods found", warning=False)
        elif unmanaged:
            self._record_unmanaged(budget, unmanaged)
        else:
            self._reported.pop(budget.uid, None)
        for pod in overdue(budget, pods, now):
            message = f"Pod was expected by PDB {budget.key} to be deleted but it wasn't"
            self._events.record(pod, _SOURCE, "NotDeleted", message, warning=True)
        status = budget_status(budget, pods, scale, now)
        await report_status(self._client, self._budgets, budget, budget.status, status, replaces=True)
        wait = seconds_until_overdue(still_expected(budget, pods, now), now)
        if wait is not None:
            self._queue.add_after(budget.key, wait)

    def _selected(self, selection: _SelectedPods) -> list[PodRecord]:
        return [pod for key in sorted(selection.pods) if (pod := self._pods.get(key)) is not None]

    async def _expected_scale(self, pods: Sequence[PodRecord]) -> tuple[int, list[str]]:
        """The total scale of the pods' controllers, and the names of pods without one, which do not count."""
        scales: dict[str, int] = {}
        looked_up: set[str] = set()
        unmanaged: list[str] = []
        for pod in pods:
            owner = next((each for each in pod.metadata.owner_references if each.controller), None)
            if owner is None:
                unmanaged.append(pod.name)
            elif owner.uid not in looked_up:
                looked_up.add(owner.uid)
                found = self._watched_scale(pod.namespace, owner) or await self._served_scale(pod.namespace, owner)
                if found is None:
                    raise UnknownScale(f'found no controllers for pod "{pod.name}"')
                scales[found[0]] = found[1]
        return sum(scales.values()), unmanaged

    def _watched_scale(self, namespace: str, owner: OwnerReference) -> tuple[str, int] | None:
        """The uid and replicas of a controller of the kinds watched here; of a Deployment for its ReplicaSets."""
        if owner.api_version.partition("/")[0] != "apps":
            return None
        key = f"{namespace}/{owner.name}"
        if owner.kind == "StatefulSet":
            found = self._stateful_sets.get(key)
            return (found.uid, found.spec.replicas) if found is not None and found.uid == owner.uid else None
        replica_set = self._replica_sets.get(key) if owner.kind == "ReplicaSet" else None
        if replica_set is None or replica_set.uid != owner.uid:
            return None
        parent = controller_of(replica_set)
        if parent is not None and parent[0] == "Deployment":
            deployment = self._deployments.get(f"{namespace}/{parent[1]}")
            if deployment is not None and deployment.uid == parent[2]:
                return deployment.uid, deployment.spec.replicas
        return replica_set.uid, replica_set.spec.replicas

    async def _served_scale(self, namespace: str, owner: OwnerReference) -> tuple[str, int] | None:
        """The same of any other kind, by its scale subresource; None: the controller does not exist."""
        kind = await self._rest_mapper.kind(owner.api_version, owner.kind)
        try:
            scale = await self._client.get(kind, owner.name, namespace, subresource="scale")
        except ApiError as error:
            if error.code != 404:
                raise
            if await self._exists(namespace, owner):
                qualified = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
                raise UnknownScale(f"{qualified} does not implement the scale subresource") from None
            return None
        if scale["metadata"].get("uid") != owner.uid:
            return None
        return owner.uid, int((scale.get("spec") or {}).get("replicas") or 0)

    async def _exists(self, namespace: str, owner: OwnerReference) -> bool:
        kind = await self._rest_mapper.kind(owner.api_version, owner.kind)
        try:
            await self._client.get(kind, owner.name, namespace)
        except ApiError as error:
            if error.code != 404:
                raise
            return False
        return True

    def _record_unmanaged(self, budget: BudgetRecord, names: Sequence[str]) -> None:
        listed = ", ".join(names[:_MAX_NAMES]) + (", ..." if len(names) > _MAX_NAMES else "")
        message = (
            f"Selected pods have no controller and do not count as expected: {listed}."
            " Set .spec.minAvailable to an integer to count them"
        )
        self._record(budget, "UnmanagedPods", message)

    def _record(self, budget: BudgetRecord, reason: str, message: str, *, warning: bool = True) -> None:
        if self._reported.get(budget.uid) != (reason, message):
            self._reported[budget.uid] = reason, message
            self._events.record(budget, _SOURCE, reason, message, warning=warning)
