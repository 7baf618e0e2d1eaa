"""DynamicResources: a node must have the devices that the pod's ResourceClaims request.

A claim that is allocated already ties the pod to the nodes of its allocation; for the others, devices are sought on
each node. Extended resources that a device class provides count as a claim. Nodes where requests with alternatives get
what they prefer score higher. Which devices are chosen depends on nothing but the objects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import timedelta
from typing import Annotated

import numpy as np

from mooring.base.errors import Fault
from mooring.framework import (
    UNRESOLVABLE,
    Action,
    Args,
    BoolArray,
    ClaimsInFlight,
    ClaimWriter,
    Clock,
    Cycle,
    Diagnosis,
    FeatureGates,
    Hint,
    IntArray,
    Log,
    Meta,
    Metrics,
    Node,
    NodeRows,
    NodeView,
    Objects,
    Plugin,
    Pod,
    PodEvents,
    PodGroups,
    PostFilterRefusal,
    Refusal,
    Rejection,
    Rejections,
    Skip,
    ToMax,
    WhatIf,
    constant_score,
)
from mooring.framework.node_selectors import where_selector
from mooring.framework.verdicts import ClaimRelease
from mooring.objects.placement_rules import selector_matches
from mooring.objects.pod_groups import PodGroup
from mooring.objects.resource import Allocation, DeviceClass, ResourceClaim, ResourceSlice
from mooring.plugins.default.dynamic_resources import extended_resources
from mooring.plugins.default.dynamic_resources.allocated_devices import AllocatedDevices, DeviceHolders
from mooring.plugins.default.dynamic_resources.allocation_results import NodeAllocation, preference_score
from mooring.plugins.default.dynamic_resources.allocator import Allocator
from mooring.plugins.default.dynamic_resources.binding_conditions import (
    BindingConditionsWait,
    Readiness,
    is_overdue,
    readiness,
)
from mooring.plugins.default.dynamic_resources.claim_binder import ClaimBinder
from mooring.plugins.default.dynamic_resources.device_requests import ClaimToAllocate, PoolsInvalid
from mooring.plugins.default.dynamic_resources.features import Features
from mooring.plugins.default.dynamic_resources.group_claims import consumer_of, group_release
from mooring.plugins.default.dynamic_resources.pod_claims import (
    ClaimMissing,
    ClaimSearches,
    PodClaims,
    allocated,
    can_be_reserved,
    claims_of,
    is_in_use_by,
    is_reserved_for,
    referenced_claims,
    release_devices,
    reserve_devices,
)
from mooring.plugins.default.dynamic_resources.resource_slices import ResourceSliceCache
from mooring.plugins.default.dynamic_resources.search_cache import SearchCache

CANNOT_ALLOCATE = "cannot allocate all claims"
NOT_AVAILABLE = "resourceclaim not available on the node"
LEFT_OVER = "cannot schedule extended resource claim"
CANNOT_FIT = "cannot fit resource"
NOTHING_TO_DEALLOCATE = "no new claims to deallocate"
DEALLOCATED = "deallocation of ResourceClaim completed"
DELETED = "deletion of ResourceClaim completed"
UNRESERVED = "ResourceClaim unreserved for PodGroup"
STILL_NOT = "still not schedulable"
IN_USE = "resourceclaim in use"
NO_CLAIMS = PodClaims()
NO_RESOURCES: frozenset[str] = frozenset()
_OUT_OF_REACH = float("inf")
_SHORTEST_SEARCH_SECONDS = 1e-6
"""No search takes less: a limit of that much is over when the search begins."""


class DynamicResourcesArgs(Args):
    """Arguments of DynamicResources."""

    filter_timeout: Annotated[
        timedelta, Meta(description="How long the search for devices may take on one node; 0 means without end.")
    ] = timedelta(seconds=10)
    binding_timeout: Annotated[
        timedelta, Meta(description="How long allocated devices may take until their binding conditions are met.")
    ] = timedelta(seconds=600)

    def mistakes(self) -> Iterable[tuple[str, str]]:
        if self.filter_timeout < timedelta(0):
            yield "filterTimeout", "must be zero or positive"
        if self.binding_timeout < timedelta(seconds=1):
            yield "bindingTimeout", "must be at least 1 second"


class DynamicResources(Plugin):
    """Find devices for the pod's ResourceClaims."""

    pod_fields = ("spec.resourceClaims",)
    per_template = True
    missing_state_message = "not found"
    normalizer = ToMax()
    pre_filter_reads_pods = False
    pre_bind_in_parallel = True

    def __init__(
        self,
        args: DynamicResourcesArgs,
        claims: Objects[ResourceClaim],
        slices: Objects[ResourceSlice],
        classes: Objects[DeviceClass],
        writer: ClaimWriter,
        in_flight: ClaimsInFlight,
        groups: PodGroups,
        events: PodEvents,
        gates: FeatureGates,
        clock: Clock,
        log: Log,
        metrics: Metrics,
    ) -> None:
        self._features = Features.of(gates)
        self._claims, self._classes, self._clock, self._log = claims, classes, clock, log
        self._writer, self._in_flight, self._groups = writer, in_flight, groups
        self._slice_cache = ResourceSliceCache(slices, self._features)
        self._allocated_devices = AllocatedDevices(claims, in_flight, self._features)
        self._search_cache = SearchCache(DeviceHolders(claims, in_flight))
        self._resource_cache = extended_resources.ExtendedResourceCache(classes)
        self._extended_claims_by_pod = claims.indexed(extended_resources.pods_of_extended_claim)
        self._binding_seconds = args.binding_timeout.total_seconds()
        # pre_bind has its own timeout, whose message names what it waited for.
        self.longest_wait_seconds = max(self.longest_wait_seconds, self._binding_seconds + 60.0)
        self._binder = ClaimBinder(writer, claims, in_flight, clock, self._features, metrics)
        self._binding_conditions = BindingConditionsWait(claims, events, clock, self._binding_seconds, metrics)
        timeout = args.filter_timeout.total_seconds() if self._features.filter_timeout else 0
        self._filter_seconds = timeout - _SHORTEST_SEARCH_SECONDS if timeout else _OUT_OF_REACH
        self._deadline = _OUT_OF_REACH

    def events(self) -> Iterable[Hint]:
        return [
            Hint(Node, Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE),
            Hint(ResourceClaim, Action.ADD | Action.UPDATE, self._claim_changed),
            Hint(Pod, Action.UPDATE_POD_GENERATED_CLAIM, self._claim_was_generated),
            Hint(DeviceClass, Action.ADD | Action.UPDATE),
            Hint(ResourceSlice, Action.ADD | Action.UPDATE),
        ]

    # Queueing hints: a pod with a missing claim is not requeued, whatever happens to other claims.

    def _claim_changed(self, pod: Pod, before: ResourceClaim | None, after: ResourceClaim) -> bool:
        try:
            is_own = any(claim.uid == after.uid for claim in claims_of(pod, self._claims, self._features))
        except ClaimMissing:
            return False
        if before is None:
            return is_own
        if before.status.allocation is not None and after.status.allocation is None:
            return True  # its devices are available now
        return is_own and before.status != after.status

    def _claim_was_generated(self, pod: Pod, before: Pod, after: Pod) -> bool:
        if after.uid != pod.uid:
            return False
        try:
            claims_of(after, self._claims, self._features)
        except ClaimMissing:
            return False
        return True

    def sign(self, pod: Pod) -> tuple[()] | None:
        """Pods without claims and extended resources are all alike, unless their group may be missing."""
        if self._features.workload_claims and pod.pod_group_name is not None:
            return None
        if pod.spec.resource_claims or any("/" in resource for resource in pod.requests.amounts):
            return None
        return ()

    def pre_enqueue(self, pod: Pod) -> Refusal | None:
        if not pod.spec.resource_claims:
            return None
        try:
            claims_of(pod, self._claims, self._features)
        except ClaimMissing as missing:
            return Refusal(str(missing), code=UNRESOLVABLE)
        return None

    def pre_filter(self, pod: Pod, cycle: Cycle) -> PodClaims | Skip | Refusal:
        cycle.set_filter_state(self, NO_CLAIMS)  # for the later points, also after a skip or a refusal
        try:
            referenced = list(referenced_claims(pod, self._claims, self._features))
            group = self._group_of(pod)
        except ClaimMissing as missing:
            return Refusal(str(missing), code=UNRESOLVABLE)
        claims: list[ResourceClaim] = [claim for _, claim in referenced]
        shared: dict[int, ResourceClaim] = {}
        extended_claim = self._extended_claim(pod)
        if not claims and extended_claim is None:
            return Skip()
        for at, claim in enumerate(claims):
            if (tried := self._tried_allocation(claim)) is not None:
                shared[at], claims[at] = claim, allocated(claim, tried)
            elif (reason := self._unusable(claim, pod)) is not None:
                return Refusal(reason, code=UNRESOLVABLE)
        to_allocate = [claim for claim in claims if claim.status.allocation is None]
        if extended_claim is not None:
            claims = [*claims, extended_claim]
        return PodClaims(
            claims,
            [consumer_of(pod, group, reference) for reference, _ in referenced],
            shared,
            extended_claim,
            [ClaimToAllocate(claim, self._classes, self._features) for claim in to_allocate],
            self._allocator() if any(claim.status.allocation is None for claim in claims) else None,
        )

    def _group_of(self, pod: Pod) -> PodGroup | None:
        """The group of the pod, if claims can belong to it. Raises `ClaimMissing` if its object is not there."""
        if not self._features.workload_claims or (name := pod.pod_group_name) is None:
            return None
        if (group := self._groups.get(pod.namespace, name)) is None:
            raise ClaimMissing(f'podgroup.scheduling.k8s.io "{name}" not found')
        return group

    def _tried_allocation(self, claim: ResourceClaim) -> Allocation | None:
        """What an earlier pod of the group got for the claim in the trial under way."""
        return None if claim.status.allocation is not None else self._in_flight.tried_allocation(claim.uid)

    def _extended_claim(self, pod: Pod) -> ResourceClaim | None:
        """The claim that stands for extended resources: one from an earlier attempt, or a new one in memory."""
        for resource, amount in pod.requests.amounts.items():
            if amount and "/" in resource and self._is_device_backed(resource):
                made = self._extended_claims_by_pod.at(pod.uid)
                return made[0] if made else extended_resources.claim_in_memory(pod)
        return None

    def _is_device_backed(self, resource: str) -> bool:
        return (
            self._features.extended_resources
            and extended_resources.may_be_device_backed(resource)
            and self._resource_cache.class_of(resource) is not None
        )

    def _unusable(self, claim: ResourceClaim, pod: Pod) -> str | None:
        """Why no node can help, for now or ever."""
        if claim.status.allocation is not None:
            return None if can_be_reserved(claim) or is_in_use_by(claim, pod, self._features) else IN_USE
        if claim.uid in self._in_flight:
            # The pod that allocates it writes that; the update of the claim requeues the others.
            return f"resource claim {claim.key} is in the process of being allocated"
        return self._unresolvable_request(claim)

    def _unresolvable_request(self, claim: ResourceClaim) -> str | None:
        """Why no node can help, whatever devices it has."""
        for request in claim.spec.devices.requests:
            if request.exactly is not None:
                requested = [(request.name, request.exactly.device_class_name)]
            elif request.first_available:
                if not self._features.prioritized_list:
                    return (
                        f"resource claim {claim.key}, request {request.name}: has subrequests,"
                        " but the DRAPrioritizedList feature is disabled"
                    )
                requested = [
                    (f"{request.name}/{each.name}", each.device_class_name) for each in request.first_available
                ]
            else:
                return f"resource claim {claim.key}, request {request.name}: unknown request type"
            for name, device_class in requested:
                if not device_class:
                    raise Fault(f"request {name}: unsupported request type")
                if self._classes.get(device_class) is None:
                    return f"request {name}: device class {device_class} does not exist"
        return None

    def _allocator(self) -> Allocator:
        return Allocator(self._slice_cache.index(), self._allocated_devices, self._features, self._check_time)

    def _check_time(self) -> None:
        if self._clock.monotonic() >= self._deadline:
            raise TimeoutError

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        state: PodClaims = cycle.filter_state(self)
        if not state.claims:
            return None
        devices_for: Collection[str] | None = None
        if state.extended_claim is not None:
            if state.extended_claim.spec.devices.requests:
                # Left over from an attempt that failed: post_filter deletes it.
                return Rejection(LEFT_OVER, code=UNRESOLVABLE)
            lacking = extended_resources.lacking(pod, node, self._resource_cache)
            if lacking is None:
                return Rejection(CANNOT_FIT, code=UNRESOLVABLE)
            if not lacking and not state.has_user_claims:
                return None
            if state.extended_claim.status.allocation is None:
                devices_for = lacking
        unavailable = [at for at, claim in enumerate(state.claims) if not self._is_available(claim, node)]
        found: NodeAllocation | None = None
        if state.allocator is not None:
            try:
                found = self._found(pod, state, state.allocator, node, devices_for)
            except PoolsInvalid as reason:
                return Rejection(str(reason), code=UNRESOLVABLE)
            if found is None:
                return Rejection(CANNOT_ALLOCATE, code=UNRESOLVABLE)
        if unavailable:
            state.unavailable.update(unavailable)
            return Rejection(NOT_AVAILABLE, code=UNRESOLVABLE)
        if found is not None:
            state.found[node.name] = found
        return None

    def filter_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> Iterator[Rejections]:
        """`filter`, for many nodes at once. Claims that are all allocated are a matter of selectors."""
        state: PodClaims = cycle.filter_state(self)
        if state.allocator is None and state.extended_claim is None:
            yield from self._not_available(state, nodes)
            return
        rejected: dict[str, list[int]] = {}
        for place, node in enumerate(nodes):
            if (rejection := self.filter(pod, node, cycle)) is not None:
                rejected.setdefault(rejection.reasons[0], []).append(place)
        for reason, places in rejected.items():
            mask = np.zeros(len(nodes), np.bool_)
            mask[places] = True
            yield Rejections(mask, reason, unresolvable=True)

    def _not_available(self, state: PodClaims, nodes: NodeRows) -> Iterator[Rejections]:
        is_available = np.ones(len(nodes), np.bool_)
        for at, claim in enumerate(state.claims):
            where = self._is_usable(claim) & _where_selected(claim, nodes)
            if not where.all():
                state.unavailable.add(at)
                is_available &= where
        yield Rejections(~is_available, NOT_AVAILABLE, unresolvable=True)

    def _is_available(self, claim: ResourceClaim, node: NodeView) -> bool:
        """Whether the claim's allocation can be used on this node; one without allocation is not in the way."""
        allocation = claim.status.allocation
        if allocation is None:
            return True
        selector = allocation.node_selector
        if selector is not None and not selector_matches(selector, node.name, node.labels):
            return False
        return self._is_usable(claim)

    def _is_usable(self, claim: ResourceClaim) -> bool:
        """Whether the claim's devices are ready, or may still become ready in time."""
        if not self._features.binding_conditions:
            return True
        ready = readiness(claim)
        if ready is Readiness.WAITING:
            return not is_overdue(claim, self._clock.now(), self._binding_seconds)
        return ready is Readiness.READY

    def _found(
        self, pod: Pod, state: PodClaims, allocator: Allocator, node: NodeView, devices_for: Collection[str] | None
    ) -> NodeAllocation | None:
        """Devices for all claims without allocation, or None. `devices_for` are extended resources."""
        key = NO_RESOURCES if devices_for is None else frozenset(devices_for)
        claims = state.searches.get(key)
        if claims is None:
            claims = state.searches[key] = self._searches_of(pod, state, allocator, devices_for)
        self._deadline = self._clock.monotonic() + self._filter_seconds
        try:
            found = claims.searches.at(node)
        except TimeoutError:
            raise Fault(f"node {node.name}: timed out trying to allocate devices") from None
        if found is None:
            return None
        return NodeAllocation(found, claims.searches.claims, claims.extended_claim, claims.mappings)

    def _searches_of(
        self, pod: Pod, state: PodClaims, allocator: Allocator, devices_for: Collection[str] | None
    ) -> ClaimSearches:
        """The same for all nodes that lack the same extended resources."""
        if state.extended_claim is None or devices_for is None:
            return ClaimSearches(self._search_cache.searches(state.wanted, allocator))
        requests = extended_resources.extended_requests(pod, devices_for, self._resource_cache)
        claim = requests.claim(state.extended_claim)
        wanted = [*state.wanted, ClaimToAllocate(claim, self._classes, self._features)]
        return ClaimSearches(self._search_cache.searches(wanted, allocator), claim, requests.mappings)

    def post_filter(self, pod: Pod, refused: Diagnosis, what_if: WhatIf) -> Refusal:
        """Deallocate a claim whose allocation rules out every node, if no other pod uses it.

        A claim of the group is unreserved first, if no pod of the group has a node yet.
        """
        state: PodClaims = refused.cycle.filter_state(self)
        if not state.claims:
            return Refusal(NOTHING_TO_DEALLOCATE)
        for at in sorted(state.unavailable):
            claim = state.claims[at]
            users = [user.uid for user in claim.status.reserved_for]
            if claim is not state.extended_claim and at not in state.shared and users in ([], [pod.uid]):
                return PostFilterRefusal(DEALLOCATED, deallocate=(_release(claim),))
        if state.extended_claim is not None and state.extended_claim.name != extended_resources.IN_MEMORY:
            return PostFilterRefusal(DELETED, deallocate=(_release(state.extended_claim, delete=True),))
        if (release := self._group_release(pod)) is not None:
            return PostFilterRefusal(UNRESERVED, code=UNRESOLVABLE, deallocate=(release,))
        return Refusal(STILL_NOT)

    def _group_release(self, pod: Pod) -> ClaimRelease | None:
        if not self._features.workload_claims or (name := pod.pod_group_name) is None:
            return None
        members, group = self._groups.members(pod.namespace, name), self._groups.get(pod.namespace, name)
        if members is None:
            raise Fault(f"pod group state not found for pod group {pod.namespace}/{name}")
        if members.scheduled_count > members.tried_count:
            return None  # a pod of the group may use them
        if group is None:
            raise Fault(f'podgroup.scheduling.k8s.io "{name}" not found')
        return group_release(pod, group, self._claims)

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        if not self._features.prioritized_list:
            return 0
        state: PodClaims = cycle.filter_state(self)
        found = state.found.get(node.name)
        return 0 if found is None else preference_score(state.claims, found.found)

    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> IntArray:
        """`score`, for many nodes at once: most pods have no claims."""
        if not self._features.prioritized_list:
            return constant_score(0, nodes)
        state: PodClaims = cycle.filter_state(self)
        if not state.found or not state.has_alternatives:
            return constant_score(0, nodes)
        return np.fromiter((self.score(pod, node, cycle) for node in nodes), np.int64, len(nodes))

    def reserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        state: PodClaims = cycle.filter_state(self)
        if state.claims:
            reserve_devices(state, pod, node.name, self._in_flight, self._features, is_trial=cycle.is_trial)
        return None

    async def unreserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        state: PodClaims = cycle.filter_state(self)
        if not cycle.is_trial and state.unknown_writes:
            await self._binder.resolve_unknown_writes(state)
        release_devices(state, pod, self._in_flight)
        if cycle.is_trial:
            return  # nothing was written; a reservation from before a crash is the pod's still
        for at, claim in enumerate(state.claims):
            try:
                if claim is state.extended_claim:
                    if claim.name != extended_resources.IN_MEMORY:
                        await self._writer.delete(claim)
                elif claim.status.allocation is not None and is_reserved_for(claim, pod):
                    state.claims[at] = await self._writer.remove_reserved_for(claim, pod.uid)
            except Fault as problem:  # the next attempt of the pod comes here again
                self._log.error("Unreserve failed", pod=pod, resourceclaim=claim.key, err=problem)

    def needs_pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> bool:
        state: PodClaims = cycle.filter_state(self)
        return bool(state.claims)

    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        state: PodClaims = cycle.filter_state(self)
        for at, claim in enumerate(state.claims):
            if not is_in_use_by(claim, pod, self._features):
                await self._binder.bind(pod, state, at, node.name)
        if self._features.binding_conditions:
            await self._binding_conditions.wait(pod, state, node.name)


def _where_selected(claim: ResourceClaim, nodes: NodeRows) -> BoolArray:
    selector = claim.status.allocation.node_selector if claim.status.allocation is not None else None
    return np.ones(len(nodes), np.bool_) if selector is None else where_selector(selector, nodes)


def _release(claim: ResourceClaim, *, delete: bool = False) -> ClaimRelease:
    return ClaimRelease(
        claim.namespace, claim.name, claim.uid, "" if delete else claim.metadata.resource_version, delete=delete
    )
