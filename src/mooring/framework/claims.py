"""ResourceClaims whose devices are chosen and not written yet.

Pods of one group that are tried together share such a claim; any other pod waits until the allocation is written.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from mooring.objects.meta import ObjectMeta
from mooring.objects.object_store import IndexedStore, ObjectIndex
from mooring.objects.resource import Allocation, ResourceClaim


class ClaimsInFlight:
    """Allocations that are not written yet: their devices are taken, whatever the watch shows.

    One for all profiles. Claims are known by uid, because one that is still to be created has no name.
    """

    __slots__ = ("_claims", "_pods", "_tried")

    def __init__(self) -> None:
        self._claims: IndexedStore[ResourceClaim] = IndexedStore()
        self._pods: dict[str, set[str]] = {}
        """By uid of the claim: the pods that hold it."""
        self._tried: set[str] = set()

    def begin(self, claim: ResourceClaim, pod: str = "", *, is_trial: bool = False) -> None:
        """From now on the devices of its allocation are taken, until the last pod (by uid) that began it ends it.

        A second pod shares the allocation of the first. `is_trial`: see `tried_allocation`.
        """
        pods = self._pods.setdefault(claim.uid, set())
        if not pods:
            self._claims.put(ResourceClaim(metadata=ObjectMeta(name=claim.uid, uid=claim.uid), status=claim.status))
            if is_trial:
                self._tried.add(claim.uid)
        pods.add(pod)

    def end(self, uid: str, pod: str = "") -> None:
        """The pod will not write it. Does nothing if the pod does not hold the claim."""
        pods = self._pods.get(uid)
        if pods is not None:
            pods.discard(pod)
            if not pods:
                self.written(uid)

    def written(self, uid: str) -> None:
        """It is written, for all pods that share it: what the watch shows counts from now on."""
        self._claims.discard(uid)
        self._pods.pop(uid, None)
        self._tried.discard(uid)

    def tried_allocation(self, uid: str) -> Allocation | None:
        """What the claim got in the pod group cycle under way. Members that are tried next share it."""
        found = self._claims.get(uid) if uid in self._tried else None
        return None if found is None else found.status.allocation

    def __contains__(self, uid: str) -> bool:
        return self._claims.get(uid) is not None

    def __len__(self) -> int:
        return len(self._claims.keys())

    def indexed(self, keys: Callable[[ResourceClaim], Iterable[Hashable]]) -> ObjectIndex[ResourceClaim]:
        """As `Objects.indexed`."""
        return self._claims.indexed(keys)
