"""Eviction: a deletion that a PodDisruptionBudget must allow."""

from __future__ import annotations

from mooring.apiserver.documents import Document, items_of, part
from mooring.apiserver.negotiation import decode_as
from mooring.apiserver.options import DeleteOptions, delete_options, write_options
from mooring.apiserver.registry import check_preconditions
from mooring.apiserver.status import StatusError, bad_request, forbidden, success
from mooring.apiserver.strategies.workloads import selector_matches
from mooring.apiserver.subresources.base import SubresourceHandler, SubresourceRequest
from mooring.base.clock import timestamp

EVICTION = "io.k8s.api.policy.v1.Eviction"
BUDGETS = "poddisruptionbudgets.policy"
DISRUPTION_ALLOWED = "DisruptionAllowed"
SOON_SECONDS = 10
MAX_DISRUPTED_PODS = 2000
"""Admitted evictions that the disruption controller has not processed yet, at most."""


class EvictionHandler(SubresourceHandler):
    def post(self, call: SubresourceRequest) -> Document:
        registry, route = call.registry, call.route
        eviction = decode_as(call.body, EVICTION, "Eviction")
        if part(eviction, "metadata").get("name", route.name) != route.name:
            raise bad_request("name in URL does not match name in Eviction object")
        pod = registry.stored(route.row, route.namespace, route.name).document
        options = delete_options(call.query, part(eviction, "deleteOptions"))
        dry_run = write_options(call.query).dry_run or options.dry_run
        needs_budget = part(pod, "status").get("phase") not in ("Succeeded", "Failed", "Pending")
        if needs_budget and not part(pod, "metadata").get("deletionTimestamp"):
            self._charge_budget(call, pod, dry_run)
        check_preconditions(route.row, pod["metadata"], options.uid, options.resource_version)
        if not dry_run:
            _mark_evicted(call, pod)
        registry.delete(
            route.row, route.namespace, route.name, DeleteOptions(grace_seconds=options.grace_seconds, dry_run=dry_run)
        )
        return success() | {"code": 201}

    def _charge_budget(self, call: SubresourceRequest, pod: Document, dry_run: bool) -> None:
        """Take one disruption from the pod's budget, or reject the eviction."""
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
            raise StatusError(
                500,
                "InternalError",
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            )
        budget = budgets[0]
        name, status = budget["metadata"]["name"], part(budget, "status")
        if _is_unhealthy_and_evictable(pod, budget):
            return
        if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
            why = f"The disruption budget {name} is still being processed by the server."
            raise _too_many(why, retry_after=SOON_SECONDS)
        allowed = status.get("disruptionsAllowed", 0)
        if allowed < 0:
            raise forbidden("policy", "poddisruptionbudget", name, "pdb disruptions allowed is negative")
        if len(part(status, "disruptedPods")) > MAX_DISRUPTED_PODS:
            why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
            raise forbidden("policy", "poddisruptionbudget", name, why)
        if allowed == 0:
            raise _too_many(_violation(name, status))
        if dry_run:
            return
        current = store.stored(BUDGETS, namespace, name)
        assert current is not None
        now = timestamp(call.registry.context.clock.now())
        disrupted = {**part(status, "disruptedPods"), pod["metadata"]["name"]: now}
        changed = {**budget, "metadata": dict(budget["metadata"])}
        changed["status"] = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}
        if allowed == 1:
            spent = {"type": DISRUPTION_ALLOWED, "status": "False", "reason": "InsufficientPods", "message": ""}
            observed = {"observedGeneration": status.get("observedGeneration", 0)}
            changed["status"]["conditions"] = _with_condition(status, spent | observed, now)
        store.update(BUDGETS, changed, current)


def _is_unhealthy_and_evictable(pod: Document, budget: Document) -> bool:
    """A pod that is not ready may be evicted by the policy, or if there are enough healthy pods without it."""
    if _condition(part(pod, "status"), "Ready").get("status") == "True":
        return False
    if part(budget, "spec").get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = part(budget, "status")
    desired: int = status.get("desiredHealthy", 0)
    return 0 < desired <= int(status.get("currentHealthy", 0))


def _violation(name: str, status: Document) -> str:
    """Why the budget allows no eviction. Where its sync failed, its numbers mean nothing."""
    condition = _condition(status, DISRUPTION_ALLOWED)
    because = condition.get("message") if condition.get("status") == "False" else None
    if because and condition.get("reason") == "SyncFailed":
        return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {because}"
    desired, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    if healthy <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
    none = f"The disruption budget {name} does not allow evicting pods currently"
    return f"{none} ({condition.get('reason')}): {because}" if because else none


def _mark_evicted(call: SubresourceRequest, pod: Document) -> None:
    """Set the condition DisruptionTarget of the pod."""
    route, store = call.route, call.registry.store
    current = call.registry.stored(route.row, route.namespace, route.name)
    status = part(pod, "status")
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    conditions = _with_condition(status, condition, timestamp(call.registry.context.clock.now()))
    if conditions != items_of(status, "conditions"):
        changed = {**pod, "metadata": dict(pod["metadata"]), "status": {**status, "conditions": conditions}}
        store.update(route.row.storage, changed, current)


def _with_condition(status: Document, condition: Document, now: str) -> list[Document]:
    """The conditions with this one; its transition time stays as long as its status does."""
    present = items_of(status, "conditions")
    before = _condition(status, condition["type"])
    since = before.get("lastTransitionTime") if before.get("status") == condition["status"] else None
    others = [each for each in present if each.get("type") != condition["type"]]
    return [*others, {**before, **condition, "lastTransitionTime": since or now}]


def _condition(status: Document, type_: str) -> Document:
    """The condition of that type, or an empty one."""
    return next((each for each in items_of(status, "conditions") if each.get("type") == type_), {})


def _too_many(why: str, retry_after: int | None = None) -> StatusError:
    """Without `Retry-After` kubectl shows the message; with it clients retry silently."""
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    causes = [{"reason": "DisruptionBudget", "message": why}]
    return StatusError(429, "TooManyRequests", message, {"causes": causes}, retry_after=retry_after)
