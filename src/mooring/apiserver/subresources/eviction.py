"""Eviction: a deletion that asks the pod's disruption budget first."""

from __future__ import annotations

from mooring.apiserver.documents import Document, part
from mooring.apiserver.negotiation import checked_as
from mooring.apiserver.options import delete_options, write_options
from mooring.apiserver.registry import Deletion
from mooring.apiserver.status import Refused, success
from mooring.apiserver.strategies.workloads import selector_matches
from mooring.apiserver.subresources.base import Call, SubresourceHandler
from mooring.base.clock import timestamp

EVICTION = "io.k8s.api.policy.v1.Eviction"
BUDGETS = "poddisruptionbudgets.policy"
SOON_SECONDS = 10


class EvictionHandler(SubresourceHandler):
    def post(self, call: Call) -> Document:
        registry, route = call.registry, call.route
        options = part(checked_as(call.body, EVICTION, "Eviction"), "deleteOptions")
        pod = registry.stored(route.row, route.namespace, route.name).document
        dry_run = write_options(call.query).dry_run or delete_options(call.query, options).dry_run
        needs_budget = part(pod, "status").get("phase") not in ("Succeeded", "Failed", "Pending")
        if needs_budget and not part(pod, "metadata").get("deletionTimestamp"):
            self._spend(call, pod, dry_run)
        conditions = part(options, "preconditions")
        asked = Deletion(
            grace_seconds=options.get("gracePeriodSeconds"),
            uid=conditions.get("uid"),
            resource_version=conditions.get("resourceVersion"),
            dry_run=dry_run,
        )
        registry.delete(route.row, route.namespace, route.name, asked)
        return success() | {"code": 201}

    def _spend(self, call: Call, pod: Document, dry_run: bool) -> None:
        """Take one disruption from the pod's budget, or refuse."""
        store = call.registry.store
        namespace, labels = call.route.namespace, part(pod, "metadata", "labels")
        budgets = [
            budget
            for budget in store.list(BUDGETS, namespace)
            if (selector := part(budget, "spec").get("selector")) is not None and selector_matches(selector, labels)
        ]
        if not budgets:
            return
        if len(budgets) > 1:
            raise Refused(
                500,
                "InternalError",
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            )
        budget = budgets[0]
        name, status = budget["metadata"]["name"], part(budget, "status")
        if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
            why = f"The disruption budget {name} is still being processed by the server."
            raise _too_many(why, retry_after=SOON_SECONDS)
        allowed = status.get("disruptionsAllowed", 0)
        if allowed <= 0:
            raise _too_many(
                f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods and has"
                f" {status.get('currentHealthy', 0)} currently"
            )
        if dry_run:
            return
        current = store.stored(BUDGETS, namespace, name)
        assert current is not None
        disrupted = {
            **part(status, "disruptedPods"),
            pod["metadata"]["name"]: timestamp(call.registry.world.clock.now()),
        }
        changed = {**budget, "metadata": dict(budget["metadata"])}
        changed["status"] = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}
        store.update(BUDGETS, changed, current)


def _too_many(why: str, retry_after: int | None = None) -> Refused:
    """A client that is told when to try again does so in silence; kubectl must show that a budget is spent."""
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    causes = [{"reason": "DisruptionBudget", "message": why}]
    return Refused(429, "TooManyRequests", message, {"causes": causes}, retry_after=retry_after)
