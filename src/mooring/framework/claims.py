"""ResourceClaims whose devices are chosen and not written yet."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from mooring.objects.meta import ObjectMeta
from mooring.objects.object_store import IndexedStore, ObjectIndex
from mooring.objects.resource import ResourceClaim


class ClaimsInFlight:
    """Allocations that are not written yet: their devices are taken, whatever the watch shows.

    One for all profiles. Claims are known by uid, because one that is still to be created has no name.
    """

    def __init__(self) -> None:
        self._claims: IndexedStore[ResourceClaim] = IndexedStore()

    def begin(self, claim: ResourceClaim) -> None:
        """From now on the devices of its allocation are taken."""
        self._claims.put(ResourceClaim(metadata=ObjectMeta(name=claim.uid, uid=claim.uid), status=claim.status))

    def end(self, uid: str) -> None:
        """It is written, or will not be. Does nothing if the claim is not in flight."""
        self._claims.discard(uid)

    def __contains__(self, uid: str) -> bool:
        return self._claims.get(uid) is not None

    def __len__(self) -> int:
        return len(self._claims.keys())

    def indexed(self, keys: Callable[[ResourceClaim], Iterable[Hashable]]) -> ObjectIndex[ResourceClaim]:
        """As `Objects.indexed`."""
        return self._claims.indexed(keys)
