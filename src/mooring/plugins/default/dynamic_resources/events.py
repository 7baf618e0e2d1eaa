"""Which events may help a pod that waits for devices."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.framework import Action, Hint, Node, Objects, Pod
from mooring.objects.resource import DeviceClass, ResourceClaim, ResourceSlice
from mooring.plugins.default.dynamic_resources.claims import ClaimMissing, claims_of


class Hints:
    """A pod with a missing claim is not worth a try, whatever happens to other claims."""

    def __init__(self, claims: Objects[ResourceClaim]) -> None:
        self._claims = claims

    def all(self) -> Iterable[Hint]:
        return [
            Hint(Node, Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE),
            Hint(ResourceClaim, Action.ADD | Action.UPDATE, self._claim_changed),
            Hint(Pod, Action.UPDATE_POD_GENERATED_CLAIM, self._claim_was_generated),
            Hint(DeviceClass, Action.ADD | Action.UPDATE),
            Hint(ResourceSlice, Action.ADD | Action.UPDATE),
        ]

    def _claim_changed(self, pod: Pod, before: ResourceClaim | None, after: ResourceClaim) -> bool:
        try:
            is_own = any(claim.uid == after.uid for claim in claims_of(pod, self._claims))
        except ClaimMissing:
            return False
        if before is None:
            return is_own
        if before.status.allocation is not None and after.status.allocation is None:
            return True  # its devices are free now
        return is_own and before.status != after.status

    def _claim_was_generated(self, pod: Pod, before: Pod, after: Pod) -> bool:
        if after.uid != pod.uid:
            return False
        try:
            claims_of(after, self._claims)
        except ClaimMissing:
            return False
        return True
