"""The `ClaimWriter` service in memory: what is written is there at once, unless the test wants it to fail."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import msgspec

from mooring.base.errors import ApiError
from mooring.objects.core import ContainerExtendedResourceRequest, Pod
from mooring.objects.meta import KubeObject
from mooring.objects.object_store import IndexedStore
from mooring.objects.resource import Allocation, ResourceClaim


class MemoryClaimWriter:
    """Writes straight into the claims that plugins read, as the API server and the watch would do together."""

    def __init__(self, objects: Callable[[type[KubeObject]], IndexedStore[ResourceClaim]]) -> None:
        self._objects = objects
        self._versions = itertools.count(1_000_000)
        self.written: list[tuple[str, str]] = []
        """Verb and claim (namespace/name), in their order."""
        self.failures: dict[str, list[Exception]] = {}
        """What is raised instead, by verb: one for each call, until there are no more."""
        self.extended_claims: dict[str, tuple[str, Sequence[ContainerExtendedResourceRequest]]] = {}
        """Pod (namespace/name) → the claim for its extended resources, and which container has what."""
        self.protected: set[str] = set()
        """Claims with the finalizer, by namespace/name."""

    async def read(self, claim: ResourceClaim) -> ResourceClaim:
        self._note("read", claim)
        return self._there(claim)

    async def create(self, claim: ResourceClaim, *, generate_name: str) -> ResourceClaim:
        self._note("create", claim)
        name = f"{generate_name}x"
        metadata = msgspec.structs.replace(claim.metadata, name=name, uid=f"claim-{name}")
        return self._put(ResourceClaim(metadata=metadata, spec=claim.spec))

    async def add_finalizer(self, claim: ResourceClaim) -> ResourceClaim:
        self._note("add_finalizer", claim)
        there = self._unchanged(claim)
        self.protected.add(claim.key)
        return self._put(there)

    async def write_reserved_for(self, claim: ResourceClaim, *, with_allocation: bool) -> ResourceClaim:
        self._note("write_reserved_for", claim)
        there = self._unchanged(claim)
        allocation = _merged(there.status.allocation, claim.status.allocation, whole=with_allocation)
        status = msgspec.structs.replace(there.status, reserved_for=claim.status.reserved_for, allocation=allocation)
        return self._put(msgspec.structs.replace(there, status=status))

    async def remove_reserved_for(self, claim: ResourceClaim, uid: str) -> ResourceClaim:
        self._note("remove_reserved_for", claim)
        there = self._there(claim)
        left = tuple(user for user in there.status.reserved_for if user.uid != uid)
        return self._put(
            msgspec.structs.replace(there, status=msgspec.structs.replace(there.status, reserved_for=left))
        )

    async def delete(self, claim: ResourceClaim) -> None:
        self._note("delete", claim)
        self._store.discard(claim.key)

    async def write_extended_claim(
        self, pod: Pod, claim: ResourceClaim, mappings: Sequence[ContainerExtendedResourceRequest]
    ) -> None:
        self._note("write_extended_claim", claim)
        self.extended_claims[pod.key] = claim.name, mappings

    @property
    def _store(self) -> IndexedStore[ResourceClaim]:
        return self._objects(ResourceClaim)

    def _note(self, verb: str, claim: ResourceClaim) -> None:
        self.written.append((verb, claim.key))
        if failures := self.failures.get(verb):
            raise failures.pop(0)

    def _there(self, claim: ResourceClaim) -> ResourceClaim:
        there = self._store.get(claim.name, claim.namespace)
        if there is None:
            raise ApiError(404, "NotFound", f'resourceclaims.resource.k8s.io "{claim.name}" not found')
        return there

    def _unchanged(self, claim: ResourceClaim) -> ResourceClaim:
        there = self._there(claim)
        if there.metadata.resource_version != claim.metadata.resource_version:
            raise a_conflict(claim.name)
        return there

    def _put(self, claim: ResourceClaim) -> ResourceClaim:
        metadata = msgspec.structs.replace(claim.metadata, resource_version=str(next(self._versions)))
        written = msgspec.structs.replace(claim, metadata=metadata)
        self._store.put(written)
        return written


def a_conflict(claim: str) -> ApiError:
    """The API server's response to an outdated resourceVersion."""
    return ApiError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on resourceclaims.resource.k8s.io "{claim}": the object has been modified;'
        " please apply your changes to the latest version and try again",
    )


def _merged(there: Allocation | None, given: Allocation | None, *, whole: bool) -> Allocation | None:
    if whole or there is None or given is None:
        return given if whole else there
    return msgspec.structs.replace(there, allocation_timestamp=given.allocation_timestamp)
